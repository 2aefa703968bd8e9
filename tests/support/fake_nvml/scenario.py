"""Says what the fake NVIDIA library answers.

A scenario is a text file of lines, read by ``world.c`` at every call:

=======================================  ==============================================================
``driver V`` / ``cuda N``                versions; N is 13000 for CUDA 13.0
``gpu``                                  begins a GPU; the next index; the lines below are about it
``uuid``, ``name``, ``pci``, ``minor``   texts and the number of the device file
``capability MAJOR MINOR``               compute capability
``cores N``                              CUDA cores; without the line the call is not supported
``memory TOTAL RESERVED USED``           bytes; without the line the calls are not supported
``link WIDTH MAX GENERATION MAX``        PCIe; without the line the calls are not supported
``mig CURRENT PENDING``                  1 is on; not supported on a GPU without profiles
``profile NUMBER ID SLICES INSTANCES SMS ENGINES MIB``  a GPU instance profile
``compute_mode N``, ``persistence N``    NVML's numbers; set ones are in ``.modes`` beside it
``events MASK``                          supported event types; without the line none
``recovery N``, ``remap 1``, ``ecc N``   recovery action, failed row remap, double-bit errors; without the line not told
``process PID BYTES KIND``               a process: 0 compute, 1 client of MPS, 2 graphics
``pair GPU GPU NVLINK ANCESTOR``         how two GPUs are connected, NVML's numbers; -1, or without the line: not told
``fail GPU CALL CODE``                   the call returns the code; GPU -1 any, CALL * every call on that GPU
``slow GPU CALL MILLISECONDS``           the call takes that long
``event GPU TYPE DATA``                  an event; the ones there before an event set was made are lost
=======================================  ==============================================================
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from cta_group_core.ids import GpuUuid, parse_gpu_uuid
from cta_group_core.profiles import GpuProfile, profile_named
from cta_group_core.units import ComputeCapability

_MIB = 1 << 20

XID = 8
"""NVML's event type of an XID."""

GPU_IS_LOST = 15
NOT_SUPPORTED = 3
NO_PERMISSION = 4
DRIVER_NOT_LOADED = 9
LIB_RM_VERSION_MISMATCH = 18
UNKNOWN = 999

# Source: captures of `nvidia-smi mig -lgip`; on the A100 the largest instance leaves ten SMs out.
_LARGEST_INSTANCE_SMS = {"a100-40": 98, "a100-80": 98}


@dataclass(frozen=True)
class InstanceProfile:
    """One GPU instance profile, as nvmlDeviceGetGpuInstanceProfileInfo tells it."""

    number: int
    id: int
    slices: int
    instances: int
    sms: int
    engines: int
    memory_mib: int

    def line(self) -> str:
        """Return the scenario line."""
        numbers = (self.number, self.id, self.slices, self.instances, self.sms, self.engines, self.memory_mib)
        return "profile " + " ".join(map(str, numbers))


