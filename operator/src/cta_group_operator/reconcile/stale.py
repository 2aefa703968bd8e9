"""CTANodes whose plugin has not said for long that they are still true: shown as stale, and used with care.

A plugin that cannot reach the API leaves its last word there, perhaps for hours. What it says is held then counts only
while the API server still knows a pod of that name on that node, and only where kubelet is heard of: on a node that is
unreachable the containers may run on, whatever was deleted. Times are this process's own: a CTANode is as old as the
time since its ``confirmedAt`` was seen to change; at first sight, as the two clocks say.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from cta_group_core.moments import seconds_between
from cta_group_core.names import CONDITION_REPORTING
from cta_group_core.nodes import Condition, ConditionStatus, GpuStatus
from cta_group_operator.errors import NotFound
from cta_group_operator.logs import EventLog
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import Clock, CtaNodeView, KubeApi
from cta_group_operator.reconcile.queue import WorkQueue
from cta_group_operator.reconcile.view import ClusterView, Room
from cta_group_operator.resources import CTA_NODES

_log = EventLog(__name__)


class StaleNodes:
    """Follows CTANodes. ``is_gone``: whether the API server was asked for a pod and knows none of that name."""

    def __init__(
        self,
        view: ClusterView,
        api: KubeApi,
        clock: Clock,
        *,
        metrics: Metrics,
        stale_seconds: float,
        is_gone: Callable[[str, str], bool],
        became: Callable[[], None],
    ) -> None:
        """``became``: called when a CTANode became stale, or is no more."""
        self._view = view
        self._api = api
        self._clock = clock
        self._stale_seconds = stale_seconds
        self._is_gone = is_gone
        self._became = became
        self._heard: dict[str, float] = {}
        self.queue = WorkQueue[str]("stale", self._reconcile, clock=clock, metrics=metrics)
        view.cta_nodes.subscribe(self._changed)

    @property
    def count(self) -> int:
        """CTANodes that are stale."""
        return sum(self.is_stale(node) for node in self._view.cta_nodes)

    def mark_everything(self) -> None:
        """Look at every CTANode."""
        for node in self._view.cta_nodes:
            self.queue.mark(node.name)

    def is_stale(self, node: CtaNodeView) -> bool:
        """Tell whether a CTANode is too old; one of a plugin that does not confirm what it says never is."""
        heard = self._heard.get(node.name)
        return heard is not None and self._clock.monotonic() - heard >= self._stale_seconds

    def room_of(self, node: CtaNodeView) -> Room:
        """Return what a CTANode says about room; a stale one without holders that are no more."""
        room = self._view.room_of(node)
        if not self.is_stale(node):
            return room
        remark = f"its plugin has not reported since {node.status.confirmed_at}"
        gone = self._no_more(node, room)
        if not gone:
            return replace(room, remark=remark)
        gpus = tuple(_without(gpu, gone) for gpu in node.status.gpus)
        return replace(Room.of(replace(node, status=node.status.model_copy(update={"gpus": gpus}))), remark=remark)

    def _no_more(self, node: CtaNodeView, room: Room) -> set[tuple[str, str]]:
        """Return namespace and name of holders that are there no more; none while kubelet is not heard of."""
        machine = self._view.nodes.get(node.name)
        if machine is None or not machine.facts.is_heard_of:
            return set()
        gone = set()
        for _, namespace, name in room.tenants:
            pod = self._view.pods.get(name, namespace)
            lives = pod is not None and pod.node == node.name and not pod.is_over
            if not lives and (pod is not None or self._is_gone(namespace, name)):
                gone.add((namespace, name))
        return gone

    def _changed(self, before: CtaNodeView | None, after: CtaNodeView | None) -> None:
        if after is None:
            if before is not None:
                self._heard.pop(before.name, None)
            return
        confirmed, had_confirmed = after.status.confirmed_at, after.name in self._heard
        if confirmed is None:
            self._heard.pop(after.name, None)
        elif before is None or before.status.confirmed_at != confirmed:
            age = seconds_between(confirmed, self._clock.utc_text()) if before is None else 0.0
            self._heard[after.name] = self._clock.monotonic() - age
        if before is None or had_confirmed != (after.name in self._heard) or not self._is_told(after):
            self.queue.mark(after.name)  # else the appointment that it has will do

    async def _reconcile(self, name: str) -> float | None:
        """Say on a CTANode that it is stale, and that it is no more; return the seconds until it will be."""
        node = self._view.cta_nodes.get(name)
        if node is None:
            return None
        stale, heard = self.is_stale(node), self._heard.get(name)
        if not self._is_told(node):
            await self._write(node, _known(node), stale=stale)
            self._became()
        if stale or heard is None:
            return None
        return max(0.0, heard + self._stale_seconds - self._clock.monotonic())

    def _is_told(self, node: CtaNodeView) -> bool:
        """Tell whether a CTANode says of itself whether it is stale."""
        known = _known(node)
        return self.is_stale(node) == (known is not None and known.status is ConditionStatus.FALSE)

    async def _write(self, node: CtaNodeView, known: Condition | None, *, stale: bool) -> None:
        """Add or change the one condition; the plugin's own stay, which names no other."""
        told = _condition(node, stale=stale, moment=self._clock.utc_text())
        there = [one.type for one in node.status.conditions]
        if known is not None:
            operation = {"op": "replace", "path": f"/status/conditions/{there.index(known.type)}"}
        else:
            operation = {"op": "add", "path": "/status/conditions" + ("/-" if there else "")}
        value: Any = told if there else [told]
        test = {"op": "test", "path": "/metadata/resourceVersion", "value": node.resource_version}
        try:
            path = CTA_NODES.path(name=node.name, subresource="status")
            await self._api.json_patch(path, [test, {**operation, "value": value}])
        except NotFound:
            return
        _log.info("node_reporting", node=node.name, stale=stale)


def _known(node: CtaNodeView) -> Condition | None:
    return next((one for one in node.status.conditions if one.type == CONDITION_REPORTING), None)


def _condition(node: CtaNodeView, *, stale: bool, moment: str) -> Mapping[str, object]:
    silent = f"the plugin has not reported since {node.status.confirmed_at}; what is said here may not be so any more"
    return Condition(
        type=CONDITION_REPORTING,
        status=ConditionStatus.FALSE if stale else ConditionStatus.TRUE,
        reason="PluginSilent" if stale else "PluginReports",
        message=silent if stale else "",
        last_transition_time=moment,
    ).as_api()


def _without(gpu: GpuStatus, gone: Collection[tuple[str, str]]) -> GpuStatus:
    left = tuple(one for one in gpu.allocations if (one.namespace, one.pod) not in gone)
    freed = sum(one.groups for one in gpu.allocations) - sum(one.groups for one in left)
    return gpu.model_copy(update={"allocations": left, "free": min(gpu.capacity, gpu.free + freed)})
