"""How the groups of one quota are shared between its namespaces, and which writes may be made now.

Two rules hold at every moment, whatever subset of the writes reached the API server and in whatever order:

- The limits of the namespaces together are at most the groups of the quota. What the API server enforces is
  ``status.hard``, which follows ``spec.hard`` a moment later, so a namespace holds the larger of both, and a raise uses
  only what no namespace holds in the same snapshot. Lowering frees groups once the next snapshot shows it.
- A limit is never below what the pods of the namespace hold, unless they hold more than the groups of the quota
  together (then nobody gets more, and the largest holders are lowered to one level).

Room goes to denied pods first, whole pods only, then evenly. Limits that still do are left alone: a namespace whose
idle room is at least half of an even part keeps it, so that an ordinary pod creation moves nothing.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """One namespace of a quota as a snapshot shows it. All numbers in groups."""

    namespace: str
    hard: int | None
    """``spec.hard`` of its ResourceQuota; None while it has none."""
    enforced: int = 0
    """``status.hard``: what the API server goes by now."""
    used: int = 0
    denied: tuple[int, ...] = ()
    """Size of each pod that is kept from being created."""

    @property
    def held(self) -> int:
        """Groups that nobody else may be given while this snapshot is the truth."""
        return max(self.hard or 0, self.enforced)


@dataclass(frozen=True, slots=True)
class Write:
    """Set the limit of one namespace (create the object where there is none)."""

    namespace: str
    hard: int


@dataclass(frozen=True, slots=True)
class Split:
    """What each namespace should have, and the part of the way there that is safe now: lowering comes first."""

    targets: Mapping[str, int]
    writes: tuple[Write, ...]
    overcommitted: bool
    """Pods hold more than the groups of the quota."""
    waiting: tuple[str, ...]
    """Namespaces whose raise waits until others were seen to be lowered."""

    @property
    def is_settled(self) -> bool:
        """Tell whether every namespace has its target already."""
        return not self.writes and not self.waiting


def split(groups: int, shares: Sequence[Share], *, leaving: int = 0) -> Split:
    """Share ``groups`` between ``shares``. ``leaving``: groups that objects about to be deleted still hold."""
    targets = targets_of(groups, shares)
    lowered = [share for share in shares if share.hard is not None and targets[share.namespace] < share.hard]
    raised = [share for share in shares if share.hard is None or targets[share.namespace] > share.hard]
    writes = [Write(share.namespace, targets[share.namespace]) for share in lowered]
    free = groups - leaving - sum(share.held for share in shares)
    waiting: list[str] = []
    for share in sorted(raised, key=lambda share: (not share.denied, share.namespace)):
        cost = max(0, targets[share.namespace] - share.held)
        if cost > max(0, free):
            waiting.append(share.namespace)
            continue
        free -= cost
        writes.append(Write(share.namespace, targets[share.namespace]))
    return Split(targets, tuple(writes), sum(share.used for share in shares) > groups, tuple(waiting))


def targets_of(groups: int, shares: Sequence[Share]) -> dict[str, int]:
    """Return the limit that each namespace should have; they sum up to ``groups``. Same input, same answer."""
    ordered = sorted(shares, key=lambda share: share.namespace)
    if sum(share.used for share in ordered) >= groups:
        return _level(groups, ordered)
    floors = _floors(groups, ordered)
    if _still_does(groups, ordered, floors):
        return {share.namespace: share.hard or 0 for share in ordered}
    even, rest = divmod(groups - sum(floors.values()), max(1, len(ordered)))
    return {name: floor + even + (place < rest) for place, (name, floor) in enumerate(floors.items())}


def _floors(groups: int, shares: Sequence[Share]) -> dict[str, int]:
    """Return what each namespace holds plus its denied pods that can be let in, the smallest holder first."""
    floors = {share.namespace: share.used for share in shares}
    free = groups - sum(floors.values())
    sizes_left = {share.namespace: sorted(share.denied, reverse=True) for share in shares}
    turns = [(floor, name) for name, floor in floors.items()]
    heapq.heapify(turns)
    while turns:
        _, name = heapq.heappop(turns)
        sizes = sizes_left[name]
        if not sizes or sizes[-1] > free:
            continue
        size = sizes.pop()  # the smallest that is left
        free -= size
        floors[name] += size
        heapq.heappush(turns, (floors[name], name))
    return floors


def _still_does(groups: int, shares: Sequence[Share], floors: Mapping[str, int]) -> bool:
    """Tell whether the limits that are there give everyone what it needs, and idle room that is even enough."""
    if sum(share.hard or 0 for share in shares) != groups:
        return False
    fair = (groups - sum(floors.values())) // max(1, len(shares)) // 2
    return all(share.hard is not None and share.hard - floors[share.namespace] >= fair for share in shares)


def _level(groups: int, shares: Iterable[Share]) -> dict[str, int]:
    """Give everyone what it holds, the largest holders cut to one level, so that the sum is ``groups``."""
    left = groups
    by_use = sorted(shares, key=lambda share: (share.used, share.namespace))
    targets: dict[str, int] = {}
    for place, share in enumerate(by_use):
        targets[share.namespace] = min(share.used, left // (len(by_use) - place))
        left -= targets[share.namespace]
    return targets