@dataclass(frozen=True)
class FakeGpu:
    """One GPU of a scenario. ``None`` and empty: the library answers "not supported"."""

    uuid: str
    product: str
    capability: ComputeCapability
    cores: int | None
    memory_bytes: tuple[int, int, int] | None
    """Total, reserved, used."""
    pci: str
    minor: int = 0
    link: tuple[int, int, int, int] | None = (16, 16, 5, 5)
    """Width, widest, generation, highest."""
    profiles: tuple[InstanceProfile, ...] = ()
    mig: tuple[bool, bool] = (False, False)
    compute_mode: int = 0
    persistence: int = 1
    events: int = 65439
    recovery: int | None = 0
    remap_failed: bool | None = False
    double_bit: int | None = 0
    processes: tuple[tuple[int, int, int], ...] = ()
    """Process id, bytes, kind: 0 compute, 1 client of MPS, 2 graphics."""

    @classmethod
    def like(cls, profile: GpuProfile, index: int = 0) -> Self:
        """Return a GPU of a well-known product."""
        reserved, total = profile.nvml_reserved_mib * _MIB, profile.nvml_total_mib * _MIB
        generation = profile.pcie_generation
        return cls(
            uuid=f"GPU-00000000-0000-4000-8000-{index:012d}",
            product=profile.product,
            capability=profile.capability,
            cores=profile.cuda_cores,
            memory_bytes=(total, reserved, 0),
            pci=f"00000000:{index + 0x1B:02X}:00.0",
            minor=index,
            link=(profile.pcie_width, profile.pcie_width, generation, generation),
            profiles=_instance_profiles(profile),
        )

    @property
    def gpu_uuid(self) -> GpuUuid:
        """The UUID as the rules use it."""
        return parse_gpu_uuid(self.uuid)

    def lines(self) -> list[str]:
        """Return the scenario lines."""
        told = [
            f"uuid {self.uuid}",
            f"name {self.product}",
            f"pci {self.pci}",
            f"minor {self.minor}",
            f"capability {self.capability.major} {self.capability.minor}",
            f"mig {self.mig[0]:d} {self.mig[1]:d}",
            f"compute_mode {self.compute_mode}",
            f"persistence {self.persistence}",
            f"events {self.events}",
        ]
        if self.cores is not None:
            told.append(f"cores {self.cores}")
        if self.memory_bytes is not None:
            told.append("memory " + " ".join(map(str, self.memory_bytes)))
        if self.link is not None:
            told.append("link " + " ".join(map(str, self.link)))
        told += [profile.line() for profile in self.profiles]
        health = {"recovery": self.recovery, "remap": self.remap_failed, "ecc": self.double_bit}
        told += [f"{name} {value:d}" for name, value in health.items() if value is not None]
        told += [f"process {pid} {size} {kind:d}" for pid, size, kind in self.processes]
        return ["gpu", *told]


@dataclass(frozen=True)
class Scenario:
    """Everything the fake library answers; :meth:`write` makes it true, also under a process that runs."""

    gpus: tuple[FakeGpu, ...] = ()
    driver: str = "580.159.04"
    cuda: int = 13000
    rules: tuple[str, ...] = field(default=())
    """Lines that begin with pair, fail, slow or event."""

    def with_failure(self, call: str, code: int, gpu: int = -1) -> Self:
        """Return the scenario in which ``call`` returns ``code``."""
        return self._with(f"fail {gpu} {call} {code}")

    def with_lost_gpu(self, gpu: int) -> Self:
        """Return the scenario in which every call on one GPU says that it is lost."""
        return self.with_failure("*", GPU_IS_LOST, gpu)

    def with_slow(self, call: str, milliseconds: int, gpu: int = -1) -> Self:
        """Return the scenario in which ``call`` takes its time."""
        return self._with(f"slow {gpu} {call} {milliseconds}")

    def with_xid(self, gpu: int, xid: int) -> Self:
        """Return the scenario in which one more XID has happened."""
        return self._with(f"event {gpu} {XID} {xid}")

    def with_pair(self, one: int, other: int, *, nvlink: int = -1, ancestor: int = -1) -> Self:
        """Return the scenario in which two GPUs are so connected: a peer-to-peer status, and a topology level."""
        return self._with(f"pair {one} {other} {nvlink} {ancestor}")

    def write(self, path: Path) -> None:
        """Replace the scenario file at once, so that no reader sees half of it."""
        lines = [f"driver {self.driver}", f"cuda {self.cuda}"]
        for gpu in self.gpus:
            lines += gpu.lines()
        unfinished = path.with_suffix(".new")
        unfinished.write_text("\n".join([*lines, *self.rules]) + "\n", encoding="utf-8")
        unfinished.replace(path)

    def _with(self, rule: str) -> Self:
        return replace(self, rules=(*self.rules, rule))


def node_of(profile_name: str, count: int) -> Scenario:
    """Return a node with ``count`` GPUs of one well-known product."""
    profile = profile_named(profile_name)
    return Scenario(gpus=tuple(FakeGpu.like(profile, index) for index in range(count)))


def _instance_profiles(profile: GpuProfile) -> tuple[InstanceProfile, ...]:
    """Return a smallest and a largest instance, which is what the adapter has to choose from."""
    if profile.copy_engines is None:
        return ()
    largest = _LARGEST_INSTANCE_SMS.get(profile.name, profile.sm_count)
    memory_mib = profile.nvml_total_mib
    return (
        InstanceProfile(0, id=19, slices=1, instances=7, sms=largest // 8, engines=1, memory_mib=memory_mib // 8),
        InstanceProfile(
            4, id=0, slices=7, instances=1, sms=largest, engines=profile.copy_engines, memory_mib=memory_mib
        ),
    )
