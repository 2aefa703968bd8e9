"""Which namespaces belong to which CTAQuota, and what each of them has now."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cta_group_core.names import QUOTA_OBJECT_NAME
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
        return sum(max(limit.hard or 0, limit.enforced or 0) for limit in self.leaving)


def keeper_of(namespace: NamespaceView, quotas: Iterable[QuotaView]) -> QuotaView | None:
    """Return the CTAQuota that a namespace belongs to: the oldest that selects it, then the first by name."""
    selecting = (quota for quota in quotas if quota.spec.selects(namespace.name, namespace.labels))
    return min(selecting, key=lambda quota: (quota.created, quota.ref.name), default=None)


def scope_of(quota: QuotaView, view: ClusterView, denied: Mapping[str, tuple[int, ...]]) -> Scope:
    """Return the namespaces of ``quota`` and what they have."""
    name = quota.ref.name
    quotas = tuple(view.quotas)
    kept = {space.name: keeper_of(space, quotas) for space in view.namespaces if not space.deleting}
    own = sorted(space for space, keeper in kept.items() if keeper is not None and keeper.ref.name == name)
    found = {space: limit for space in own if (limit := view.limits.get(QUOTA_OBJECT_NAME, space)) is not None}
    taken = tuple(space for space, limit in found.items() if limit.quota is None)
    limits = {space: limit for space, limit in found.items() if limit.quota is not None}
    held = _groups_held(view)
    return Scope(
        shares=tuple(
            _share(space, limits.get(space), name, held.get(space, 0), denied.get(space, ()))
            for space in own
            if space not in taken
        ),
        limits=limits,
        leaving=tuple(limit for limit in view.limits if limit.quota == name and limit.ref.namespace not in own),
        lost={
            space: keeper.ref.name
            for space, keeper in kept.items()
            if keeper is not None and keeper.ref.name != name and _selects(quota, view, space)
        },
        foreign=tuple(limit for limit in view.limits if limit.quota is None and limit.ref.namespace in own),
        taken=taken,
    )


def _selects(quota: QuotaView, view: ClusterView, space: str) -> bool:
    namespace = view.namespaces.get(space)
    return namespace is not None and quota.spec.selects(space, namespace.labels)


def _share(space: str, limit: LimitView | None, name: str, held: int, denied: tuple[int, ...]) -> Share:
    """Return what a namespace has. A ResourceQuota that another CTAQuota leaves behind is taken over like a new one."""
    if limit is None:
        return Share(space, None, used=held, denied=denied)
    used = held if limit.used is None else limit.used
    if limit.quota != name:
        return Share(space, None, used=used, denied=denied)
    return Share(space, limit.hard, enforced=limit.enforced or 0, used=used, denied=denied)


def _groups_held(view: ClusterView) -> dict[str, int]:
    """Return what pods hold in each namespace, for namespaces that the API server does not count yet."""
    held: dict[str, int] = {}
    for pod in view.pods:
        if not pod.is_over:
            held[pod.ref.namespace] = held.get(pod.ref.namespace, 0) + pod.groups
    return held
