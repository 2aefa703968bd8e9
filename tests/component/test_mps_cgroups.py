"""Daemons in cgroups of their own, over folders that stand for the host's hierarchies; tests/node has real ones."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cta_group_core.ids import GpuUuid
from cta_group_plugin.errors import BadSetting, MpsUnavailable
from cta_group_plugin.mps.app import build_supervisor
from cta_group_plugin.mps.cgroups import DaemonCgroups
from cta_group_plugin.mps.folders import MpsFolders
from cta_group_plugin.mps.launcher import Launcher
from cta_group_plugin.mps.metrics import MpsMetrics
from cta_group_plugin.mps.program import simulated_program
from mps_supervising import ONE, Supervising
from simulated_mps import FAST, SimulatedNode, environment_of, eventually, is_alive

GPU = GpuUuid("GPU-7")
CLONE_NEWCGROUP = 0x02000000  # linux/sched.h


@pytest.fixture
def hierarchies(tmp_path: Path) -> list[Path]:
    """Make two hierarchies, one of them with cpusets as version 1 has them."""
    made = [tmp_path / "cpuset", tmp_path / "unified"]
    for hierarchy in made:
        hierarchy.mkdir()
    (made[0] / "cpuset.cpus").write_text("0-15\n")
    (made[0] / "cpuset.mems").write_text("0\n")
    return made


def test_a_process_is_moved_in_every_hierarchy(hierarchies: list[Path]) -> None:
    """Its id is written below the top of each, in a cgroup that is named after the GPU."""
    cgroups = DaemonCgroups(hierarchies)
    cgroups.take_out(4711, GPU)
    assert [(h / "cta-group-mps" / GPU / "cgroup.procs").read_text() for h in hierarchies] == ["4711\n", "4711\n"]
    assert cgroups.has(4711, GPU)
    assert not cgroups.has(47, GPU)
    assert not cgroups.has(4711, ONE)


def test_cpusets_are_those_of_the_host(hierarchies: list[Path]) -> None:
    """A version 1 cpuset is empty at first and takes no process then, so both levels get what the top has."""
    cpuset = hierarchies[0]
    for folder in (cpuset / "cta-group-mps", cpuset / "cta-group-mps" / GPU):
        folder.mkdir()
        for name in ("cpuset.cpus", "cpuset.mems"):
            (folder / name).write_text("\n")
    DaemonCgroups(hierarchies).take_out(1, GPU)
    assert (cpuset / "cta-group-mps" / "cpuset.cpus").read_text() == "0-15\n"
    assert (cpuset / "cta-group-mps" / GPU / "cpuset.mems").read_text() == "0\n"


def test_a_cgroup_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """The GPU and the place are named."""
    (tmp_path / "cta-group-mps").write_text("in the way")
    with pytest.raises(MpsUnavailable, match=rf"GPU {GPU}: .* cgroup {tmp_path}/cta-group-mps/{GPU}"):
        DaemonCgroups([tmp_path]).take_out(1, GPU)


def test_empty_cgroups_are_removed(tmp_path: Path) -> None:
    """The last daemon's end leaves nothing; a cgroup that something is in stays, whatever it is."""
    for gpu in (GPU, ONE):
        (tmp_path / "cta-group-mps" / gpu).mkdir(parents=True)
    cgroups = DaemonCgroups([tmp_path])
    cgroups.forget(GPU)
    assert [path.name for path in (tmp_path / "cta-group-mps").iterdir()] == [ONE]
    (tmp_path / "cta-group-mps" / ONE / "busy").mkdir()
    cgroups.forget(ONE)
    assert (tmp_path / "cta-group-mps" / ONE).exists()
    (tmp_path / "cta-group-mps" / ONE / "busy").rmdir()
    cgroups.forget(ONE)
    assert not (tmp_path / "cta-group-mps").exists()


def test_the_mounted_hierarchies_are_found() -> None:
    """Every cgroup file system of this machine below the folder is one, whatever the version; links are none."""
    found = DaemonCgroups.below(Path("/sys/fs/cgroup")).hierarchies
    assert found
    assert all((hierarchy / "cgroup.procs").exists() for hierarchy in found)


def test_a_folder_without_hierarchies_is_a_wrong_setting(mps_node: SimulatedNode, tmp_path: Path) -> None:
    """A supervisor that was told to let daemons outlive it does not start without being able to."""
    settings = replace(mps_node.settings, cgroup_root=tmp_path)
    with pytest.raises(BadSetting, match=f"--cgroup-root={tmp_path}: no cgroup hierarchy"):
        build_supervisor(settings, MpsMetrics("test"), FAST)


@pytest.mark.parametrize(("is_possible", "told"), [(True, 1), (False, 0)])
def test_a_daemon_serves_whether_or_not_it_could_be_moved(
    supervisors: Supervising, mps_node: SimulatedNode, tmp_path: Path, *, is_possible: bool, told: int
) -> None:
    """The metric says whether it will outlive the supervisor's container; its clients are served in both cases."""
    if not is_possible:
        (tmp_path / "cta-group-mps").write_text("in the way")
    program = simulated_program(mps_node.settings.environment)
    launcher = Launcher(program, DaemonCgroups([tmp_path]), supervisors.metrics)
    folders = MpsFolders.under(mps_node.root, ONE)
    daemon = launcher.start(folders)
    try:
        assert is_alive(daemon.process.pid)
        assert supervisors.count("mps_daemon_outlives_pod") == told
        successor = launcher.find(folders)
        assert successor is not None
        assert successor.process == daemon.process
        assert supervisors.count("mps_daemon_outlives_pod") == told
    finally:
        daemon.kill()


async def test_a_daemon_holds_nothing_of_its_starter_s_container(
    supervisors: Supervising, mps_node: SimulatedNode
) -> None:
    """Its streams are files of the host, it leads its session, and its folders are those of its GPU alone."""
    launcher = Launcher(simulated_program(mps_node.settings.environment), None, supervisors.metrics)
    daemon = launcher.start(MpsFolders.under(mps_node.root, ONE))
    try:
        opened = Path(f"/proc/{daemon.process.pid}/fd")
        streams = [str((opened / number).readlink()) for number in ("0", "1", "2")]
        log = mps_node.root / ONE / "log"
        assert streams == ["/dev/null", str(log / "daemon.out"), str(log / "daemon.out")]
        # The kernel lets a starter go on a moment before the environment of what it started can be read.
        await eventually(lambda: environment_of(daemon.process.pid) != {}, "the environment can be read")
        environment = environment_of(daemon.process.pid)
        assert environment["CUDA_MPS_PIPE_DIRECTORY"] == str(mps_node.pipe(ONE))
        assert environment["CUDA_MPS_LOG_DIRECTORY"] == str(log)
        assert environment["CUDA_VISIBLE_DEVICES"] == ONE
    finally:
        daemon.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="another cgroup namespace takes root")
def test_the_host_s_cgroup_namespace_is_joined() -> None:
    """A process in a namespace of its own is in the one of a process of the host afterwards; joined twice is joined."""
    program = f"""
import ctypes, os
from cta_group_plugin.mps.cgroups import join_host_cgroup_namespace
own = lambda: os.readlink("/proc/self/ns/cgroup")
host = own()
assert ctypes.CDLL(None).unshare({CLONE_NEWCGROUP:#x}) == 0 and own() != host
join_host_cgroup_namespace({os.getpid()})
join_host_cgroup_namespace({os.getpid()})
assert own() == host
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
