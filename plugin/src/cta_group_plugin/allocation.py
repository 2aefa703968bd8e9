"""What kubelet is answered: which groups are preferred, and what a container with certain groups gets. Pure.

A fraction of a GPU gets the GPU, the pipe folder of its MPS daemon and its limits. Whole GPUs get the GPUs and nothing
of MPS. The numbers under ``CTA_GROUP_*`` are for people and programs in the container.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cta_group_core import names
from cta_group_core.errors import DoesNotFit
from cta_group_core.ids import GpuUuid, GroupId, by_gpu
from cta_group_core.placement import check_ids, choose_ids
from cta_group_core.slices import Slice
from cta_group_plugin.health import Faults
from cta_group_plugin.inventory import Offer, ServedGpu
from cta_group_plugin.ledger import Holder, HolderKind
from cta_group_plugin.settings import EnforcementSettings

PIPE_FOLDER: Final = "pipe"
"""Folder of a GPU's MPS sockets, inside the GPU's folder in the MPS folder of the node."""

_CLIENTS: Final = frozenset({HolderKind.LISTED, HolderKind.GRANTED})


@dataclass(frozen=True, slots=True)
class ContainerAnswer:
    """What the runtime adds to a container."""

    environment: Mapping[str, str]
    read_only_mounts: tuple[Path, ...] = ()
    """Folders of the host that the container sees at the same path."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that decide about an answer."""

    enforcement: EnforcementSettings
    mps_root: Path
    max_clients: int


def preferred_ids(
    offer: Offer,
    left_out: Collection[GpuUuid],
    *,
    available: Iterable[str],
    must_include: Iterable[str],
    groups: int,
) -> list[str]:
    """Return exactly ``groups`` ids, all on one GPU or on whole GPUs; raises RequestRefused otherwise.

    ``left_out`` are GPUs that nothing new goes to: unhealthy ones (kubelet may not have heard of it yet), and those
    with as many clients as they may have.
    """
    open_gpus = {uuid: (gpu.facts.index, gpu.units) for uuid, gpu in offer.by_uuid.items() if uuid not in left_out}
    chosen = choose_ids(
        open_gpus,
        available=[group_id for group_id in map(offer.ids.get, available) if group_id],
        must_include=parse_ids(offer, must_include),
        groups=groups,
    )
    return [str(group_id) for group_id in chosen]


def parse_ids(offer: Offer, texts: Iterable[str]) -> frozenset[GroupId]:
    """Return the groups that kubelet names; raises InvalidText for a text that is none."""
    return frozenset(offer.ids[text] if text in offer.ids else GroupId.parse(text) for text in texts)


def checked_gpus(offer: Offer, faults: Faults, ids: Collection[GroupId]) -> tuple[ServedGpu, ...]:
    """Return the GPUs that ``ids`` lie on, in order of index, or raise why no container may use them now."""
    for uuid in sorted({group_id.gpu for group_id in ids} & faults.keys()):
        raise DoesNotFit(f"GPU {uuid} is unhealthy: {faults[uuid].reason}")
    uuids = check_ids({uuid: gpu.units for uuid, gpu in offer.by_uuid.items()}, ids)
    return tuple(sorted((offer.by_uuid[uuid] for uuid in uuids), key=lambda gpu: gpu.facts.index))


def clients_on(gpu: GpuUuid, holders: Iterable[Holder], *, but: frozenset[GroupId] = frozenset()) -> int:
    """Return how many containers run on ``gpu``, without those that share a group with ``but`` (the same pod's)."""
    return sum(gpu in holder.gpus and holder.kind in _CLIENTS and holder.ids.isdisjoint(but) for holder in holders)


def check_clients(gpu: ServedGpu, ids: frozenset[GroupId], holders: Iterable[Holder], rules: Rules) -> None:
    """Raise DoesNotFit when one more container on ``gpu`` would be more than an MPS server takes."""
    others = clients_on(gpu.facts.uuid, holders, but=ids)
    if others >= rules.max_clients:
        raise DoesNotFit(
            f"GPU {gpu.facts.index} ({gpu.facts.uuid}) has {others} containers, and no more than "
            f"{rules.max_clients} may share a GPU; ask for larger shares or raise the limit of clients"
        )


def answer_for(gpus: Sequence[ServedGpu], ids: Collection[GroupId], rules: Rules) -> ContainerAnswer:
    """Return what a container with ``ids``, which lie on ``gpus``, gets."""
    if len(gpus) == 1:
        share = gpus[0].slice_of(len(ids))
        return _whole(gpus) if share.is_whole else _fraction(gpus[0], share, rules)
    return _whole(gpus)


def is_fraction(gpus: Sequence[ServedGpu], ids: Collection[GroupId]) -> bool:
    """Tell whether ``ids`` are a part of one GPU only."""
    return len(gpus) == 1 and not gpus[0].units.is_whole(len(ids))


def _whole(gpus: Sequence[ServedGpu]) -> ContainerAnswer:
    uuids = ",".join(gpu.facts.uuid for gpu in gpus)
    shares = [gpu.slice_of(gpu.units.capacity) for gpu in gpus]
    return ContainerAnswer(
        {
            names.ENV_VISIBLE_DEVICES: uuids,
            names.ENV_GPU_UUID: uuids,
            names.ENV_COUNT: str(sum(share.groups for share in shares)),
            names.ENV_CAPACITY: str(gpus[0].units.capacity),
            names.ENV_SM_COUNT: str(sum(share.sm_granted for share in shares)),
            names.ENV_MEMORY_MIB: str(sum(share.memory_mib for share in shares)),
        }
    )


def _fraction(gpu: ServedGpu, share: Slice, rules: Rules) -> ContainerAnswer:
    environment = {
        names.ENV_VISIBLE_DEVICES: str(gpu.facts.uuid),
        names.ENV_GPU_UUID: str(gpu.facts.uuid),
        names.ENV_COUNT: str(share.groups),
        names.ENV_CAPACITY: str(share.capacity),
        names.ENV_SM_COUNT: str(share.sm_granted if rules.enforcement.compute else gpu.units.sm_count),
        names.ENV_MEMORY_MIB: str(share.memory_mib),
    }
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


def pipe_folder(mps_root: Path, gpu: GpuUuid) -> Path:
    """Return the folder with the MPS sockets of a GPU, on the host and in containers."""
    return mps_root / gpu / PIPE_FOLDER


def largest_fractions(offer: Offer, holders: Iterable[Holder]) -> dict[GpuUuid, int]:
    """Return, for each GPU that is shared, the groups of its largest share; whole GPUs are left out."""
    largest: dict[GpuUuid, int] = {}
    for holder in holders:
        if holder.kind is HolderKind.UNEXPLAINED:
            continue
        for uuid, members in by_gpu(holder.ids).items():
            gpu = offer.by_uuid.get(uuid)
            if gpu and not gpu.units.is_whole(len(members)):
                largest[uuid] = max(largest.get(uuid, 0), len(members))
    return largest
