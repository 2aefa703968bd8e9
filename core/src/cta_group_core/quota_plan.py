"""Which ResourceQuotas of a cohort may be written now, so that its sums hold whatever becomes of the writes.

At every moment, whatever subset of the writes reached the API server and in whatever order: what the namespaces of a
quota hold together is at most its groups plus what it may borrow, and what a cohort's quotas hold is at most what they
own together. Two exceptions are not made by a write: a person lowers a quota, and a namespace brings its pods along.

So lowering comes first, and a raise uses only what nobody holds in the same snapshot. What a lowering frees is free
once the next snapshot shows it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cta_group_core.quota_cohort import Member, entitle
from cta_group_core.quota_split import Share, targets_of


@dataclass(frozen=True, slots=True)
class Write:
    """Set the limit of one namespace (create the object where there is none)."""

    quota: str
    namespace: str
    hard: int


@dataclass(frozen=True, slots=True)
class MemberPlan:
    """What one quota's namespaces should have. Numbers in groups."""

    entitled: int
    """What its namespaces may have together."""
    targets: Mapping[str, int]
    moving: bool = False
    """Some limit of it is to be written now."""
    waiting: tuple[str, ...] = ()
    """Namespaces whose raise waits until others were seen to be lowered."""
    overcommitted: bool = False
    """Its pods hold more than it may have."""
    owed: int = 0
    """What it owns, needs and lacks, because it is lent out."""
    owed_least: int = 0
    """The part of that which would let one more pod in."""

    @property
    def is_settled(self) -> bool:
        """Tell whether every namespace has its target already."""
        return not self.moving and not self.waiting


@dataclass(frozen=True, slots=True)
class CohortPlan:
    """The way of a whole cohort to where it should be, as far as is safe now."""

    members: Mapping[str, MemberPlan]
    writes: tuple[Write, ...]
    """Lowering comes first. Each is safe, whether or not the others are made."""


def plan(members: Sequence[Member]) -> CohortPlan:
    """Decide about one cohort; a quota of no cohort is planned alone."""
    entitlements = entitle(members)
    targets = {one.name: targets_of(entitlements.parts[one.name], one.shares) for one in members}
    lowering = [
        Write(member.name, share.namespace, targets[member.name][share.namespace])
        for member in members
        for share in member.shares
        if share.hard is not None and targets[member.name][share.namespace] < share.hard
    ]
    raising, waiting = _raises(members, targets)
    writes = (*lowering, *raising)
    moving = {write.quota for write in writes}
    plans = {
        one.name: MemberPlan(
            entitled=entitlements.parts[one.name],
            targets=targets[one.name],
            moving=one.name in moving,
            waiting=tuple(space for quota, space in waiting if quota == one.name),
            overcommitted=one.kept > entitlements.parts[one.name],
            owed=entitlements.owed[one.name],
            owed_least=entitlements.least.get(one.name, 0),
        )
        for one in members
    }
    return CohortPlan(plans, writes)


def _raises(
    members: Sequence[Member], targets: Mapping[str, Mapping[str, int]]
) -> tuple[list[Write], list[tuple[str, str]]]:
    """Return the raises that nobody's room is needed for, and quota and namespace of those that wait."""
    total = sum(member.groups for member in members)
    free = total - sum(member.held for member in members)
    own_free = {member.name: member.most(total) - member.held for member in members}
    writes: list[Write] = []
    waiting: list[tuple[str, str]] = []
    for quota, share in sorted(_to_raise(members, targets), key=_urgency):
        target = targets[quota][share.namespace]
        room = max(0, min(own_free[quota] + share.held, free + max(share.held, share.inherited)))
        hard = target if target <= room else _part(share, room)
        if hard != target:
            waiting.append((quota, share.namespace))
        if hard is not None:
            own_free[quota] -= max(0, hard - share.held)
            free -= max(0, hard - max(share.held, share.inherited))
            writes.append(Write(quota, share.namespace, hard))
    return writes, waiting


def _to_raise(members: Sequence[Member], targets: Mapping[str, Mapping[str, int]]) -> list[tuple[str, Share]]:
    return [
        (member.name, share)
        for member in members
        for share in member.shares
        if share.hard is None or targets[member.name][share.namespace] > share.hard
    ]


def _urgency(one: tuple[str, Share]) -> tuple[bool, bool, str]:
    """Namespaces that nothing limits come first, then those where pods are denied."""
    _, share = one
    return (share.hard is not None, not share.denied, share.namespace)


def _part(share: Share, room: int) -> int | None:
    """Return a smaller limit for a namespace that has none yet, so that it has one at once; None: it must wait."""
    return room if share.hard is None and room >= share.kept else None
