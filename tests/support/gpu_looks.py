"""Looks at a GPU as a test describes them: which processes are there, whose they are, and how much memory is in use."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cta_group_core.names import DEFAULT_RESOURCE_NAME
from cta_group_plugin.adapters.checkpoint import CHECKPOINT
from cta_group_plugin.gpu_source import GpuUse, ProcessFacts
from cta_group_plugin.occupants import GpuLook
from cta_group_plugin.pod_cgroups import PodOfProcess
from cta_group_plugin.ports import GpuProcess, PodDevices

TOTAL_MIB = 81_079


@dataclass(frozen=True)
class Program:
    """One process on a GPU, as driver and kernel tell of it."""

    pid: int
    memory_mib: int | None = 1000
    pod_uid: str | None = None
    """None: it is in no pod."""
    in_mps: bool = False
    """The driver says that it is a client of MPS."""
    name: str = "python3"
    started: int = 100
    is_visible: bool = True
    """The host's kernel shows it."""
    has_ended: bool = False

    def ended(self) -> "Program":
        """Return it as the driver tells of it when it is gone."""
        return replace(self, is_visible=False)


def held(pod_uid: str, ids: Iterable[object], container: str = "main") -> PodDevices:
    """Return what kubelet's record says of one container."""
    return PodDevices(pod_uid, container, frozenset(map(str, ids)))


def look(
    at: float,
    *programs: Program,
    pods: tuple[PodDevices, ...] | None = (),
    extra_mib: int = 0,
    sees_all: bool = True,
) -> GpuLook:
    """Return a look; in use is what the programs have and ``extra_mib``."""
    use = use_of(programs, extra_mib=extra_mib)
    return GpuLook(at, use, seen_of(programs), sees_all, pods)


def use_of(programs: Iterable[Program], *, extra_mib: int = 0) -> GpuUse:
    """Return what the driver says of a GPU with these programs."""
    told = tuple(GpuProcess(one.pid, one.memory_mib, one.in_mps) for one in programs)
    return GpuUse(TOTAL_MIB, sum(one.memory_mib or 0 for one in told) + extra_mib, told)


def seen_of(programs: Iterable[Program]) -> Mapping[int, ProcessFacts]:
    """Return what the host's kernel says of programs."""
    return {
        one.pid: ProcessFacts(
            one.started, one.name, one.has_ended, PodOfProcess(one.pod_uid, "c" * 64) if one.pod_uid else None
        )
        for one in programs
        if one.is_visible
    }


def write_process(folder: Path, program: Program) -> None:
    """Write what a proc file system shows of a program; one that is not visible is taken away."""
    place = folder / str(program.pid)
    if not program.is_visible:
        for name in ("stat", "cgroup"):
            (place / name).unlink(missing_ok=True)
        return
    place.mkdir(parents=True, exist_ok=True)
    state = "Z" if program.has_ended else "S"
    fields = [state, *["0"] * 16, "1", "0", str(program.started), "0"]
    (place / "stat").write_text(f"{program.pid} ({program.name}) {' '.join(fields)}\n")
    pod = f"/kubepods/burstable/pod{program.pod_uid}/{'c' * 64}" if program.pod_uid else "/user.slice"
    (place / "cgroup").write_text(f"0::{pod}\n")


def write_record(folder: Path, held: Iterable[PodDevices]) -> None:
    """Write kubelet's own record of what pods hold into its folder of device plugins."""
    entries = [
        {
            "PodUID": one.pod_uid,
            "ContainerName": one.container,
            "ResourceName": DEFAULT_RESOURCE_NAME,
            "DeviceIDs": {"-1": sorted(one.ids)},
        }
        for one in held
    ]
    unfinished = folder / "record.new"
    unfinished.write_text(json.dumps({"Data": {"PodDeviceEntries": entries}, "Checksum": 0}))
    unfinished.replace(folder / CHECKPOINT)
