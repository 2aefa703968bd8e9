"""Everything the operator knows of the cluster: one store a kind, and the look-ups that decisions need."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from cta_group_core.cluster_shape import all_have_clusters
from cta_group_core.ids import GpuUuid, NodeName
from cta_group_core.moves import Tenant, tenants_by_gpu
from cta_group_core.outages import describe_outages
from cta_group_core.rooms import GpuRoom
from cta_group_operator.ports import (
    AutoscalerView,
    ControllerView,
    CtaNodeView,
    FailureEvent,
    LimitView,
    NamespaceView,
    NodeView,
    ObjectRef,
    PodView,
    QuotaView,
    WorkloadView,
)
from cta_group_operator.reconcile.other_pods import OtherPods
from cta_group_operator.reconcile.pod_places import PodPlaces
from cta_group_operator.resources import CONTROLLERS
from cta_group_operator.store import Store

_LONGEST_CHAIN = 16
"""Owners that are followed one after the other; longer ones are loops that somebody made by hand."""


def _target(one: AutoscalerView) -> tuple[str, str, str]:
    return (one.ref.namespace, one.target_kind, one.target_name)


@dataclass(frozen=True, slots=True)
class Room:
    """What one CTANode says about room."""

    rooms: tuple[GpuRoom, ...]
    tenants: frozenset[tuple[NodeName, str, str]]
    """Node, namespace and name of each pod that holds something there."""
    closed: str = ""
    """Why its kubelet cannot take pods with groups now."""
    out: str = ""
    """Which of its GPUs take nobody now, in words."""
    shares: Mapping[GpuUuid, tuple[Tenant, ...]] = field(default_factory=dict)
    """Who is on each GPU."""
    remark: str = ""
    """What is to be known of all this; empty: nothing."""
    has_clusters: bool = True

    @classmethod
    def of(cls, node: CtaNodeView) -> Self:
        """Read it out of the status."""
        gpus = node.status.gpus
        held = [(gpu, one) for gpu in gpus for one in gpu.allocations]
        tenants = frozenset((node.name, one.namespace, one.pod) for _, one in held)
        rooms, problem = tuple(node.status.rooms()), node.status.registration_problem
        closed = f"its kubelet does not know the plugin now ({problem})" if rooms and problem else ""
        shares = tenants_by_gpu((gpu.gpu_uuid, one.namespace, one.pod, one.groups) for gpu, one in held)
        return cls(rooms, tenants, closed, describe_outages(gpus), shares, has_clusters=all_have_clusters(gpus))


class ClusterView:
    """The stores, and indexes that follow them."""

    def __init__(self) -> None:
        self.pods = Store[PodView](lambda pod: (pod.ref.namespace, pod.ref.name))
        self.places = PodPlaces(self.pods)
        self.others = OtherPods()
        self.nodes = Store[NodeView](lambda node: ("", node.facts.name))
        self.namespaces = Store[NamespaceView](lambda space: ("", space.name))
        self.limits = Store[LimitView](lambda limit: (limit.ref.namespace, limit.ref.name))
        self.quotas = Store[QuotaView](lambda quota: ("", quota.ref.name))
        self.cta_nodes = Store[CtaNodeView](lambda node: ("", node.name))
        self.workloads = Store[WorkloadView](lambda workload: (workload.ref.namespace, workload.ref.name))
        self.failures = Store[FailureEvent](lambda event: (event.ref.namespace, event.ref.name))
        self.autoscalers = Store[AutoscalerView](lambda one: (one.ref.namespace, one.ref.name))
        self.controllers = {
            resource.kind: Store[ControllerView](lambda one: (one.ref.namespace, one.ref.name))
            for resource in CONTROLLERS
        }
        self._rooms: dict[NodeName, tuple[CtaNodeView, Room]] = {}
        self._largest: tuple[int, int] | None = None
        """The largest GPU and the largest room on one; None while they were not looked for since a node changed."""
        self._by_uid: dict[str, ControllerView] = {}
        self._children: defaultdict[str, set[str]] = defaultdict(set)
        self._failures_about: defaultdict[str, dict[str, FailureEvent]] = defaultdict(dict)
        self._pods_of: defaultdict[str, dict[str, PodView]] = defaultdict(dict)
        self._pod_by_uid: dict[str, PodView] = {}
        self._scaled: defaultdict[tuple[str, str, str], dict[str, AutoscalerView]] = defaultdict(dict)
        self._pods_in: defaultdict[str, dict[str, PodView]] = defaultdict(dict)
        for store in self.controllers.values():
            store.subscribe(self._index_controller)
        self.failures.subscribe(self._index_failure)
        self.pods.subscribe(self._index_pod)
        self.pods.subscribe(self._index_namespace)
        self.cta_nodes.subscribe(self._forget_room)
        self.cta_nodes.subscribe(self._forget_largest)
        self.nodes.subscribe(self._forget_largest)
        self.autoscalers.subscribe(self._index_autoscaler)

    def room_of(self, node: CtaNodeView) -> Room:
        """Return what a CTANode says about room; made once for each state of it."""
        known = self._rooms.get(node.name)
        if known is None or known[0] is not node:
            known = self._rooms[node.name] = (node, Room.of(node))
        return known[1]

    def machine_of(self, node: CtaNodeView) -> NodeView | None:
        """Return the Node that a CTANode speaks of; None when it is gone, or another one has its name now."""
        found = self.nodes.get(node.name)
        return found if found is not None and node.status.is_of(found.uid) else None

    def controller(self, uid: str) -> ControllerView | None:
        """Return a controller by its uid."""
        return self._by_uid.get(uid)

    def all_controllers(self) -> Iterator[ControllerView]:
        """Return every controller whose pods ask for groups."""
        return iter(tuple(self._by_uid.values()))

    def controllers_under(self, top: ObjectRef) -> tuple[ControllerView, ...]:
        """Return the followed controllers whose chain of owners ends at ``top``, itself first when it is one.

        A pod can be a link of the chain: the leader of a LeaderWorkerSet's group owns the StatefulSet of its workers.
        """
        found: dict[str, ControllerView] = {}
        uids = [top.uid]
        seen: set[str] = set()
        while uids:
            uid = uids.pop()
            if uid in seen:
                continue
            seen.add(uid)
            if uid in self._by_uid:
                found[uid] = self._by_uid[uid]
            uids += sorted((*self._children.get(uid, ()), *self._pods_of.get(uid, ())))
        return tuple(found.values())

    def autoscaler_of(self, target: ObjectRef) -> AutoscalerView | None:
        """Return the autoscaler of an object, the one with the highest ceiling when there are several."""
        found = self._scaled.get((target.namespace, target.kind, target.name), {}).values()
        return max(found, key=lambda one: (one.max_replicas, one.ref.name), default=None)

    def limits_of(self, quota: str) -> tuple[LimitView, ...]:
        """Return the ResourceQuotas of one CTAQuota."""
        return tuple(limit for limit in self.limits if limit.quota == quota)

    def owner_of(self, ref: ObjectRef) -> ObjectRef | None:
        """Return what controls an object, as far as that is followed."""
        found = self._by_uid.get(ref.uid) or self._pod_by_uid.get(ref.uid)
        return found.owner if found is not None else None

    def largest_fit(self, groups: int) -> int | None:
        """Return the largest request on one GPU that any node says it has room for; None where that tells nothing.

        It tells nothing of a request of several GPUs, nor where no node offers groups.
        """
        if self._largest is None:
            nodes = [one.status for one in self.cta_nodes if self.machine_of(one) is not None]
            capacity = max((gpu.capacity for node in nodes for gpu in node.gpus), default=0)
            self._largest = (capacity, max((node.largest_fit for node in nodes), default=0))
        capacity, largest = self._largest
        return largest if capacity >= groups else None

    def pods_of(self, uid: str) -> tuple[PodView, ...]:
        """Return the pods that an object controls directly."""
        return tuple(self._pods_of.get(uid, {}).values())

    def pods_in(self, namespace: str) -> tuple[PodView, ...]:
        """Return the pods of a namespace that have not ended."""
        return tuple(pod for pod in self._pods_in.get(namespace, {}).values() if not pod.is_over)

    def newest_failure(self, uid: str) -> FailureEvent | None:
        """Return the newest event about a pod that a controller could not create."""
        return max(self._failures_about.get(uid, {}).values(), key=lambda event: event.last, default=None)

    def top_owner(self, ref: ObjectRef, owner: ObjectRef | None) -> ObjectRef:
        """Return the end of the chain of controllers; an owner of a kind that is not followed ends it."""
        for _ in range(_LONGEST_CHAIN):
            if owner is None:
                break
            ref, above = owner, self._by_uid.get(owner.uid) or self._pod_by_uid.get(owner.uid)
            owner = above.owner if above is not None else None
        return ref

    def _forget_largest(self, *_: object) -> None:
        self._largest = None

    def _forget_room(self, before: CtaNodeView | None, after: CtaNodeView | None) -> None:
        if before is not None and after is None:
            self._rooms.pop(before.name, None)

    def _index_controller(self, before: ControllerView | None, after: ControllerView | None) -> None:
        if before is not None and (after is None or after.ref.uid != before.ref.uid):
            self._by_uid.pop(before.ref.uid, None)
        if before is not None and before.owner is not None:
            children = self._children[before.owner.uid]
            children.discard(before.ref.uid)
            if not children:
                del self._children[before.owner.uid]
        if after is not None:
            self._by_uid[after.ref.uid] = after
            if after.owner is not None:
                self._children[after.owner.uid].add(after.ref.uid)

    def _index_failure(self, before: FailureEvent | None, after: FailureEvent | None) -> None:
        if before is not None:
            about = self._failures_about[before.about]
            about.pop(before.ref.uid, None)
            if not about:
                del self._failures_about[before.about]
        if after is not None:
            self._failures_about[after.about][after.ref.uid] = after

    def _index_autoscaler(self, before: AutoscalerView | None, after: AutoscalerView | None) -> None:
        if before is not None:
            of_target = self._scaled[_target(before)]
            of_target.pop(before.ref.uid, None)
            if not of_target:
                del self._scaled[_target(before)]
        if after is not None:
            self._scaled[_target(after)][after.ref.uid] = after

    def _index_pod(self, before: PodView | None, after: PodView | None) -> None:
        if before is not None:
            self._pod_by_uid.pop(before.ref.uid, None)
        if after is not None:
            self._pod_by_uid[after.ref.uid] = after
        if before is not None and before.owner is not None:
            pods = self._pods_of[before.owner.uid]
            pods.pop(before.ref.uid, None)
            if not pods:
                del self._pods_of[before.owner.uid]
        if after is not None and after.owner is not None:
            self._pods_of[after.owner.uid][after.ref.uid] = after

    def _index_namespace(self, before: PodView | None, after: PodView | None) -> None:
        if before is not None:
            pods = self._pods_in[before.ref.namespace]
            pods.pop(before.ref.uid, None)
            if not pods:
                del self._pods_in[before.ref.namespace]
        if after is not None:
            self._pods_in[after.ref.namespace][after.ref.uid] = after
