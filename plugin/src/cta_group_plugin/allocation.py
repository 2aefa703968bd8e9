"""Which groups a container may have: those that are preferred for it, and whether it may get others. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from cta_group_core.compatibility.enforcement import most_mps_clients
from cta_group_core.compatibility.versions import CudaVersion, parsed_or_none
from cta_group_core.errors import DoesNotFit, InvalidText
from cta_group_core.ids import GpuUuid, GroupId, by_gpu
from cta_group_core.placement import check_ids, choose_ids
from cta_group_plugin.health import Faults, is_out
from cta_group_plugin.inventory import Offer, ServedGpu
from cta_group_plugin.ledger import Holder, HolderKind
from cta_group_plugin.ports import Inventory

Shares = Mapping[GpuUuid, frozenset[int]]
"""Sizes of the shares that are held on each GPU; one that is not named has none."""

_CLIENTS: Final = frozenset({HolderKind.LISTED, HolderKind.GRANTED})


def preferred_ids(
    offer: Offer,
    left_out: Collection[GpuUuid],
    *,
    available: Iterable[str],
    must_include: Iterable[str],
    groups: int,
    shares: Shares | None = None,
    holders: Iterable[Holder] = (),
) -> list[str]:
    """Return exactly ``groups`` ids, all on one GPU or on whole GPUs; raises RequestRefused otherwise.

    ``left_out`` are GPUs that nothing new goes to: unhealthy ones (kubelet may not have heard of it yet), and those
    with as many clients as they may have. ``shares``, where a GPU serves one size at a time: what others hold.
    """
    open_gpus = {uuid: (gpu.facts.index, gpu.units) for uuid, gpu in offer.by_uuid.items() if uuid not in left_out}
    available = list(available)
    strays = strays_in(offer, available, holders)
    chosen = choose_ids(
        open_gpus,
        available=[*(offer.ids[text] for text in available if text in offer.ids), *strays],
        must_include=parse_ids(offer, must_include),
        groups=groups,
        shares=shares,
        links=offer.links,
    )
    return [strays.get(group_id) or offer.texts.text_of(group_id) for group_id in chosen]


def parse_ids(offer: Offer, texts: Iterable[str]) -> frozenset[GroupId]:
    """Return the groups that kubelet names; raises InvalidText for a text that is none."""
    return frozenset(map(offer.group_of, texts))


def ids_of_container(offer: Offer, texts: Sequence[str]) -> frozenset[GroupId]:
    """Return the groups that a container gets; raises InvalidText for a text that is none, or that means one again.

    A group has two texts while the form of ids changes. A container that got both would have less than it asked for.
    """
    ids = parse_ids(offer, texts)
    if len(ids) < len(texts):
        raise InvalidText(f"{len(texts)} device ids name {len(ids)} groups: each group can be given once")
    return ids


def understood(offer: Offer, texts: Iterable[str]) -> frozenset[GroupId]:
    """Return the groups that kubelet names, without the texts that are none: another plugin's under our name."""
    found: set[GroupId] = set()
    for text in texts:
        with suppress(InvalidText):
            found.add(offer.group_of(text))
    return frozenset(found)


def strays_in(offer: Offer, texts: Iterable[str], holders: Iterable[Holder]) -> Mapping[GroupId, str]:
    """Return the ids that kubelet has from an earlier list than the newest, where their groups had another text.

    A group that somebody holds is left out: kubelet may have given it to them by that other text.
    """
    strays: dict[GroupId, str] = {}
    for text in texts:
        if text not in offer.ids:
            with suppress(InvalidText):  # of another plugin under our name
                strays[offer.texts.parse(text)] = text
    for holder in holders if strays else ():
        for group_id in strays.keys() & holder.ids:
            del strays[group_id]
    return strays


def strays_taken(offer: Offer, texts: Iterable[str], holders: Iterable[Holder]) -> Collection[str]:
    """Return those of ``texts`` that are strays; raise DoesNotFit for one whose group somebody holds."""
    not_offered = [text for text in texts if text not in offer.ids]
    strays = strays_in(offer, not_offered, holders)
    for group_id, text in zip(map(offer.group_of, not_offered), not_offered, strict=True):
        if group_id not in strays:
            now = offer.texts.text_of(group_id)
            raise DoesNotFit(f"{text} is held by another container, to which kubelet gave it as {now}")
    return strays.values()


