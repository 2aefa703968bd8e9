"""How the groups of one quota are shared between its namespaces.

What the API server enforces is ``status.hard`` of a ResourceQuota, which may differ from ``spec.hard`` for a moment, so
a namespace holds the larger of both. A limit is never below what the pods of the namespace hold, unless they hold more
than the quota has together (then nobody gets more, and the largest holders are lowered to one level), or pods of it are
being deleted to give back what was borrowed.

Room goes to denied pods first, whole pods only, then evenly. Limits that still do are left alone: a namespace whose
idle room is at least half of an even part keeps it, so that an ordinary pod creation moves nothing.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """One namespace of a quota as a snapshot shows it. All numbers in groups."""

    namespace: str
    hard: int | None
    """``spec.hard`` of its ResourceQuota; None while it has none, or one that another CTAQuota still owns."""
    enforced: int = 0
    """``status.hard``: what the API server goes by now."""
    used: int = 0
    denied: tuple[int, ...] = ()
    """Size of each pod that is kept from being created."""
    ending: int = 0
    """Part of ``used`` that is given back: pods that are being deleted for another quota of the cohort."""
    inherited: int = 0
    """What the ResourceQuota holds that another CTAQuota of the same cohort owns here until this one takes it over."""

    @property
    def held(self) -> int:
        """Groups that nobody else may be given while this snapshot is the truth."""
        limited = max(self.hard or 0, self.enforced)
        return max(limited, min(self.used, limited + self.ending))

    @property
    def kept(self) -> int:
        """Groups of the pods that stay."""
        return max(0, self.used - self.ending)


def targets_of(groups: int, shares: Sequence[Share]) -> dict[str, int]:
    """Return the limit that each namespace should have; they sum up to ``groups``. Same input, same answer."""
    ordered = sorted(shares, key=lambda share: share.namespace)
    if sum(share.kept for share in ordered) >= groups:
        return level(groups, {share.namespace: share.kept for share in ordered})
    floors = _floors(groups, ordered)
    if _still_does(groups, ordered, floors):
        return {share.namespace: share.hard or 0 for share in ordered}
    even, rest = divmod(groups - sum(floors.values()), max(1, len(ordered)))
    return {name: floor + even + (place < rest) for place, (name, floor) in enumerate(floors.items())}


def level(groups: int, wanted: Mapping[str, int]) -> dict[str, int]:
    """Give everyone what it wants, the largest cut to one level, so that the sum is at most ``groups``.

    The sum is ``groups`` when together they want as much.
    """
    left = groups
    parts: dict[str, int] = {}
    for place, (name, amount) in enumerate(sorted(wanted.items(), key=lambda one: (one[1], one[0]))):
        parts[name] = min(amount, left // (len(wanted) - place))
        left -= parts[name]
    return parts


def _floors(groups: int, shares: Sequence[Share]) -> dict[str, int]:
    """Return what each namespace holds plus its denied pods that can be let in, the smallest holder first."""
    floors = {share.namespace: share.kept for share in shares}
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
