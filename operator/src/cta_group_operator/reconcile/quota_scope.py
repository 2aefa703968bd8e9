"""Which namespaces belong to which CTAQuota, and what each of them has now."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cta_group_core.names import QUOTA_OBJECT_NAME
from cta_group_core.quota_cohort import Member
from cta_group_core.quota_split import Share
from cta_group_operator.ports import LimitView, NamespaceView, QuotaView
from cta_group_operator.reconcile.view import ClusterView


@dataclass(frozen=True, slots=True)
class Scope:
    """One CTAQuota in a snapshot of the cluster."""

    shares: tuple[Share, ...]
    limits: Mapping[str, LimitView]
    """The ResourceQuota of each namespace of ``shares`` that has one; it may still belong to another CTAQuota."""
    leaving: tuple[LimitView, ...] = ()
    """ResourceQuotas of this CTAQuota in namespaces that are not its own any more."""
    lost: Mapping[str, str] = field(default_factory=dict)
    """Namespaces that it selects and an older CTAQuota keeps, with the name of that."""
    foreign: tuple[LimitView, ...] = ()
    """ResourceQuotas that people made for the same resource."""
    taken: tuple[str, ...] = ()
    """Namespaces where such a one has the name that ours must have."""

    @property
    def leaving_held(self) -> int:
        """Groups that the leaving ResourceQuotas still allow."""
        return sum(limit.held for limit in self.leaving)


class Keepers:
    """Which CTAQuota each namespace belongs to: the oldest that selects it, then the first by name.

    Computed when it is asked for after a namespace or a quota changed, since every round of every quota asks.
    """

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._kept: dict[str, str] | None = None
        view.namespaces.subscribe(self._namespace_changed)
        view.quotas.subscribe(self._quota_changed)

    def keeper(self, namespace: str) -> str | None:
        """Return the name of the CTAQuota that a namespace belongs to; None also for one that is being deleted."""
        return self._all().get(namespace)

    def kept_by(self, quota: str) -> list[str]:
        """Return the namespaces of a CTAQuota, by name."""
        return sorted(space for space, keeper in self._all().items() if keeper == quota)

    def lost_by(self, quota: QuotaView) -> dict[str, str]:
        """Return the namespaces that a CTAQuota selects and another keeps, with the name of that."""
        others = {space: keeper for space, keeper in self._all().items() if keeper != quota.ref.name}
        return {space: keeper for space, keeper in others.items() if self._selects(quota, space)}

    def _all(self) -> dict[str, str]:
        if self._kept is None:
            oldest_first = sorted(self._view.quotas, key=lambda quota: (quota.created, quota.ref.name))
            self._kept = {
                space.name: keeper
                for space in self._view.namespaces
                if not space.deleting and (keeper := _first_that_selects(space, oldest_first)) is not None
            }
        return self._kept

    def _selects(self, quota: QuotaView, space: str) -> bool:
        namespace = self._view.namespaces.get(space)
        return namespace is not None and quota.spec.selects(space, namespace.labels)

    def _namespace_changed(self, before: NamespaceView | None, after: NamespaceView | None) -> None:
        if before is None or after is None or not before.means_the_same(after):
            self._kept = None

    def _quota_changed(self, before: QuotaView | None, after: QuotaView | None) -> None:
        if before is None or after is None or (before.spec, before.ref) != (after.spec, after.ref):
            self._kept = None


def _first_that_selects(space: NamespaceView, quotas: Iterable[QuotaView]) -> str | None:
    return next((quota.ref.name for quota in quotas if quota.spec.selects(space.name, space.labels)), None)


def cohort_key(quota: QuotaView) -> str:
    """Return the key of the work that a CTAQuota is planned in: its cohort's, or its own name (which has no slash)."""
    return f"cohort/{quota.spec.cohort}" if quota.spec.cohort else quota.ref.name


def members_of(key: str, view: ClusterView) -> list[QuotaView]:
    """Return the CTAQuotas that are planned together, by name."""
    return sorted((one for one in view.quotas if cohort_key(one) == key), key=lambda one: one.ref.name)


def member_of(quota: QuotaView, scope: Scope) -> Member:
    """Return what the plan of a cohort needs of one CTAQuota."""
    spec = quota.spec
    return Member(quota.ref.name, spec.groups, scope.shares, spec.most_borrowed, leaving=scope.leaving_held)


def scope_of(
    quota: QuotaView,
    view: ClusterView,
    keepers: Keepers,
    denied: Mapping[str, tuple[int, ...]],
    ending: Mapping[str, int] | None = None,
) -> Scope:
    """Return the namespaces of ``quota`` and what they have.

    ``denied``: sizes of pods by namespace; ``ending``: groups by namespace that are given back to others of the cohort.
    """
    name = quota.ref.name
    own = keepers.kept_by(name)
    found = {space: limit for space in own if (limit := view.limits.get(QUOTA_OBJECT_NAME, space)) is not None}
    taken = tuple(space for space, limit in found.items() if limit.quota is None)
    limits = {space: limit for space, limit in found.items() if limit.quota is not None}
    shares = _Shares(view, quota, denied, ending or {})
    return Scope(
        shares=tuple(shares.of(space, limits.get(space)) for space in own if space not in taken),
        limits=limits,
        leaving=tuple(limit for limit in view.limits if limit.quota == name and limit.ref.namespace not in own),
        lost=keepers.lost_by(quota),
        foreign=tuple(limit for limit in view.limits if limit.quota is None and limit.ref.namespace in own),
        taken=taken,
    )


@dataclass(frozen=True, slots=True)
class _Shares:
    """Makes the shares of one CTAQuota."""

    view: ClusterView
    quota: QuotaView
    denied: Mapping[str, tuple[int, ...]]
    ending: Mapping[str, int]

    def of(self, space: str, limit: LimitView | None) -> Share:
        """Return what a namespace has. The ResourceQuota of another CTAQuota is taken over like a new one."""
        denied = self.denied.get(space, ())
        if limit is None or limit.used is None:  # the API server does not count yet
            used = sum(pod.groups for pod in self.view.pods_in(space))
        else:
            used = limit.used
        if limit is None:
            return Share(space, None, used=used, denied=denied)
        if limit.quota != self.quota.ref.name:
            return Share(space, None, used=used, denied=denied, inherited=self._inherited(limit))
        ending = min(used, self.ending.get(space, 0))
        return Share(space, limit.hard, limit.enforced or 0, used, denied, ending)

    def _inherited(self, limit: LimitView) -> int:
        """Return what a ResourceQuota holds within the same cohort before it is taken over."""
        owner = self.view.quotas.get(limit.quota) if limit.quota else None
        return limit.held if owner is not None and cohort_key(owner) == cohort_key(self.quota) else 0
