"""How a command of ``kubectl cta`` ends when it cannot say what it found: never with the status of findings."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cta_group_cli.errors import BadInput
from cta_group_cli.exits import Exit
from cta_group_cli.outcome import INTERRUPTED, outcome_of
from cta_group_cli.terminal import printable

PROGRAM = Path(sys.executable).with_name("kubectl-cta")
_PRESSES = 6
_PATIENCE_SECONDS = 20.0  # longer than an interrupted program takes to end on a busy machine


def run_in_shell(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``$CTA`` and whatever else a shell does with it."""
    variables = {**os.environ, "CTA": str(PROGRAM), **environment}
    return subprocess.run(["/bin/sh", "-c", command], check=False, capture_output=True, text=True, env=variables)


def test_a_full_disk_is_told() -> None:
    """An answer that cannot be written is an error in one sentence."""
    done = run_in_shell("$CTA plan --list > /dev/full")
    assert done.returncode == Exit.BAD_INPUT
    assert done.stderr == "kubectl cta plan: the answer could not be written: [Errno 28] No space left on device\n"


def test_a_closed_output_takes_nothing() -> None:
    """Who closes the output is not told of a fault of ours."""
    done = run_in_shell("$CTA plan --list >&-")
    assert (done.returncode, done.stderr) == (Exit.FINE, "")


def test_a_reader_that_has_seen_enough() -> None:
    """A pipe that is closed early is no failure."""
    done = run_in_shell("{ $CTA plan --list; echo $? >&2; } | true")
    assert done.stderr == "0\n"


def test_a_terminal_without_the_character(tmp_path: Path) -> None:
    """A character that the terminal's encoding lacks is written as an escape."""
    kubeconfig = tmp_path / "no\u00e9l"
    done = run_in_shell("$CTA top", KUBECONFIG=str(kubeconfig), PYTHONIOENCODING="ascii:strict")
    assert done.returncode == Exit.BAD_INPUT
    assert "no\\xe9l cannot be used" in done.stderr


def test_a_fault_of_ours_does_not_look_like_findings(capsys: pytest.CaptureFixture[str]) -> None:
    """Python's own status for an unexpected exception is that of findings, so it is not left to Python."""

    def broken() -> Exit:
        raise RuntimeError("a fault")

    assert outcome_of("kubectl cta top", broken) == Exit.BAD_INPUT
    assert "RuntimeError: a fault" in capsys.readouterr().err


def test_what_is_refused_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """A refusal is told with the command before it, without what a terminal would obey."""

    def refused() -> Exit:
        raise BadInput("no \x1b[31msuch\x1b[0m thing")

    assert outcome_of("kubectl cta top", refused) == Exit.BAD_INPUT
    assert capsys.readouterr().err == "kubectl cta top: no \\x1b[31msuch\\x1b[0m thing\n"


def interrupted(process: "subprocess.Popen[str]") -> tuple[str, str]:
    """Interrupt a program until it ends, and return what it wrote.

    Python hears of a signal that comes right before a read when that read has ended: people press twice then.
    """
    for _ in range(_PRESSES):
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=_PATIENCE_SECONDS)
    raise AssertionError(f"it still runs after {_PRESSES} interrupts")


def test_ctrl_c_ends_without_a_word(tmp_path: Path) -> None:
    """A command that waits for a cluster ends as shells expect when it is interrupted."""
    kubeconfig = tmp_path / "config"
    os.mkfifo(kubeconfig)
    process = subprocess.Popen(
        # Whoever runs the tests in the background has them ignore interrupts, and their children too.
        ["env", "--default-signal=INT", PROGRAM, "top", "--kubeconfig", kubeconfig],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        with kubeconfig.open("w"):  # returns when the command has opened it
            assert interrupted(process) == ("", "")
    finally:
        process.kill()
        process.wait()
    assert process.returncode == INTERRUPTED


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb", "a\nb"),
        ("\u00fcn\u00ef \U0001f680", "\u00fcn\u00ef \U0001f680"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("a\rb\tc", "a\\rb\\tc"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
    ],
)
def test_text_of_others_on_a_terminal(text: str, shown: str) -> None:
    """Words stay, in every script; what a terminal would obey, or that hides what is there, becomes visible."""
    assert printable(text) == shown
