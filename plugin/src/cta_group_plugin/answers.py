"""What a container with certain groups is given. Pure.

A fraction of a GPU gets the GPU, the pipe folder of its MPS daemon and its limits. Whole GPUs get the GPUs and nothing
of MPS. The numbers under ``CTA_GROUP_*`` are for people and programs in the container.

kubelet stores an answer and replays it at every restart of the container, for the life of its pod. So it holds nothing
but names and paths that stay true over upgrades and reboots. With ``envvar`` the limits themselves are in it, and the
pod's own environment would win over them (an admission policy refuses that). With ``cdi`` it holds names of CDI
devices, whose edits (:mod:`cta_group_plugin.cdi`) win over the pod's own environment.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cta_group_core import names
from cta_group_core.ids import GpuUuid, GroupId
from cta_group_core.slices import Slice
from cta_group_plugin.inventory import ServedGpu
from cta_group_plugin.settings import EnforcementSettings

PIPE_FOLDER: Final = "pipe"
"""Folder of a GPU's MPS sockets, inside the GPU's folder in the MPS folder of the node."""
NO_DEVICES: Final = "void"
"""Value of NVIDIA_VISIBLE_DEVICES by which the NVIDIA runtime adds nothing of its own (container toolkit)."""


@dataclass(frozen=True, slots=True)
class ContainerAnswer:
    """What the runtime adds to a container."""

    environment: Mapping[str, str]
    read_only_mounts: tuple[Path, ...] = ()
    """Folders of the host that the container sees at the same path."""
    cdi_devices: tuple[str, ...] = ()
    """Qualified names; the runtime finds what they mean in its CDI folders."""


@dataclass(frozen=True, slots=True)
class CdiRules:
    """How a container gets a GPU when answers name CDI devices."""

    gpu_kind: str = "nvidia.com/gpu"
    """Kind of the CDI devices that bring a GPU and the driver's libraries, each named by its UUID. Empty: our own
    devices bring the GPU's device files, and the libraries come from elsewhere."""
    is_simulated: bool = False
    """There is no GPU that could be given."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that decide about an answer."""

    enforcement: EnforcementSettings
    mps_root: Path
    max_clients: int
    cdi: CdiRules | None = None
    """``None``: containers get everything through their environment."""


def answer_for(gpus: Sequence[ServedGpu], ids: Collection[GroupId], rules: Rules) -> ContainerAnswer:
    """Return what a container with ``ids``, which lie on ``gpus``, gets."""
    if rules.cdi:
        return _by_name(gpus, len(ids), rules.cdi)
    if len(gpus) == 1:
        return slice_given(gpus[0], len(ids), rules)
    return _whole(gpus)


def slice_given(gpu: ServedGpu, groups: int, rules: Rules) -> ContainerAnswer:
    """Return what ``groups`` of one GPU are in a container, whichever way it gets there."""
    share = gpu.slice_of(groups)
    return _whole([gpu]) if share.is_whole else _fraction(gpu, share, rules)


def pipe_folder(mps_root: Path, gpu: GpuUuid) -> Path:
    """Return the folder with the MPS sockets of a GPU, on the host and in containers."""
    return mps_root / gpu / PIPE_FOLDER


def slice_device(gpu: GpuUuid, groups: int) -> str:
    """Return the name of the CDI device for ``groups`` of a GPU; it means the same for ever."""
    return f"{gpu}-{groups}"


def _by_name(gpus: Sequence[ServedGpu], groups: int, cdi: CdiRules) -> ContainerAnswer:
    ours = [f"{names.CDI_KIND}={slice_device(gpu.facts.uuid, groups // len(gpus))}" for gpu in gpus]
    theirs = [f"{cdi.gpu_kind}={gpu.facts.uuid}" for gpu in gpus] if cdi.gpu_kind and not cdi.is_simulated else []
    # Said here too, for a runtime that knows no CDI: its image may ask for every GPU, which would be without limits.
    environment = {names.ENV_VISIBLE_DEVICES: NO_DEVICES}
    if gpus[0].units.is_whole(groups // len(gpus)):
        environment |= _numbers_of_whole(gpus)
    return ContainerAnswer(environment, cdi_devices=(*ours, *theirs))


def _whole(gpus: Sequence[ServedGpu]) -> ContainerAnswer:
    numbers = _numbers_of_whole(gpus)
    return ContainerAnswer({names.ENV_VISIBLE_DEVICES: numbers[names.ENV_GPU_UUID], **numbers})


def _numbers_of_whole(gpus: Sequence[ServedGpu]) -> dict[str, str]:
    shares = [gpu.slice_of(gpu.units.capacity) for gpu in gpus]
    numbers = {
        names.ENV_GPU_UUID: ",".join(gpu.facts.uuid for gpu in gpus),
        names.ENV_COUNT: str(sum(share.groups for share in shares)),
        names.ENV_CAPACITY: str(gpus[0].units.capacity),
        names.ENV_SM_COUNT: str(sum(share.sm_granted for share in shares)),
    }
    if all(gpu.memory_total_mib for gpu in gpus):
        numbers[names.ENV_MEMORY_MIB] = str(sum(share.memory_mib for share in shares))
    return numbers


def _fraction(gpu: ServedGpu, share: Slice, rules: Rules) -> ContainerAnswer:
    environment = {
        names.ENV_VISIBLE_DEVICES: str(gpu.facts.uuid),
        names.ENV_GPU_UUID: str(gpu.facts.uuid),
        names.ENV_COUNT: str(share.groups),
        names.ENV_CAPACITY: str(share.capacity),
        names.ENV_SM_COUNT: str(share.sm_granted if rules.enforcement.compute else gpu.units.sm_count),
    }
    if gpu.memory_total_mib:
        environment[names.ENV_MEMORY_MIB] = str(share.memory_mib)
    if not rules.enforcement.uses_mps:
        return ContainerAnswer(environment)
    pipe = pipe_folder(rules.mps_root, gpu.facts.uuid)
    return ContainerAnswer(environment | _limits(gpu, share, rules, pipe), read_only_mounts=(pipe,))


def _limits(gpu: ServedGpu, share: Slice, rules: Rules, pipe: Path) -> dict[str, str]:
    limits = {names.ENV_MPS_PIPE_DIRECTORY: str(pipe)}
    if rules.enforcement.compute:
        limits[names.ENV_MPS_PERCENTAGE] = str(share.sm_percent)
    if rules.enforcement.memory:
        limits[names.ENV_MPS_MEMORY_LIMIT] = f"{gpu.facts.uuid}={share.memory_mib}M"
    return limits
