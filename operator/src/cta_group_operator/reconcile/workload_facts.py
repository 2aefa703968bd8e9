"""What is known of one workload, as the explanation needs it. Pure reads of the view."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from cta_group_core.cluster_shape import degradation
from cta_group_core.explain import PodFacts, Stage, WorkloadFacts
from cta_group_core.explain_growth import Ceiling
from cta_group_core.explain_quota import QuotaFacts
from cta_group_core.names import GATE_PLACEMENT, QUOTA_OBJECT_NAME
from cta_group_core.quota import CONDITION_READY, REASON_WRITE_REFUSED
from cta_group_core.vllm.account import condition_of_annotations
from cta_group_operator.ports import ControllerView, CtaNodeView, LimitView, ObjectRef, PodView, QuotaView
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.in_flight import is_gated
from cta_group_operator.reconcile.quota_ending import ending_pod, ending_pods, lost_node_of
from cta_group_operator.reconcile.quota_scope import cohort_key, members_of
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.reconcile.workload_status import ServerAnswer, ServerReader
from cta_group_operator.resources import PODS, is_followed


def workload_facts(
    top: ObjectRef,
    view: ClusterView,
    denials: Denials,
    refusals: Mapping[str, str],
    *,
    held: Mapping[str, str] = MappingProxyType({}),
    pauses: Callable[[PodView], str] = lambda _: "",
) -> WorkloadFacts | None:
    """Return the facts of the workload whose top owner is ``top``; None when that is none, or asks no more."""
    known = view.controller(top.uid)
    if is_followed(top) and known is None:
        return None  # deleted, and what it made goes soon
    if view.top_owner(top, view.owner_of(top)) != top:
        return None  # not the top, which was not known when this was marked
    controllers = view.controllers_under(top)
    pods = _pods(top, controllers, view)
    if not controllers and not pods:
        return None
    rollout = known.rollout if known is not None else None
    groups = sum(controllers[0].requests) if controllers else max(pod.groups for pod in pods)
    failures = [failure for one in controllers if (failure := denials.failure_of(one)) is not None]
    return WorkloadFacts(
        wanted=_wanted(top, controllers, pods),
        groups_per_pod=groups,
        pods=tuple(_pod_facts(pod, refusals, held, pauses) for pod in pods if not pod.deleting),
        failure=failures[0] if failures else None,
        quota=quota_facts(top.namespace, view),
        resting=_resting(known, controllers),
        ending=tuple(ending_pod(pod, view) for pod in pods if pod.deleting and not pod.is_over),
        lost=_lost_words(pods, view),
        slipped=sum(pod.slipped and not pod.is_over for pod in pods),
        without_clusters=_without_clusters(pods, view),
        rollout=rollout,
        ceiling=_ceiling(top, controllers, view),
        largest_fit=view.largest_fit(groups) if rollout is not None and rollout.needs_room_first else None,
    )


def _resting(known: ControllerView | None, controllers: Iterable[ControllerView]) -> str:
    """Return why nothing makes pods now; of a CronJob, whose Jobs alone are known, what the newest of them says."""
    if known is not None:
        return known.resting
    if any(one.wanted for one in controllers):
        return ""
    return max((f"{one.ref.name}: {one.resting}" for one in controllers if one.resting), default="")


def _lost_words(pods: Iterable[PodView], view: ClusterView) -> str:
    """Say which pods are called running on nodes that nobody hears of; empty for none."""
    running = (pod for pod in pods if pod.phase == "Running" and not pod.deleting)
    lost = sorted((node, pod.ref.name) for pod in running if (node := lost_node_of(pod, view)))
    if not lost:
        return ""
    node, name = lost[0]
    more = f" (and {len(lost) - 1} more so)" if len(lost) > 1 else ""
    return f"pod {name} is on node {node}, which is not heard of{more}"


def _without_clusters(pods: Iterable[PodView], view: ClusterView) -> str:
    """Say which pod needs clusters and holds a GPU without them; empty for none."""
    for pod in pods:
        node = view.cta_nodes.get(pod.node) if pod.terms.needs_clusters and pod.node and not pod.is_over else None
        if node is not None and (words := _degradation_on(node, pod)):
            return f"pod {pod.ref.name} on node {pod.node}: {words}"
    return ""


def _degradation_on(node: CtaNodeView, pod: PodView) -> str | None:
    """Judge each GPU that a pod holds; while its node has not told which, say only what is true of all."""
    who = (pod.ref.namespace, pod.ref.name)
    gpus = [gpu for gpu in node.status.gpus if gpu.capacity]
    held = [gpu for gpu in gpus if any((one.namespace, one.pod) == who for one in gpu.allocations)]
    words = [degradation(gpu.product, gpu.compute_capability) for gpu in held or gpus]
    return next(filter(None, words), None) if held or all(words) else None


def _ceiling(top: ObjectRef, controllers: tuple[ControllerView, ...], view: ClusterView) -> Ceiling | None:
    """Return what an autoscaler may ask for, of the top owner or of the one thing that it makes."""
    refs = [top, *(one.ref for one in controllers if one.ref != top)][:2]
    for ref, size in zip(refs, (_size(top, controllers), 1), strict=False):
        if (found := view.autoscaler_of(ref)) is not None:
            return Ceiling(found.max_replicas * size, f"{found.ref.kind} {found.ref.name}")
    return None


def _size(top: ObjectRef, controllers: tuple[ControllerView, ...]) -> int:
    """Return the pods of one replica of the top owner: a group, for a LeaderWorkerSet."""
    return max((one.size for one in controllers if one.owner is not None and one.owner.uid == top.uid), default=1)


def server_of(top: ObjectRef, view: ClusterView, servers: ServerReader) -> ServerAnswer:
    """Return the server of a workload, from the first template that has one, else from what its pods carry."""
    controllers = view.controllers_under(top)
    found = next((read for one in controllers if (read := servers.read(one.template)) is not None), None)
    if found is not None:
        return found
    told = (condition_of_annotations(pod.alignment, pod.advice) for pod in _pods(top, controllers, view))
    return None, next((one for one in told if one is not None), None)


def quota_facts(namespace: str, view: ClusterView) -> QuotaFacts | None:
    """Return the CTAQuota of a namespace with its numbers now; None without one."""
    limit = view.limits.get(QUOTA_OBJECT_NAME, namespace)
    quota = view.quotas.get(limit.quota) if limit is not None and limit.quota else None
    if limit is None or quota is None:
        return None
    limits = view.limits_of(quota.ref.name)
    return QuotaFacts(
        name=quota.ref.name,
        groups=quota.spec.groups,
        used=_used(limits),
        share=limit.enforced or 0,
        share_used=limit.used or 0,
        namespaces=len(limits),
        cohort=quota.spec.cohort or "",
        reachable=_reachable(quota, view) if quota.spec.cohort else None,
        at_most=_at_most(quota, sum(one.spec.groups for one in members_of(cohort_key(quota), view))),
        ending=tuple(pod for one in limits for pod in ending_pods(one, view)),
        obstacle=_obstacle(quota),
    )


def _obstacle(quota: QuotaView) -> str:
    """Return why limits of a quota cannot be written, as its own status says."""
    ready = (one for one in quota.status.conditions if one.type == CONDITION_READY)
    return next((one.message for one in ready if one.reason == REASON_WRITE_REFUSED), "")


def _reachable(quota: QuotaView, view: ClusterView) -> int:
    """Return what a quota could hold if the others of its cohort kept what their pods hold now, and no more."""
    members = members_of(cohort_key(quota), view)
    others = sum(_used(view.limits_of(one.ref.name)) for one in members if one.ref != quota.ref)
    return max(0, _at_most(quota, sum(one.spec.groups for one in members) - others))


def _at_most(quota: QuotaView, groups: int) -> int:
    """Return how many of the cohort's groups a quota may hold."""
    most = quota.spec.most_borrowed
    return groups if most is None else min(groups, quota.spec.groups + most)


