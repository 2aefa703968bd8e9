"""Where the doctor gets the plugin's settings from, and what it says about a socket."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from cta_group_plugin.cli import build_parser
from cta_group_plugin.cli_doctor import settings_of_command, with_inherited
from cta_group_plugin.sockets import SocketState, look_at, with_hint
from plugin_running import short_folder

_IN_THE_CHART = ["/opt/cta-group/bin/python3", "/opt/cta-group/bin/cta-group-plugin", "run", "--mps-root=/run/mps"]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give the test a folder that leaves room for the name of a socket."""
    with short_folder() as made:
        yield made


def test_flags_of_the_running_plugin_become_its_environment() -> None:
    """Values and both forms of a switch, under the names that the command line reads."""
    words = [*_IN_THE_CHART, "--no-enforce-memory", "--enforce-compute", "--metrics-address="]
    assert settings_of_command(words) == {
        "CTA_GROUP_PLUGIN_MPS_ROOT": "/run/mps",
        "CTA_GROUP_PLUGIN_ENFORCE_MEMORY": "false",
        "CTA_GROUP_PLUGIN_ENFORCE_COMPUTE": "true",
        "CTA_GROUP_PLUGIN_METRICS_ADDRESS": "",
    }


@pytest.mark.parametrize(
    "words", [[], ["/sbin/init", "--x=1"], ["cta-group-plugin"], ["cta-group-plugin", "mps", "--x"]]
)
def test_other_commands_say_nothing_about_the_plugin(words: list[str]) -> None:
    """The first process of a host, or of the supervisor's container, has no settings of the plugin."""
    assert settings_of_command(words) == {}


def test_the_environment_wins_over_what_is_inherited(tmp_path: Path) -> None:
    """What somebody says here is meant here; what the plugin was told is the default."""
    process = tmp_path / "cmdline"
    process.write_bytes("\0".join([*_IN_THE_CHART, "--node-name=a"]).encode() + b"\0")
    assert with_inherited({"CTA_GROUP_PLUGIN_NODE_NAME": "b"}, process) == {
        "CTA_GROUP_PLUGIN_MPS_ROOT": "/run/mps",
        "CTA_GROUP_PLUGIN_NODE_NAME": "b",
    }
    assert with_inherited({"PATH": "/bin"}, tmp_path / "nowhere") == {"PATH": "/bin"}


def test_the_doctor_takes_every_option_of_the_plugin(capsys: pytest.CaptureFixture[str]) -> None:
    """What the chart gives to ``run`` can be given here, and the help says how to call it."""
    flags = ["--mps-root=/x", "--source=simulated", "--host-root=/host", "-o", "json"]
    parsed = build_parser({}).parse_args(["doctor", *flags])
    told = (str(parsed.mps_root), parsed.source, str(parsed.host_root), parsed.output)
    assert told == ("/x", "simulated", "/host", "json")
    with pytest.raises(SystemExit):
        build_parser({}).parse_args(["doctor", "--help"])
    assert "exec ds/cta-group-plugin -- cta-group-plugin doctor" in capsys.readouterr().out


def test_a_socket_that_answers(folder: Path) -> None:
    """Somebody takes the connection, so nothing is to be said."""
    path = folder / "it.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
        server.listen()
        look = look_at(path)
    assert (look.state, look.words) == (SocketState.ANSWERS, "")


def test_a_socket_that_is_missing_or_left(folder: Path) -> None:
    """Both are told with the path."""
    path = folder / "it.sock"
    assert look_at(path).state is SocketState.MISSING
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
    left = look_at(path)
    assert left.state is SocketState.SILENT
    assert left.words == f"nobody answers at {path}: Connection refused"


def test_only_a_denial_gets_the_hint() -> None:
    """SELinux is named where permission was denied, and nowhere else."""
    assert with_hint("/run/it.sock: List failed: UNAVAILABLE") == "/run/it.sock: List failed: UNAVAILABLE"
    assert "SELinux" in with_hint("/run/it.sock: connect: Permission denied (13)")
