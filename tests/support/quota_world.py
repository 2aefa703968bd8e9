"""A model of a cohort: namespaces with pods, their ResourceQuotas as an API server keeps them, an operator's writes.

It knows what matters about ResourceQuota and nothing else: ``spec.hard`` is copied to ``status.hard`` some time later,
a pod is charged at its creation against ``status.hard`` (which limits nothing while it is not there), each change gives
the object a new version, and a write is taken only at the version that it was decided upon.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from cta_group_core.quota_cohort import Member
from cta_group_core.quota_plan import CohortPlan, plan
from cta_group_core.quota_split import Share


@dataclass
class Limit:
    """A ResourceQuota."""

    owner: str
    hard: int
    enforced: int | None = None
    version: int = 0

    @property
    def held(self) -> int:
        """What it allows, or may allow until its controller has seen the newest limit."""
        return max(self.hard, self.enforced or 0)


@dataclass
class Space:
    """A namespace."""

    quota: str | None
    pods: list[int] = field(default_factory=list)
    denied: list[int] = field(default_factory=list)
    limit: Limit | None = None

    @property
    def used(self) -> int:
        """Groups of its pods."""
        return sum(self.pods)


@dataclass
class Quota:
    """A CTAQuota."""

    groups: int
    borrowing_limit: int | None = None


@dataclass
class Pending:
    """A write that the operator decided upon and has not made yet; lowering takes two steps."""

    space: str
    owner: str
    hard: int
    version: int | None
    """Of the ResourceQuota; None when there was none."""
    used: int
    """What the pods of the namespace held then."""


@dataclass
class QuotaWorld:
    """All quotas are of one cohort."""

    quotas: dict[str, Quota]
    spaces: dict[str, Space]
    pending: list[Pending] = field(default_factory=list)

    @property
    def total(self) -> int:
        """What the cohort owns."""
        return sum(quota.groups for quota in self.quotas.values())

    def most(self, name: str) -> int:
        """Return what a quota may hold."""
        quota = self.quotas[name]
        return self.total if quota.borrowing_limit is None else min(self.total, quota.groups + quota.borrowing_limit)

    def held(self, name: str) -> int:
        """Return what the ResourceQuotas of a quota hold together."""
        return sum(limit.held for limit in self._limits() if limit.owner == name)

    def sums(self) -> dict[str, tuple[int, int]]:
        """Return what is held and what may be held, of each quota and of the cohort."""
        parts = {name: (self.held(name), self.most(name)) for name in self.quotas}
        return parts | {"the cohort": (sum(limit.held for limit in self._limits()), self.total)}

    def is_overcommitted(self, name: str) -> bool:
        """Tell whether pods hold more than can be allowed, for a quota or for the cohort."""
        used = {quota: sum(one.used for one in self.spaces.values() if one.quota == quota) for quota in self.quotas}
        return used[name] > self.most(name) or sum(used.values()) > self.total

    def create(self, name: str, size: int) -> None:
        """Ask for a pod, as its controller does."""
        space = self.spaces[name]
        limit = space.limit
        if limit is not None and limit.enforced is not None and space.used + size > limit.enforced:
            space.denied.append(size)
            return
        space.pods.append(size)
        self._changed(limit)

    def end(self, name: str) -> None:
        """End the oldest pod of a namespace; what was denied there may try again."""
        space = self.spaces[name]
        if space.pods:
            space.pods.pop(0)
            self._changed(space.limit)

    def retry(self) -> None:
        """Let every controller try again."""
        for name, space in self.spaces.items():
            denied, space.denied = space.denied, []
            for size in denied:
                self.create(name, size)

    def tamper(self, name: str, hard: int) -> None:
        """Change a limit by hand, not in the moment between a decision and its writes."""
        limit = self.spaces[name].limit
        self.pending.clear()
        if limit is not None:
            limit.hard = limit.enforced = hard
            self._changed(limit)

    def enforce(self, name: str) -> None:
        """Copy the limit of a namespace to where it is enforced."""
        limit = self.spaces[name].limit
        if limit is not None and limit.enforced != limit.hard:
            limit.enforced = limit.hard
            self._changed(limit)

    def decide(self) -> CohortPlan:
        """Have the operator read everything and decide; what it had decided before is dropped."""
        members = [self._member(name) for name in sorted(self.quotas)]
        decided = plan(members)
        self.pending = [
            Pending(
                write.namespace,
                write.quota,
                write.hard,
                self._version(write.namespace),
                self.spaces[write.namespace].used,
            )
            for write in decided.writes
        ]
        for space in self.spaces.values():
            if space.quota is None and space.limit is not None:
                space.limit = None  # what nobody owns any more is deleted
        return decided

    def write(self, place: int) -> Pending | None:
        """Make one step of one pending write; return it when the API server took it."""
        one = self.pending[place % len(self.pending)]
        space = self.spaces[one.space]
        if one.version != self._version(one.space):
            self.pending.remove(one)  # a conflict
            return None
        if space.limit is None:
            space.limit = Limit(one.owner, one.hard)
            self.pending.remove(one)
        elif (space.limit.enforced or 0) > one.hard:
            space.limit.enforced = one.hard
            self._changed(space.limit)
            one.version = space.limit.version
        else:
            space.limit.owner, space.limit.hard = one.owner, one.hard
            self._changed(space.limit)
            self.pending.remove(one)
        return one

    def settle(self) -> CohortPlan:
        """Go on without disturbance until nothing is left to do; AssertionError when that has no end."""
        for _ in range(12):
            decided = self.decide()
            while self.pending:
                self.write(0)
            for name in self.spaces:
                self.enforce(name)
            if all(member.is_settled for member in decided.members.values()):
                return decided
        raise AssertionError(f"not settled: {self}")

    def _limits(self) -> Iterable[Limit]:
        return (space.limit for space in self.spaces.values() if space.limit is not None)

    def _version(self, name: str) -> int | None:
        limit = self.spaces[name].limit
        return limit.version if limit is not None else None

    def _changed(self, limit: Limit | None) -> None:
        if limit is not None:
            limit.version += 1

    def _member(self, name: str) -> Member:
        own = {space: one for space, one in self.spaces.items() if one.quota == name}
        leaving = [
            one.limit.held
            for space, one in self.spaces.items()
            if space not in own and one.limit is not None and one.limit.owner == name
        ]
        return Member(
            name,
            self.quotas[name].groups,
            tuple(self._share(name, space, one) for space, one in own.items()),
            self.quotas[name].borrowing_limit,
            leaving=sum(leaving),
        )

    def _share(self, quota: str, name: str, space: Space) -> Share:
        limit, denied = space.limit, tuple(space.denied)
        if limit is None:
            return Share(name, None, used=space.used, denied=denied)
        if limit.owner != quota:
            return Share(name, None, used=space.used, denied=denied, inherited=limit.held)
        return Share(name, limit.hard, limit.enforced or 0, space.used, denied)
