"""One cohort as it is known now, and what is decided about it. Pure reads of the view."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cta_group_core.quota import Reclaim
from cta_group_core.quota_plan import CohortPlan, MemberPlan, plan
from cta_group_core.quota_reclaim import Candidate, victims
from cta_group_operator.ports import LimitView, PodView, QuotaView
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.quota_ending import charged_ending
from cta_group_operator.reconcile.quota_scope import Keepers, Scope, member_of, members_of, scope_of
from cta_group_operator.reconcile.view import ClusterView


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that a round acts on."""

    quotas: Sequence[QuotaView]
    scopes: Mapping[str, Scope]
    standing: Mapping[str, MemberPlan]
    """What each quota is entitled to and owed while every pod stays."""
    plan: CohortPlan
    """What to do; in it pods that are deleted for others of the cohort give their groups back."""
    victims: tuple[PodView, ...] = ()
    """Pods to delete, once their namespaces are limited to what stays."""

    def limit(self, quota: str, namespace: str) -> LimitView | None:
        """Return the ResourceQuota of a namespace as it was decided upon."""
        return self.scopes[quota].limits.get(namespace)

    @property
    def not_enforced(self) -> tuple[LimitView, ...]:
        """Limits that are as they should be, but the API server still goes by another number."""
        return tuple(
            limit
            for name, member in self.plan.members.items()
            for space, limit in self.scopes[name].limits.items()
            if (limit.quota, limit.hard) == (name, member.targets.get(space))
            and limit.used is not None
            and limit.enforced not in (None, limit.hard)
        )


class Observer:
    """Makes snapshots."""

    def __init__(self, view: ClusterView, keepers: Keepers, denials: Denials) -> None:
        self._view = view
        self._keepers = keepers
        self._denials = denials

    def look(self, key: str) -> Snapshot:
        """Return the cohort (or the quota of no cohort) of that key, as it is now."""
        quotas = members_of(key, self._view)
        denied = self._denials.by_namespace()
        standing = self._decide(quotas, denied, {})
        owed = {
            one.ref.name: standing.plan.members[one.ref.name].owed
            for one in quotas
            if one.spec.reclaim is Reclaim.DELETE
        }
        if not any(owed.values()):
            return standing
        borrowed = self._borrowed(standing)
        pods = [(name, pod) for name in borrowed for pod in self._pods_of(standing.scopes[name])]
        going = {name: self._going(standing.scopes[name]) for name in borrowed}
        chosen = _choose(pods, borrowed, owed, standing, going)
        giving = _by_namespace([*(pod for of_quota in going.values() for pod in of_quota), *chosen])
        if not giving:
            return standing
        taking = self._decide(quotas, denied, giving)
        return Snapshot(quotas, taking.scopes, standing.standing, taking.plan, tuple(chosen))

    def _decide(
        self, quotas: Sequence[QuotaView], denied: Mapping[str, tuple[int, ...]], ending: Mapping[str, int]
    ) -> Snapshot:
        scopes = {one.ref.name: scope_of(one, self._view, self._keepers, denied, ending) for one in quotas}
        decided = plan([member_of(one, scopes[one.ref.name]) for one in quotas])
        return Snapshot(quotas, scopes, decided.members, decided)

    def _borrowed(self, standing: Snapshot) -> dict[str, int]:
        """Return what the pods of each quota hold above its own groups."""
        above = {
            one.ref.name: sum(share.used for share in standing.scopes[one.ref.name].shares) - one.spec.groups
            for one in standing.quotas
        }
        return {name: amount for name, amount in above.items() if amount > 0}

    def _pods_of(self, scope: Scope) -> list[PodView]:
        return [pod for share in scope.shares for pod in self._view.pods_in(share.namespace)]

    def _going(self, scope: Scope) -> list[PodView]:
        """Return the pods of a quota that end already and give something back when they have.

        One on a lost node may be there for ever, and is charged to nobody after a while: that gives nothing.
        """
        limits = (scope.limits.get(share.namespace) for share in scope.shares)
        return [pod for limit in limits if limit is not None for pod in charged_ending(limit, self._view)]


def _choose(
    pods: Sequence[tuple[str, PodView]],
    borrowed: Mapping[str, int],
    owed: Mapping[str, int],
    standing: Snapshot,
    going: Mapping[str, Sequence[PodView]],
) -> list[PodView]:
    """Return the pods to delete beside those that are ``going`` already, by quota."""
    by_uid = {pod.ref.uid: pod for _, pod in pods}
    ending = {name: sum(pod.groups for pod in of_quota) for name, of_quota in going.items()}
    found = victims(
        [_candidate(quota, pod) for quota, pod in pods if not pod.deleting],
        {name: amount - ending[name] for name, amount in borrowed.items()},
        sum(owed.values()) - sum(ending.values()),
        min(standing.standing[name].owed_least for name in owed if owed[name]) - sum(ending.values()),
    )
    return [by_uid[pod.uid] for pod in found]


def _candidate(quota: str, pod: PodView) -> Candidate:
    return Candidate(pod.ref.uid, quota, pod.groups, pod.priority, pod.created)


def _by_namespace(pods: Sequence[PodView]) -> dict[str, int]:
    found: dict[str, int] = {}
    for pod in pods:
        found[pod.ref.namespace] = found.get(pod.ref.namespace, 0) + pod.groups
    return found
