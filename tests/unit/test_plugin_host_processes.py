"""What the kernel says of a process: who it is, whether it has ended, and in which pod it is."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster_harness.waiting import wait_for
from cta_group_plugin.adapters.host_processes import HostProcesses
from cta_group_plugin.pod_cgroups import PodOfProcess
from gpu_looks import Program, write_process

POD = "11111111-1111-4111-8111-111111111111"


@contextmanager
def sleeping() -> Iterator[subprocess.Popen[bytes]]:
    """Run a program that does nothing."""
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_living_process() -> None:
    """By its name, with a start time that stays, in no pod."""
    with sleeping() as process:
        facts = HostProcesses().look([process.pid])[process.pid]
        assert (facts.name, facts.has_ended, facts.pod) == ("sleep", False, None)
        assert HostProcesses().look([process.pid])[process.pid].started_ticks == facts.started_ticks > 0


def test_a_process_that_was_killed() -> None:
    """It has ended before its parent knows, and cannot be found afterwards."""
    with sleeping() as process:
        process.kill()
        wait_for(lambda: HostProcesses().look([process.pid])[process.pid].has_ended, "the end of the process")
        process.wait()
        assert HostProcesses().look([process.pid]) == {}


def test_ids_that_are_none() -> None:
    """As drivers write them for processes of other namespaces."""
    assert HostProcesses().look([0, -1]) == {}


def test_a_process_of_a_pod(tmp_path: Path) -> None:
    """By its cgroup; a name may have anything in it."""
    write_process(tmp_path, Program(5, pod_uid=POD, name="python) Z 3 (x"))
    facts = HostProcesses(tmp_path).look([5])[5]
    assert (facts.name, facts.started_ticks, facts.has_ended) == ("python) Z 3 (x", 100, False)
    assert facts.pod == PodOfProcess(POD, "c" * 64)


def test_a_name_that_speaks_to_a_terminal_is_made_harmless(tmp_path: Path) -> None:
    """It is told in events, conditions and logs, and any tenant's process can call itself anything."""
    write_process(tmp_path, Program(5, pod_uid=POD, name="a\x1b[2J\nb\x9bc\u202ed"))
    assert HostProcesses(tmp_path).look([5])[5].name == "a?[2J?b?c?d"


@pytest.mark.parametrize(
    ("state", "flags", "threads", "has_ended"),
    [
        ("S", 0, 1, False),
        ("Z", 0, 1, True),
        ("X", 0, 0, True),
        ("D", 0x4, 1, True),
        ("Z", 0x4, 9, False),
        ("R", 0x400040, 1, False),
    ],
)
def test_who_has_ended(tmp_path: Path, state: str, flags: int, threads: int, *, has_ended: bool) -> None:
    """A process that gives back what it had has ended; one whose first thread alone has ended lives."""
    (tmp_path / "5").mkdir()
    fields = [state, "1", "5", "5", "0", "-1", str(flags), *["0"] * 10, str(threads), "0", "777", "0"]
    (tmp_path / "5/stat").write_text(f"5 (x) {' '.join(fields)}\n")
    facts = HostProcesses(tmp_path).look([5])[5]
    assert (facts.has_ended, facts.started_ticks, facts.pod) == (has_ended, 777, None)


def test_real_fields_are_where_they_are_looked_for() -> None:
    """A program with several threads says how many; this one does not exit."""
    ended = threading.Event()
    threads = [threading.Thread(target=ended.wait, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        assert int(fields[17]) >= 4
        assert not int(fields[6]) & 0x4
    finally:
        ended.set()
