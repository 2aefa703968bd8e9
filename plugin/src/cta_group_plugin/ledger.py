"""Who holds which group: kubelet's own account, and what was handed out since it was read.

kubelet is the only one who knows, and says it in three ways, none of them complete:

* ``List`` of its pod-resources socket names each container and its groups, but never an ordinary init container, whose
  groups stay taken until its pod is gone;
* ``GetPreferredAllocation`` carries every group that is free at that moment, but only when a pod comes;
* ``Allocate`` says what it takes, but not for whom.

The rule. A container in the newest List holds its groups. A *grant* (the groups of one Allocate) is held as well, until
one of these ends it:

1. kubelet offers one of its groups as free;
2. a List that began after the grant contains all of it: from then on the List speaks for it. When the List contains
   only a part (an app container that reuses some groups of its init container), the rest is held as long as that part;
3. a later List contains none of it. Its pod then holds groups in init containers only, or never ran. The pods that came
   with the grant and are listed without groups are its candidates: the grant ends when one of them goes, at once when
   there is none.

Groups that kubelet does not offer and that nobody is known to hold become a grant of unknown age (an init container
from before this process started). A wrong guess of rule 3 is put right by kubelet's next offer, in both directions.
"""

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Self

from cta_group_core.ids import GpuUuid, GroupId, by_gpu
from cta_group_plugin.ports import Account, Holding, PodName

_ADMISSION_SECONDS: Final = 2.0
"""kubelet knows a pod this long before its groups are handed out, at most; measured: milliseconds."""
_NOBODY_KNOWS: Final = float("-inf")


class HolderKind(Enum):
    """How it is known that somebody holds groups."""

    LISTED = "listed"
    """kubelet lists the container."""
    GRANTED = "granted"
    """Allocate handed the groups out, and kubelet has not said yet to whom."""
    REST = "rest"
    """An init container's groups, of which an app container holds a part: the two never run at the same time."""
    DOUBTFUL = "doubtful"
    """kubelet's record has the container, and nobody can tell whether its pod has ended."""
    UNEXPLAINED = "unexplained"
    """kubelet does not offer the groups, and nobody is known to hold them."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Somebody who holds groups."""

    kind: HolderKind
    ids: frozenset[GroupId]
    gpus: frozenset[GpuUuid]
    container: Holding | None = None
    """Set when the kind is ``LISTED``."""


@dataclass(slots=True)
class _Grant:
    ids: frozenset[GroupId]
    at: float
    """Moment of the Allocate on the caller's monotonic clock, seconds; minus infinity when nobody knows."""
    gpus: frozenset[GpuUuid]
    is_listed_in_part: bool = False
    candidates: frozenset[PodName] | None = None

    @classmethod
    def of(cls, ids: Collection[GroupId], at: float) -> Self:
        return cls(frozenset(ids), at, _gpus_of(ids))

    def holder(self) -> Holder:
        return Holder(self._kind(), self.ids, self.gpus)

    def _kind(self) -> HolderKind:
        if self.is_listed_in_part:
            return HolderKind.REST
        return HolderKind.UNEXPLAINED if self.at == _NOBODY_KNOWS else HolderKind.GRANTED


def _gpus_of(ids: Collection[GroupId]) -> frozenset[GpuUuid]:
    return frozenset(group_id.gpu for group_id in ids)


@dataclass(slots=True)
class Ledger:
    """The account of one node. Not thread safe; times are seconds of one monotonic clock."""

    _listed: tuple[Holder, ...] = ()
    _listed_at: float = _NOBODY_KNOWS
    _grants: list[_Grant] = field(default_factory=list)
    _first_seen: dict[PodName, float] = field(default_factory=dict)

    def holders(self) -> tuple[Holder, ...]:
        """Return everybody who holds groups now."""
        return (*self._listed, *(grant.holder() for grant in self._grants))

    def held(self) -> frozenset[GroupId]:
        """Return every group that somebody holds."""
        return frozenset().union(*(holder.ids for holder in self.holders()))

    def granted(self, ids: Collection[GroupId], *, now: float) -> None:
        """Note that Allocate hands out ``ids``; an older grant within them is the same one, asked for again.

        Groups of a listed container are given to nobody else as long as its pod lives, so one that had any has gone.
        """
        self._listed = tuple(holder for holder in self._listed if holder.ids.isdisjoint(ids))
        self._grant(ids, now=now)

    def _grant(self, ids: Collection[GroupId], *, now: float) -> None:
        new = _Grant.of(ids, now)
        self._grants = [*(grant for grant in self._grants if not grant.ids <= new.ids), new]

    def started(self, ids: Collection[GroupId], *, now: float) -> None:
        """Note that a container with ``ids`` is about to start, which may be one that nobody remembers."""
        if not any(holder.ids.issuperset(ids) for holder in self.holders()):
            self._grant(ids, now=now)

    def offered(self, free: AbstractSet[GroupId], *, of: AbstractSet[GroupId], at: float) -> None:
        """Note that kubelet offered ``free`` as free at ``at``, out of the groups ``of`` that it could offer.

        What is newer than the offer stands: later grants, and a List that was asked for later. That List does not save
        a grant from before the offer: it may list somebody who came since with a part of the same groups.
        """
        self._grants = [grant for grant in self._grants if grant.at >= at or grant.ids.isdisjoint(free)]
        if at <= self._listed_at:
            return
        self._listed = tuple(holder for holder in self._listed if holder.ids.isdisjoint(free))
        unexplained = by_gpu(of - free - self.held())
        self._grants += (_Grant.of(ids, _NOBODY_KNOWS) for ids in unexplained.values())

    def listed(self, account: Account, *, asked_at: float) -> None:
        """Note kubelet's answer to a List that was asked for at ``asked_at``."""
        self._listed_at = asked_at
        self._listed = tuple(
            Holder(HolderKind.LISTED, holding.ids, _gpus_of(holding.ids), holding) for holding in account.holdings
        )
        self._first_seen = {pod: self._first_seen.get(pod, asked_at) for pod in account.pods}
        ids = frozenset().union(*(holder.ids for holder in self._listed))
        without = account.pods - {holding.pod for holding in account.holdings}
        self._grants = [
            grant for grant in self._grants if grant.at >= asked_at or self._lives(grant, ids, frozenset(without))
        ]

    def _lives(self, grant: _Grant, listed: frozenset[GroupId], without_groups: frozenset[PodName]) -> bool:
        if not grant.ids.isdisjoint(listed):
            grant.is_listed_in_part = True
            return not grant.ids <= listed
        if grant.is_listed_in_part:
            return False
        if grant.candidates is None:
            grant.candidates = frozenset(pod for pod in without_groups if self._came_with(pod, grant))
            return bool(grant.candidates)
        return grant.candidates <= self._first_seen.keys()

    def _came_with(self, pod: PodName, grant: _Grant) -> bool:
        return self._first_seen[pod] >= grant.at - _ADMISSION_SECONDS
