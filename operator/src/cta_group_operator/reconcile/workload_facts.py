"""What is known of one workload, as the explanation needs it. Pure reads of the view."""

from collections.abc import Callable, Iterable, Mapping

from cta_group_core.explain import PodFacts, Stage, WorkloadFacts
from cta_group_core.explain_quota import EndingPod, QuotaFacts
from cta_group_core.names import GATE_PLACEMENT, QUOTA_OBJECT_NAME
from cta_group_operator.ports import ControllerView, LimitView, ObjectRef, PodView, QuotaView
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.in_flight import is_gated
from cta_group_operator.reconcile.quota_scope import cohort_key, members_of
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.resources import PODS


def workload_facts(
    top: ObjectRef,
    view: ClusterView,
    denials: Denials,
    refusals: Mapping[str, str],
    pauses: Callable[[PodView], str] = lambda _: "",
) -> WorkloadFacts | None:
    """Return the facts of the workload whose top owner is ``top``; None when that is none, or asks no more."""
    known = view.controller(top.uid)
    if view.follows(top) and (known is None or known.owner is not None):
        return None  # deleted, and what it made goes soon; or not the top, which was not known when this was marked
    controllers = view.controllers_under(top)
    pods = _pods(top, controllers, view)
    if not controllers and not pods:
        return None
    failures = [failure for one in controllers if (failure := denials.failure_of(one)) is not None]
    return WorkloadFacts(
        wanted=_wanted(top, controllers, pods),
        groups_per_pod=sum(controllers[0].requests) if controllers else max(pod.groups for pod in pods),
        pods=tuple(_pod_facts(pod, refusals.get(pod.ref.uid), pauses) for pod in pods if not pod.deleting),
        failure=failures[0] if failures else None,
        quota=quota_facts(top.namespace, view),
        slipped=sum(pod.slipped and not pod.is_over for pod in pods),
    )


def quota_facts(namespace: str, view: ClusterView) -> QuotaFacts | None:
    """Return the CTAQuota of a namespace with its numbers now; None without one."""
    limit = view.limits.get(QUOTA_OBJECT_NAME, namespace)
    quota = view.quotas.get(limit.quota) if limit is not None and limit.quota else None
    if limit is None or quota is None:
        return None
    limits = view.limits_of(quota.ref.name)
    spaces = {one.ref.namespace for one in limits}
    return QuotaFacts(
        name=quota.ref.name,
        groups=quota.spec.groups,
        used=_used(limits),
        share=limit.enforced or 0,
        share_used=limit.used or 0,
        namespaces=len(limits),
        cohort=quota.spec.cohort or "",
        reachable=_reachable(quota, view) if quota.spec.cohort else None,
        ending=tuple(
            EndingPod(pod.ref.name, pod.groups, pod.ends)
            for pod in view.pods
            if pod.deleting and not pod.is_over and pod.ref.namespace in spaces
        ),
    )


def _reachable(quota: QuotaView, view: ClusterView) -> int:
    """Return what a quota could hold if the others of its cohort kept what their pods hold now, and no more."""
    members = members_of(cohort_key(quota), view)
    others = sum(_used(view.limits_of(one.ref.name)) for one in members if one.ref != quota.ref)
    left = sum(one.spec.groups for one in members) - others
    most = quota.spec.most_borrowed
    return max(0, left if most is None else min(left, quota.spec.groups + most))


def _used(limits: Iterable[LimitView]) -> int:
    return sum(one.used or 0 for one in limits)


def _pods(top: ObjectRef, controllers: tuple[ControllerView, ...], view: ClusterView) -> tuple[PodView, ...]:
    if (top.api_version, top.kind) == (PODS.group_version, PODS.kind):
        pod = view.pods.get(top.name, top.namespace)
        return (pod,) if pod is not None and pod.ref.uid == top.uid else ()
    uids = dict.fromkeys((top.uid, *(one.ref.uid for one in controllers)))
    return tuple(pod for uid in uids for pod in view.pods_of(uid))


def _wanted(top: ObjectRef, controllers: tuple[ControllerView, ...], pods: tuple[PodView, ...]) -> int:
    """Return how many pods are wanted: as the top owner says, else its controllers together, else what is there."""
    if controllers and controllers[0].ref.uid == top.uid and controllers[0].wanted is not None:
        return controllers[0].wanted
    counted = [one.wanted for one in controllers if one.wanted is not None]
    return sum(counted) if counted else len(pods)


def _pod_facts(pod: PodView, refusal: str | None, pauses: Callable[[PodView], str]) -> PodFacts:
    words = refusal or pod.words or _held_by_others(pod) or (pauses(pod) if is_gated(pod) else "")
    return PodFacts(pod.ref.name, stage_of(pod, refusal), words)


def _held_by_others(pod: PodView) -> str:
    """Return what must happen before the operator looks for a node; empty when nothing must."""
    others = [gate for gate in pod.gates if gate != GATE_PLACEMENT]
    return f"other scheduling gates must go first: {', '.join(others)}" if others and is_gated(pod) else ""


def stage_of(pod: PodView, refusal: str | None) -> Stage:
    """Return how far a pod has come."""
    if pod.phase == "Failed":
        return Stage.FAILED
    if pod.phase == "Succeeded":
        return Stage.DONE
    if is_gated(pod):
        return Stage.NO_ROOM if refusal else Stage.WAITING
    if pod.node is None:
        return Stage.UNSCHEDULED if pod.words else Stage.WAITING
    if pod.phase == "Running":
        return Stage.CRASHING if pod.words else Stage.RUNNING
    return Stage.STARTING
