"""``kubectl cta plan``: offline, at once, and in the words of the rules."""

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from cta_group_cli.cli import main
from cta_group_core.profiles import PROFILES

PROGRAM = Path(sys.executable).with_name("kubectl-cta")


def test_json_has_exactly_the_public_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """32 groups of an H100 are printed as one JSON object: 25 percent, 32 SMs, the memory that goes with them."""
    assert main(["plan", "--gpu", "h100-sxm", "--groups", "32", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "gpu": "h100-sxm",
        "groups": 32,
        "capacity": 128,
        "smCount": 132,
        "smGranted": 32,
        "smPercent": 25,
        "memoryMiB": 19996,
        "minimum": 8,
        "step": 8,
    }


@pytest.mark.parametrize(
    ("gpu", "groups", "percent", "granted"), [("h100-sxm", 128, 100, 132), ("rtx-4060-laptop", 24, 100, 24)]
)
def test_whole_gpus(capsys: pytest.CaptureFixture[str], gpu: str, groups: int, percent: int, granted: int) -> None:
    """All groups of a GPU are all of its SMs, also on one with less groups than a slice of another."""
    assert main(["plan", "--gpu", gpu, "--groups", str(groups), "-o", "json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["smPercent"], plan["smGranted"]) == (percent, granted)


def test_reserve_lowers_the_memory(capsys: pytest.CaptureFixture[str]) -> None:
    """A larger reserve leaves less for each slice, in proportion."""
    main(["plan", "--gpu", "h100-sxm", "--groups", "64", "--reserve-mib", "2048", "-o", "json"])
    assert json.loads(capsys.readouterr().out)["memoryMiB"] == (81008 - 2048) // 2


def test_text_is_a_sentence_a_table_and_what_to_write(capsys: pytest.CaptureFixture[str]) -> None:
    """People get a sentence, the numbers under names, and the line that goes into the pod."""
    main(["plan", "--gpu", "h100-sxm", "--groups", "32"])
    sentence, header, numbers, line = (part for part in capsys.readouterr().out.splitlines() if part)
    assert sentence.startswith("32 of the 128 groups of one NVIDIA H100 80GB HBM3: 32 SMs and 19996 MiB")
    assert header.split() == ["GPU", "GROUPS", "CAPACITY", "SMS", "PERCENT", "MEMORY", "MiB", "MINIMUM", "STEP"]
    assert numbers.split() == ["h100-sxm", "32", "128", "32", "of", "132", "25", "19996", "8", "8"]
    assert line.endswith("resources: {limits: {nvidia.com/cta-group: 32}}")


def test_text_of_a_whole_gpu_promises_no_limits(capsys: pytest.CaptureFixture[str]) -> None:
    """A whole GPU is told as one without MPS, since no limit is set there."""
    main(["plan", "--gpu", "h100-sxm", "--groups", "128"])
    assert "the whole GPU, all of its 132 SMs, without MPS" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--gpu", "a100-80", "--groups", "5"], "5 groups are not allowed: ask for 4 to 108 in steps of 2"),
        (["--gpu", "h100-sxm", "--groups", "12"], "nearest: 8 or 16"),
        (["--gpu", "h100-sxm", "--groups", "-8"], "-8 groups are not allowed"),
        (["--gpu", "h100-sxm", "--groups", "256"], "256 groups are 2 whole GPUs, and a plan is about one"),
        (["--gpu", "h100-sxm", "--groups", "32", "--reserve-mib", "-1"], "a reserve of -1 MiB is not possible"),
        (["--gpu", "h100", "--groups", "32"], f"known: {', '.join(PROFILES)}"),
        (["--gpu", "h100-sxm"], "--groups is missing"),
    ],
)
def test_refusals_are_one_sentence(capsys: pytest.CaptureFixture[str], arguments: list[str], told: str) -> None:
    """What cannot be planned ends with 2, nothing on standard output, and one line that says what would do."""
    assert main(["plan", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("kubectl cta plan: ")
    assert told in printed.err
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["play"],
        ["plan"],
        ["plan", "--gpu", "h200", "--groups", "many"],
        ["plan", "--gpu", "h200", "--list"],
        ["plan", "--gpu", "h200", "--groups", "8", "-o", "yaml"],
    ],
)
def test_words_that_are_no_command_are_one_sentence(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    """What the parser refuses ends with 2 and one line that names the help."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "--help)" in told


@pytest.mark.parametrize("command", ["top", "explain", "quota", "plan"])
def test_help_teaches_by_examples(capsys: pytest.CaptureFixture[str], command: str) -> None:
    """The help of each command shows how it is called and what its exit status means."""
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    told = capsys.readouterr().out
    assert ended.value.code == 0
    assert f"examples:\n  kubectl cta {command}" in told
    assert "Exit status" in told


def test_list_names_every_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    """The list has a line for each known GPU, and the same facts as JSON."""
    assert main(["plan", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == list(PROFILES)
    assert main(["plan", "--list", "-o", "json"]) == 0
    facts = {entry["gpu"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert (facts["a100-80"]["capacity"], facts["a100-80"]["minimum"], facts["a100-80"]["step"]) == (108, 4, 2)


def test_plan_imports_nothing_heavy() -> None:
    """Neither the Kubernetes client nor pydantic is loaded for an answer that needs no cluster."""
    script = (
        "import sys; from cta_group_cli.cli import main; main(['plan', '--gpu', 'l4', '--groups', '8']);"
        "print([name for name in ('kubernetes', 'urllib3', 'pydantic', 'yaml', 'grpc', 'kopf') if name in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert printed.splitlines()[-1] == "[]"


def test_installed_program_answers_within_half_a_second_of_work() -> None:
    """The program as it is installed needs less than half a second of processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    answered = subprocess.run(
        [PROGRAM, "plan", "--gpu", "l4", "--groups", "8", "-o", "json"], check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert json.loads(answered.stdout)["smGranted"] == 8
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5


def test_reader_of_a_pipe_may_leave() -> None:
    """A reader that has seen enough (``| head``) is no error and causes no message."""
    command = f"{PROGRAM} plan --list | true; echo ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], check=True, capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("0\n", "")
