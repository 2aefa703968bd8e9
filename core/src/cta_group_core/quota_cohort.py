"""How much of a cohort's groups each of its quotas may give its namespaces now: lending and borrowing.

A quota owns its ``groups``. What its pods do not need may be used by the others of its cohort, each up to its borrowing
limit above its own. The order, within what the cohort has together:

1. pods that exist keep what they hold; when they hold too much together, those who borrowed are cut first;
2. denied pods that fit what their quota owns; what is missing for them is kept for them, not lent out again;
3. denied pods that need borrowed groups, the quota that borrowed least first;
4. what is idle goes back to its owners, evenly; idle groups are never left with a borrower.

A quota of no cohort is a cohort of its own. Parts that still do are left alone, as in
:mod:`cta_group_core.quota_split`.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cta_group_core.quota_split import Share, level


@dataclass(frozen=True, slots=True)
class Member:
    """One quota of a cohort as a snapshot shows it. Numbers in groups."""

    name: str
    groups: int
    shares: tuple[Share, ...] = ()
    borrowing_limit: int | None = 0
    """Most that it may hold above ``groups``; None: whatever the others do not need."""
    leaving: int = 0
    """What ResourceQuotas of it still allow in namespaces that are not its own any more."""

    @property
    def kept(self) -> int:
        """Groups of its pods that stay."""
        return sum(share.kept for share in self.shares)

    @property
    def held(self) -> int:
        """Groups that its ResourceQuotas hold."""
        return self.leaving + sum(share.held for share in self.shares)

    def most(self, total: int) -> int:
        """Return what it may hold at most in a cohort that has ``total``."""
        return total if self.borrowing_limit is None else min(total, self.groups + self.borrowing_limit)


@dataclass(frozen=True, slots=True)
class Entitlements:
    """Who may give out how much. Numbers in groups."""

    parts: Mapping[str, int]
    """For each quota what its namespaces may have together; the sum is what the cohort has."""
    owed: Mapping[str, int]
    """For each quota what it owns, needs for denied pods and lacks, because it is lent out."""
    least: Mapping[str, int]
    """For each quota that is owed something, the part of it that would let one more pod in."""


def entitle(members: Sequence[Member]) -> Entitlements:
    """Divide what the cohort has between its quotas. Same input, same answer."""
    total = sum(member.groups for member in members)
    own = {member.name: member.groups for member in members}
    most = {member.name: member.most(total) for member in members}
    pods = {member.name: sorted(size for share in member.shares for size in share.denied) for member in members}
    parts = _kept(members, total)
    free = total - sum(parts.values())
    free = _serve(parts, pods, bounds=own, own=own, free=free)
    owed = {name: _fitting(pods[name], own[name] - part) for name, part in parts.items()}
    reserved = level(free, owed)
    least = {name: pods[name][0] - reserved[name] for name in owed if owed[name] > reserved[name]}
    for name, amount in reserved.items():
        parts[name] += amount
    free = _serve(parts, pods, bounds=most, own=own, free=free - sum(reserved.values()))
    ideal = _with_idle(members, parts, free)
    missing = {name: amount - reserved[name] for name, amount in owed.items()}
    return Entitlements(_as_they_are(members, parts, ideal) or ideal, missing, least)


def _kept(members: Sequence[Member], total: int) -> dict[str, int]:
    """Return what the pods that exist may keep; the sum is at most ``total``."""
    kept = {member.name: min(member.kept, member.most(total)) for member in members}
    if sum(kept.values()) <= total:
        return kept
    owned = {member.name: min(kept[member.name], member.groups) for member in members}
    borrowed = level(total - sum(owned.values()), {name: kept[name] - owned[name] for name in kept})
    return {name: owned[name] + borrowed[name] for name in kept}


def _serve(
    parts: dict[str, int],
    pods: Mapping[str, list[int]],
    *,
    bounds: Mapping[str, int],
    own: Mapping[str, int],
    free: int,
) -> int:
    """Add denied pods to ``parts`` as long as they fit, the smallest of the quota that is farthest below first.

    Takes served pods out of ``pods`` and returns what is left of ``free``.
    """
    turns = [(part - own[name], name) for name, part in parts.items()]
    heapq.heapify(turns)
    while turns:
        _, name = heapq.heappop(turns)
        if not pods[name] or pods[name][0] > min(free, bounds[name] - parts[name]):
            continue
        size = pods[name].pop(0)
        parts[name] += size
        free -= size
        heapq.heappush(turns, (parts[name] - own[name], name))
    return free


def _fitting(sizes: Sequence[int], room: int) -> int:
    """Return the sum of the smallest pods that fit together."""
    total = 0
    for size in sizes:
        if total + size > room:
            break
        total += size
    return total


def _with_idle(members: Sequence[Member], needs: Mapping[str, int], free: int) -> dict[str, int]:
    """Give what is idle back to its owners, evenly; to those that have no namespace only what the others do not own."""
    parts = dict(needs)
    for active in (True, False):
        rooms = {one.name: max(0, one.groups - needs[one.name]) for one in members if bool(one.shares) is active}
        for name, amount in level(free, rooms).items():
            parts[name] += amount
            free -= amount
    return parts


def _as_they_are(
    members: Sequence[Member], needs: Mapping[str, int], ideal: Mapping[str, int]
) -> dict[str, int] | None:
    """Return the parts as their limits are now, when those still do: needs met, nothing idle borrowed, even enough."""
    now: dict[str, int] = {}
    for member in members:
        if not member.shares:
            continue
        if any(share.hard is None for share in member.shares):
            return None
        now[member.name] = sum(share.hard or 0 for share in member.shares)
    absent = {member.name: member.groups for member in members if not member.shares}
    rest = sum(member.groups for member in members) - sum(now.values())
    if not 0 <= rest <= sum(absent.values()):
        return None
    own = {member.name: member.groups for member in members}
    for name, part in now.items():
        least = needs[name] + (ideal[name] - needs[name]) // 2
        if not least <= part <= max(own[name], needs[name]):
            return None
    return {**now, **level(rest, absent)}