def checked_gpus(
    offer: Offer, faults: Faults, ids: Collection[GroupId], shares: Shares | None = None
) -> tuple[ServedGpu, ...]:
    """Return the GPUs that ``ids`` lie on, in order of index, or raise why no container can use them.

    A GPU that is only held back until more is known is no reason: a container of it waits before it starts. ``shares``
    as for :func:`preferred_ids`.
    """
    for uuid in sorted({group_id.gpu for group_id in ids}):
        if is_out(faults.get(uuid)):
            raise DoesNotFit(f"GPU {uuid} is unhealthy: {faults[uuid].reason}")
        if withheld := offer.withheld_by_uuid.get(uuid):
            raise DoesNotFit(f"GPU {withheld.facts.index} ({uuid}) offers no groups any more: {withheld.reason}")
    uuids = check_ids({uuid: gpu.units for uuid, gpu in offer.by_uuid.items()}, ids, shares=shares)
    return tuple(sorted((offer.by_uuid[uuid] for uuid in uuids), key=lambda gpu: gpu.facts.index))


def check_start(gpus: Iterable[ServedGpu], faults: Faults) -> None:
    """Raise DoesNotFit when a container must not start on one of ``gpus`` yet. MPS is asked by whoever needs it."""
    for gpu in gpus:
        fault = faults.get(gpu.facts.uuid)
        if fault and not fault.whole:
            raise DoesNotFit(f"GPU {gpu.facts.index} ({gpu.facts.uuid}) is {fault.phase.lower()}: {fault.reason}")


def shares_held(holders: Iterable[Holder], *, but: Collection[GroupId] = ()) -> Shares:
    """Return the sizes of the shares on each GPU, without those that share a group with ``but`` (the same pod's)."""
    shares: dict[GpuUuid, frozenset[int]] = {}
    for holder in holders:
        if holder.kind is not HolderKind.UNEXPLAINED and holder.ids.isdisjoint(but):
            for gpu, members in by_gpu(holder.ids).items():
                shares[gpu] = shares.get(gpu, frozenset()) | {len(members)}
    return shares


def clients_on(gpu: GpuUuid, holders: Iterable[Holder], *, but: frozenset[GroupId] = frozenset()) -> int:
    """Return how many containers run on ``gpu``, without those that share a group with ``but`` (the same pod's)."""
    return sum(gpu in holder.gpus and holder.kind in _CLIENTS and holder.ids.isdisjoint(but) for holder in holders)


def clients_allowed(setting: int, inventory: Inventory | None) -> int:
    """Return how many containers may share a GPU: the setting, or when it is 0 what the driver's MPS server takes."""
    told = inventory.cuda_version if inventory else None
    return setting or most_mps_clients(parsed_or_none(CudaVersion.parse, told))


def check_clients(gpu: ServedGpu, ids: frozenset[GroupId], holders: Iterable[Holder], most: int) -> None:
    """Raise DoesNotFit when one more container on ``gpu`` would be more than ``most``."""
    others = clients_on(gpu.facts.uuid, holders, but=ids)
    if others >= most:
        raise DoesNotFit(
            f"GPU {gpu.facts.index} ({gpu.facts.uuid}) has {others} containers, and no more than "
            f"{most} may share a GPU; ask for larger shares or raise the limit of clients"
        )


def is_fraction(gpus: Sequence[ServedGpu], ids: Collection[GroupId]) -> bool:
    """Tell whether ``ids`` are a part of one GPU only."""
    return len(gpus) == 1 and not gpus[0].units.is_whole(len(ids))


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


def whole_gpus(offer: Offer, holders: Iterable[Holder]) -> frozenset[GpuUuid]:
    """Return the GPUs that one tenant has whole, alone or with others."""
    whole: set[GpuUuid] = set()
    for holder in holders:
        for uuid, members in by_gpu(holder.ids).items():
            if (gpu := offer.by_uuid.get(uuid)) and gpu.units.is_whole(len(members)):
                whole.add(uuid)
    return frozenset(whole)
