"""Pods that were released and that the scheduler cannot bind: planned again on other nodes, or told why they wait.

Affinity is frozen once the gate is off, so such a pod can only be replaced: it is deleted where its controller makes
another, which comes back gated and is planned without the nodes that failed. The deletion holds for the very state that
was judged, so a pod that was bound meanwhile stays. What waits for something that no node has, as for a volume that is
not there yet, is left in peace. Since when a pod is unschedulable is what this process saw: after a restart it is given
the whole time again.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from cta_group_core.avoided import Avoided
from cta_group_core.ids import NodeName
from cta_group_core.scheduler_words import would_other_nodes_help
from cta_group_core.scheduling import NodeTerm, PodTerms
from cta_group_operator.errors import Forbidden, NotFound, Rejected
from cta_group_operator.logs import EventLog
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import Clock, KubeApi, PodView
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.in_flight import pinned_nodes
from cta_group_operator.reconcile.queue import WorkQueue
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.resources import DAEMON_SETS, JOBS, PODS, STATEFUL_SETS
from cta_group_operator.settings import Settings

_log = EventLog(__name__)

_AGAIN: Final = "to have it planned for other nodes"
_REPORTED_KINDS: Final = {
    (DAEMON_SETS.group_version, DAEMON_SETS.kind): (
        "a DaemonSet would make it again for the same node: make room there, or keep the DaemonSet off that node"
    ),
    (JOBS.group_version, JOBS.kind): (
        f"its Job would count the deletion as a failure: delete the Job and create it again under its name {_AGAIN}"
    ),
}
"""Controllers whose pods are not deleted: why, and what to do."""
_MAKERS: Final = frozenset(
    {
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("", "ReplicationController"),
        ("apps.kruise.io", "CloneSet"),
        ("apps.kruise.io", "StatefulSet"),
        ("ray.io", "RayCluster"),
        ("grove.io", "PodClique"),
    }
)
"""Group and kind of controllers that make a pod again when it is deleted before it has run. To others, such as a
Workflow of Argo or a PyTorchJob, that may be a failure."""


class Replan:
    """Follows released pods. ``told``: for each pod that is only reported, by uid, the words for ``explain``."""

    def __init__(
        self,
        view: ClusterView,
        api: KubeApi,
        clock: Clock,
        *,
        settings: Settings,
        metrics: Metrics,
        events: EventWriter,
        plan_again: Callable[[], None],
        tell: Callable[[PodView], None],
    ) -> None:
        """``plan_again``: called when other nodes may be left out than before. ``tell``: Placement's."""
        self._view = view
        self._api = api
        self._clock = clock
        self._metrics = metrics
        self._events = events
        self._after_seconds = settings.replan_after_seconds
        self._plan_again = plan_again
        self._tell = tell
        self._avoided = Avoided()
        self._leaving: dict[str, tuple[Hashable, Mapping[NodeName, str]]] = {}
        """By uid, pods whose deletion was not answered yet: what is like them, and the nodes that it avoids."""
        self._since: dict[str, float] = {}
        self.told: dict[str, str] = {}
        self.queue = WorkQueue[str]("placement", self._look, clock=clock, metrics=metrics)
        view.pods.subscribe(self._pod_changed)

    def begin(self) -> None:
        """Look at every pod afresh."""
        for pod in self._view.pods:
            self._pod_changed(None, pod)

    def forget(self) -> None:
        """Forget what was seen and left out."""
        self._since.clear()
        self.told.clear()
        self._avoided.clear()
        self._leaving.clear()

    def avoided_by(self, pod: PodView) -> Mapping[NodeName, str]:
        """Return the nodes to leave out for a waiting pod, with the scheduler's words."""
        if not self._avoided and not self._leaving:
            return {}
        likes = _likes_of(pod)
        known = dict(self._avoided.of(likes, self._clock.monotonic()))
        for others, nodes in self._leaving.values():
            known |= nodes if others == likes else {}
        return known

    def left_seconds(self) -> float | None:
        """Return when the next node counts again that is left out now; None while none is."""
        return self._avoided.left_seconds(self._clock.monotonic())

    def _pod_changed(self, before: PodView | None, after: PodView | None) -> None:
        if before is not None and (after is None or after.ref.uid != before.ref.uid):
            self._leave_out_for_the_next(before)
            self._pass_by(before)
        if after is None:
            return
        if after.deleting:
            self._leave_out_for_the_next(after)
        if _is_stuck(after):
            self._since.setdefault(after.ref.uid, self._clock.monotonic())
            self.queue.mark(f"{after.ref.namespace}/{after.ref.name}")
        else:
            self._pass_by(after)

    def _leave_out_for_the_next(self, pod: PodView) -> None:
        """Hear that a pod goes that was only told: whoever makes it again has read that it is planned elsewhere."""
        nodes = pinned_nodes(pod.terms)
        if self.told.get(pod.ref.uid) and pod.placed_on == ",".join(nodes):
            self._avoided.add(_likes_of(pod), nodes, _tried(pod), self._clock.monotonic())

    def _pass_by(self, pod: PodView) -> None:
        self._since.pop(pod.ref.uid, None)
        self.told.pop(pod.ref.uid, None)

    def _left(self, since: float) -> float:
        return max(0.0, since + self._after_seconds - self._clock.monotonic())

    async def _look(self, key: str) -> float | None:
        """Decide one pod whose time is over; return the seconds that one has left whose time is not."""
        namespace, _, name = key.partition("/")
        pod = self._view.pods.get(name, namespace)
        since = self._since.get(pod.ref.uid) if pod is not None else None
        if pod is None or since is None:
            return None
        if left := self._left(since):
            return left
        if why := _why_kept(pod):
            await self._report(pod, why)
        else:
            await self._replace(pod)
        return None

    async def _replace(self, pod: PodView) -> None:
        nodes = pinned_nodes(pod.terms)
        try:
            if not await self._delete(pod, nodes):
                return
        except (Forbidden, Rejected) as no:  # tried again, less and less
            await self._report(
                pod, f"the API server does not let the operator delete it, so that another is made: {no}"
            )
            raise
        self._metrics.replanned.inc()
        _log.info("replanned", pod=pod.ref, nodes=",".join(nodes), words=pod.words)
        told = (
            f"released to {', '.join(nodes)} and not scheduled for {self._after_seconds:.0f} s ({pod.words}); deleted, "
            "so that its controller makes another, which is planned for other nodes"
        )
        top = self._view.top_owner(pod.ref, pod.owner)
        await self._events.write(top, "Replanned", f"{pod.ref.name} was {told}", once_for=pod.ref.uid)

    async def _delete(self, pod: PodView, nodes: Sequence[NodeName]) -> bool:
        """Delete a pod and leave its nodes out for the next one; return False if somebody else has deleted it.

        The next one may come before the answer, so the nodes are left out while it is waited for. When it is a refusal
        the pod stays, and nothing is left out because of it.
        """
        likes, words = _likes_of(pod), _tried(pod)
        self._leaving[pod.ref.uid] = likes, dict.fromkeys(nodes, words)
        found = True
        try:
            await self._api.delete(PODS.path(pod.ref.namespace, pod.ref.name), pod.resource_version)
        except NotFound:
            found = False
        finally:
            self._leaving.pop(pod.ref.uid, None)
            self._plan_again()
        self._avoided.add(likes, nodes, words, self._clock.monotonic())
        return found

    async def _report(self, pod: PodView, why: str) -> None:
        nodes = ", ".join(pinned_nodes(pod.terms))
        words = (
            f"released to {nodes}, where the scheduler cannot bind it: {pod.words}; its nodes can not be changed any "
            f"more and {why}"
        )
        if self.told.get(pod.ref.uid) != words:
            self.told[pod.ref.uid] = words
            self._tell(pod)
            await self._events.write(pod.ref, "CannotBeScheduled", words, once_for="")


