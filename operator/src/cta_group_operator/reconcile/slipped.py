"""Pods that ask for groups and came past the webhook: found, labelled so that everything counts them, and reported.

The pod watch selects by the label that the webhook puts on. So whatever has no such label is looked for by two ways: a
list of all pods without it from time to time, and what the nodes' plugins say of pods that nobody here knows.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, NoReturn

from cta_group_core.ids import NodeName
from cta_group_core.names import (
    ANNOTATION_ALIGNMENT,
    ANNOTATION_ALIGNMENT_ADVICE,
    ANNOTATION_PLACEMENT,
    ANNOTATION_RUNTIME_ADVICE,
    ANNOTATION_WITHOUT_WEBHOOK,
    GATE_PLACEMENT,
    LABEL_REQUESTS,
)
from cta_group_core.scheduling import Load
from cta_group_operator.errors import ApiError, LeadershipLost, NotFound
from cta_group_operator.listing import items
from cta_group_operator.logs import EventLog
from cta_group_operator.metrics import Metrics
from cta_group_operator.one_by_one import OneByOne
from cta_group_operator.ports import Clock, CtaNodeView, Json, KubeApi, PodView
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.in_flight import pinned_nodes
from cta_group_operator.reconcile.queue import WorkQueue
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.resources import PODS

_log = EventLog(__name__)

ReadPod = Callable[[Json], PodView | None]
ReadLoad = Callable[[Json], Load]
AdvisePod = Callable[[Json], str]
"""Returns what admission would have changed in a pod, in words; empty for nothing."""
_UNLABELLED: Final = {
    "labelSelector": f"{LABEL_REQUESTS}!=true",
    "fieldSelector": "status.phase!=Succeeded",
}
_OF_ADMISSION: Final = (
    ANNOTATION_ALIGNMENT,
    ANNOTATION_ALIGNMENT_ADVICE,
    ANNOTATION_RUNTIME_ADVICE,
    ANNOTATION_PLACEMENT,
)
"""Annotations of the operator that no pod can have which it has not seen yet: somebody else wrote them."""
_SETTLES_SECONDS: Final = 2.0
"""A plugin may know of a pod before the watch tells of it."""


class SlippedPods:
    """Looks for them every ``period_seconds``. ``read``: returns None for a pod that does not ask."""

    def __init__(
        self,
        view: ClusterView,
        api: KubeApi,
        clock: Clock,
        *,
        metrics: Metrics,
        events: EventWriter,
        read: ReadPod,
        load: ReadLoad,
        advise: AdvisePod = lambda _: "",
        period_seconds: float,
        found_gone: Callable[[], None] = lambda: None,
    ) -> None:
        """``load``: what a pod takes of its node beside groups.

        ``found_gone``: called when :meth:`is_gone` has more to say.
        """
        self._view = view
        self._api = api
        self._metrics = metrics
        self._events = events
        self._read = read
        self._load = load
        self._advise = advise
        self._period_seconds = period_seconds
        self._found_gone = found_gone
        self._gone: set[tuple[str, str]] = set()
        self.queue = WorkQueue[tuple[str, str]](
            "slipped", self._look_for, clock=clock, metrics=metrics, concurrency=2, settle_seconds=_SETTLES_SECONDS
        )
        view.cta_nodes.subscribe(self._cta_node_changed)
        view.pods.subscribe(self._pod_changed)

    def is_gone(self, namespace: str, name: str) -> bool:
        """Tell whether a pod that a CTANode names was asked for, and the API server knows none of that name."""
        return (namespace, name) in self._gone

    @property
    def count(self) -> int:
        """Pods that came past the webhook and have not ended."""
        return sum(pod.slipped and not pod.is_over for pod in self._view.pods)

    def forget(self) -> None:
        """Forget which pods are gone: a name may come again while nobody here asks for it."""
        self._gone.clear()
        self._view.others.clear()

    def mark_everything(self) -> None:
        """Look at what every node's plugin says."""
        for node in self._view.cta_nodes:
            self._cta_node_changed(None, node)

    async def run(self) -> NoReturn:
        """List all pods without the label, for ever."""
        while True:
            try:
                await self.list_all()
            except LeadershipLost:
                raise
            except ApiError as failed:
                self._metrics.reconcile_errors.labels(kind="slipped").inc()
                _log.warning("list_failed", kind="pods without the label", cause=failed)
            await asyncio.sleep(self._period_seconds)

    async def list_all(self) -> None:
        """List them once, and label those that ask for groups. Raises ApiError when they cannot be listed."""
        turns = OneByOne()
        others: dict[NodeName, Load] = {}
        async for body in items(self._api, PODS.path(), _UNLABELLED):
            self._count(body, others)
            if (pod := self._readable(body)) is not None:
                with turns.one(pod.ref):
                    await self._take(pod, body)
        self._view.others.replace(others)
        self._metrics.reconcile_errors.labels(kind="slipped").inc(len(turns.failed))  # the next list tries them again

    def _count(self, body: Json, others: dict[NodeName, Load]) -> None:
        """Add what a pod takes of a node with GPUs."""
        name = NodeName(body["spec"].get("nodeName") or "")
        if body["status"].get("phase") != "Failed" and self._view.cta_nodes.get(name) is not None:
            others[name] = others.get(name, Load()) + self._load(body)

    async def _look_for(self, key: tuple[str, str]) -> None:
        namespace, name = key
        self._gone = {one for one in self._gone if one != key and self._is_named(*one)}
        if self._view.pods.get(name, namespace) is not None or not self._is_named(*key):
            return
        page = await self._api.get(PODS.path(namespace), {"fieldSelector": f"metadata.name={name}", "limit": "1"})
        found: Json | None = next(iter(page.get("items") or ()), None)
        if found is None:
            self._gone.add(key)
            self._found_gone()
            return
        is_labelled = (found["metadata"].get("labels") or {}).get(LABEL_REQUESTS) == "true"
        if not is_labelled and (pod := self._readable(found)) is not None:
            await self._take(pod, found)

    def _is_named(self, namespace: str, name: str) -> bool:
        nodes = self._view.cta_nodes
        return any((node.name, namespace, name) in self._view.room_of(node).tenants for node in nodes)

    def _readable(self, body: Json) -> PodView | None:
        try:
            return self._read(body)
        except ValueError as bad:  # msgspec's ValidationError is one
            self._metrics.decode_errors.labels(kind=PODS.kind).inc()
            _log.warning("object_not_read", kind=PODS.kind, cause=bad)
            return None

    async def _take(self, pod: PodView, body: Json) -> None:
        """Label a pod. One that the operator has placed lost its label only: it did not come past the webhook."""
        if pod.deleting or (pod.is_over and pod.refused is None):
            return  # one that a kubelet refused is cleaned up like any other
        metadata: dict[str, Any] = {"uid": pod.ref.uid, "labels": {LABEL_REQUESTS: "true"}}
        placed = _was_placed(pod)
        if not placed:
            written = body["metadata"].get("annotations") or {}
            forged = {name: None for name in _OF_ADMISSION if name in written}
            metadata["annotations"] = {**forged, ANNOTATION_WITHOUT_WEBHOOK: "true"}
            if advice := self._advice_for(pod, body):
                metadata["annotations"][ANNOTATION_ALIGNMENT_ADVICE] = advice
        try:
            await self._api.merge_patch(PODS.path(pod.ref.namespace, pod.ref.name), {"metadata": metadata})
        except NotFound:
            return
        _log.info("pod_labelled", pod=pod.ref, groups=pod.groups, placed=placed)
        if not placed:
            await self._report(pod)

    def _advice_for(self, pod: PodView, body: Json) -> str:
        """Return what admission would have changed; a tenant's command line that breaks the reader costs only that."""
        try:
            return self._advise(body)
        except Exception as broken:  # noqa: BLE001 - else one pod would end the list, and with it the process
            _log.error("advice_broke", pod=pod.ref, cause=broken)
            return ""

    async def _report(self, pod: PodView) -> None:
        self._metrics.slipped.inc()
        top = self._view.top_owner(pod.ref, pod.owner)
        told = (
            f"pod {pod.ref.name}, which asks for {pod.groups} groups, was admitted without the webhook: no GPU was "
            "chosen for it, and arguments of vLLM were not fitted. Is the webhook reachable from the API server?"
        )
        await self._events.write(top, "AdmittedWithoutWebhook", told, once_for=pod.owner.uid if pod.owner else "")

    def _pod_changed(self, before: PodView | None, after: PodView | None) -> None:
        """Ask for a pod that is gone from here: it may have lost its label, or a silent plugin may name it still."""
        if before is not None and after is None and before.node is not None:
            self.queue.mark_soon((before.ref.namespace, before.ref.name))

    def _cta_node_changed(self, _: CtaNodeView | None, after: CtaNodeView | None) -> None:
        if after is None:
            return
        for _node, namespace, name in self._view.room_of(after).tenants:
            if self._view.pods.get(name, namespace) is None:
                self.queue.mark_soon((namespace, name))


def _was_placed(pod: PodView) -> bool:
    """Tell whether the operator has dealt with a pod: gated still, or released to the nodes that it insists on.

    The annotation alone is no proof: whoever makes a pod may write it.
    """
    return GATE_PLACEMENT in pod.gates or pod.placed_on == ",".join(pinned_nodes(pod.terms)) != ""
