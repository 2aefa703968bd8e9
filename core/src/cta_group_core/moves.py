"""Which one pod, moved to another GPU, would make room for a request that has none: fragmentation has a name then.

Advice for people: nothing is ever moved. That the pod's own terms allow another node is not checked.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cta_group_core.ids import GpuUuid, NodeName
from cta_group_core.rooms import GpuRoom


@dataclass(frozen=True, slots=True, order=True)
class Tenant:
    """A pod's share of one GPU, all its containers together."""

    groups: int
    namespace: str
    pod: str


@dataclass(frozen=True, slots=True)
class HeldGpu:
    """A GPU and who is on it."""

    node: NodeName
    room: GpuRoom
    tenants: Sequence[Tenant] = ()


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that is in the way."""

    tenant: Tenant
    node: NodeName
    index: int
    """Of its GPU."""

    def __str__(self) -> str:
        who = f"pod {self.tenant.pod} of namespace {self.tenant.namespace} ({self.tenant.groups} groups)"
        return f"moving {who} from GPU {self.index} of {self.node} to another GPU would make room"


def helpful_move(groups: int, gpus: Sequence[HeldGpu]) -> Move | None:
    """Return the smallest pod whose move makes room for ``groups`` on its GPU; None when one move is not enough."""
    places = _Places(gpus)
    found = [
        (tenant, gpu.node, gpu.room.index)
        for gpu in gpus
        if gpu.room.units.allows(groups) and gpu.room.units.capacity >= groups and not gpu.room.takes(groups)
        for tenant in gpu.tenants
        if _makes_room(groups, gpu.room, tenant) and places.elsewhere(tenant.groups, gpu.room.uuid)
    ]
    return Move(*min(found)) if found else None


def _makes_room(groups: int, room: GpuRoom, tenant: Tenant) -> bool:
    """Tell whether the request fits without the tenant. Where shares must be equal, only an empty GPU takes another."""
    free = room.free + tenant.groups
    if free < groups:
        return False
    return room.shares is None or room.shares <= {groups} or free == room.units.capacity


class _Places:
    """Which GPUs have room for a share of each size; asked for many tenants of few sizes."""

    def __init__(self, gpus: Sequence[HeldGpu]) -> None:
        self._gpus = gpus
        self._known: dict[int, tuple[GpuUuid, ...]] = {}

    def elsewhere(self, groups: int, besides: GpuUuid) -> bool:
        """Tell whether another GPU takes a share of that size."""
        if groups not in self._known:
            taking = (gpu.room.uuid for gpu in self._gpus if gpu.room.takes(groups) and gpu.room.units.allows(groups))
            self._known[groups] = tuple(_first_two(taking))
        return any(uuid != besides for uuid in self._known[groups])


def _first_two(uuids: Iterable[GpuUuid]) -> list[GpuUuid]:
    found: list[GpuUuid] = []
    for uuid in uuids:
        found.append(uuid)
        if len(found) == 2:  # noqa: PLR2004 - one of two is another one
            break
    return found


def tenants_by_gpu(held: Iterable[tuple[GpuUuid, str, str, int]]) -> Mapping[GpuUuid, tuple[Tenant, ...]]:
    """Add up what containers hold, given as GPU, namespace, pod and groups, to one share a pod and GPU."""
    sums: dict[GpuUuid, dict[tuple[str, str], int]] = {}
    for uuid, namespace, pod, groups in held:
        of_gpu = sums.setdefault(uuid, {})
        of_gpu[namespace, pod] = of_gpu.get((namespace, pod), 0) + groups
    return {
        uuid: tuple(Tenant(groups, namespace, pod) for (namespace, pod), groups in shares.items())
        for uuid, shares in sums.items()
    }