def _is_stuck(pod: PodView) -> bool:
    """Tell whether the scheduler cannot bind a pod to the nodes that it was released to, and might to others."""
    released = not pod.gates and pod.node is None and not pod.deleting and not pod.is_over
    refused = pod.unschedulable and would_other_nodes_help(pod.words)
    return released and refused and bool(pinned_nodes(pod.terms))


def _tried(pod: PodView) -> str:
    return f"tried, and the scheduler said: {pod.words or 'nothing'}"


def _why_kept(pod: PodView) -> str:
    """Return why a pod is only reported, and what to do; empty when it can be deleted."""
    owner = pod.owner
    if owner is None:
        return f"no controller makes it again: delete it and create it again under its name {_AGAIN}"
    if pod.placed_on != ",".join(pinned_nodes(pod.terms)):
        # Deleting it would lead to the same nodes again.
        return "it was not the operator that chose them: create it again without them, or make room there"
    if (reported := _REPORTED_KINDS.get((owner.api_version, owner.kind))) is not None:
        return reported
    if (owner.api_version.rpartition("/")[0], owner.kind) in _MAKERS:
        return ""
    return f"nobody here knows whether its {owner.kind} makes it again: if so, delete it {_AGAIN}"


def _likes_of(pod: PodView) -> Hashable:
    """Return what is the same for a pod and for those that replace it: who makes them, and what they insist on.

    By names, since what people create again after they were told to is another object.
    """
    maker = pod.owner or pod.ref
    own_name = pod.owner is None or pod.owner.kind == STATEFUL_SETS.kind  # each of a StatefulSet has its own volumes
    name = pod.ref.name if own_name else ""
    return (pod.ref.namespace, maker.kind, maker.name, name, pod.requests, _without_names(pod.terms))


def _without_names(terms: PodTerms) -> PodTerms:
    """Return the terms as they are without names of nodes, which a release adds."""
    bare = (NodeTerm(expressions=term.expressions) for term in terms.node_terms or ())
    return replace(terms, node_terms=tuple(term for term in bare if term.expressions) or None)