def _used(limits: Iterable[LimitView]) -> int:
    return sum(one.used or 0 for one in limits)


def pods_under(top: ObjectRef, view: ClusterView) -> tuple[PodView, ...]:
    """Return the pods whose chain of owners ends at ``top``, itself when it is one."""
    return _pods(top, view.controllers_under(top), view)


def _pods(top: ObjectRef, controllers: tuple[ControllerView, ...], view: ClusterView) -> tuple[PodView, ...]:
    uids = dict.fromkeys((top.uid, *(one.ref.uid for one in controllers)))
    own = view.pods.get(top.name, top.namespace) if top.kind == PODS.kind else None
    itself = (own,) if own is not None and own.ref.uid == top.uid else ()
    return (*itself, *(pod for uid in uids for pod in view.pods_of(uid)))


def _wanted(top: ObjectRef, controllers: tuple[ControllerView, ...], pods: tuple[PodView, ...]) -> int:
    """Return how many pods are wanted: as the top owner says, else its controllers together, else what is there."""
    if controllers and controllers[0].ref.uid == top.uid and controllers[0].wanted is not None:
        return controllers[0].wanted * controllers[0].size
    led = any(one.size > 1 for one in controllers)  # whoever leads a group counts the whole of it
    counted = [
        one.wanted * one.size
        for one in controllers
        if one.wanted is not None and not (led and one.owner is not None and one.owner.kind == PODS.kind)
    ]
    return sum(counted) if counted else len(pods)


def _pod_facts(
    pod: PodView, refusals: Mapping[str, str], held: Mapping[str, str], pauses: Callable[[PodView], str]
) -> PodFacts:
    refusal, kept_gate = refusals.get(pod.ref.uid), held.get(pod.ref.uid)
    told = refusal or kept_gate or pod.words or _held_by_others(pod)
    words = told or (pauses(pod) if pod.node is None else "")
    return PodFacts(pod.ref.name, stage_of(pod, refusal, kept_gate), words)


def _held_by_others(pod: PodView) -> str:
    """Return what must happen before the operator looks for a node; empty when nothing must."""
    others = [gate for gate in pod.gates if gate != GATE_PLACEMENT]
    return f"other scheduling gates must go first: {', '.join(others)}" if others else ""


def stage_of(pod: PodView, refusal: str | None, kept_gate: str | None = None) -> Stage:
    """Return how far a pod has come; ``refusal``: why no node takes it, ``kept_gate``: why it is not let go to one."""
    if pod.phase == "Failed":
        return Stage.FAILED
    if pod.phase == "Succeeded":
        return Stage.DONE
    if is_gated(pod):
        return Stage.NO_ROOM if refusal else Stage.HELD if kept_gate else Stage.WAITING
    if pod.node is None:
        return Stage.UNSCHEDULED if pod.words else Stage.WAITING
    if pod.phase == "Running":
        return Stage.CRASHING if pod.words else Stage.RUNNING
    return Stage.STARTING
