"""What a daemon prints is kept small: its folder is memory on most hosts, and NVIDIA's daemon tells every command."""

import os
from pathlib import Path

import pytest

from cta_group_core.ids import GpuUuid
from cta_group_plugin.mps.daemon import DaemonProcess
from cta_group_plugin.mps.folders import MpsFolders
from cta_group_plugin.mps.processes import Process


@pytest.fixture
def folders(tmp_path: Path) -> MpsFolders:
    """Make the folders of a GPU's daemon."""
    made = MpsFolders.under(tmp_path, GpuUuid("GPU-1"))
    made.make()
    return made


def test_much_output_is_cut_under_a_daemon_that_goes_on_writing(folders: MpsFolders) -> None:
    """More than a MiB is forgotten, and what is written afterwards begins the file: nothing is left open between."""
    daemon = DaemonProcess(Process(pid=1, started_ticks=0), folders)
    with folders.output.open("ab", buffering=0) as written:  # as the daemon's own stream is opened
        written.write(bytes(1 << 20))
        daemon.cut_output()
        assert folders.output.stat().st_size == 1 << 20
        written.write(b"one more")
        daemon.cut_output()
        assert folders.output.stat().st_size == 0
        written.write(b"later")
        assert folders.output.read_bytes() == b"later"


def test_output_that_is_not_there_is_nothing_to_cut(folders: MpsFolders) -> None:
    """A daemon that somebody else started prints elsewhere."""
    DaemonProcess(Process(pid=1, started_ticks=0), folders).cut_output()
    assert not folders.output.exists()


@pytest.mark.parametrize(
    "text", ["", "no JSON", "[]", '{"pid": 1}', '{"pid": "x", "started_ticks": 1}', "[" * 100_000], ids=len
)
def test_a_record_that_is_no_record_finds_no_daemon(folders: MpsFolders, text: str) -> None:
    """Whatever stands there, only a process that runs with that start time is taken for the daemon."""
    folders.record.write_text(text, encoding="ascii")
    assert DaemonProcess.found(folders) is None


def test_a_record_of_before_a_reboot_finds_no_daemon(folders: MpsFolders) -> None:
    """The process id is somebody else's now, which its start time tells."""
    own = Process.with_pid(os.getpid())
    assert own is not None
    folders.record.write_text(f'{{"pid": {own.pid}, "started_ticks": {own.started_ticks + 1}}}', encoding="ascii")
    assert DaemonProcess.found(folders) is None
