"""Every metric of the device plugin: declared together, there from the start, bounded by what the node has.

Counters count. Everything that describes the node comes from one collector over the newest view, so that a series of a
pod that is gone disappears by itself, without a moment in which all of them are missing.
"""

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from cta_group_core.names import METRIC_PREFIX
from cta_group_plugin.node_metrics import NodeCollector, NodeFigures
from cta_group_plugin.report import NodeReport

CALLS: Final = ("GetPreferredAllocation", "Allocate", "PreStartContainer")


class Metrics:
    """The registry of this process and what counts in it."""

    def __init__(self, version: str) -> None:
        self.registry = CollectorRegistry()
        self.registrations = self._counter("registrations", "Registrations with kubelet that succeeded")
        self.registration_failures = self._counter("registration_failures", "Registrations that kubelet did not take")
        self.refusals = Counter(
            f"{METRIC_PREFIX}refusals",
            "Calls of kubelet that were refused; PreStartContainer waits, the others fail the pod",
            ["call"],
            registry=self.registry,
        )
        for call in CALLS:
            self.refusals.labels(call=call)
        self.publish_failures = self._counter("publish_failures", "Writes of CTANode that failed")
        self.published = self._counter("published", "Writes of CTANode")
        self.record_failures = self._counter("health_record_failures", "Failures to read or keep the health record")
        build = Gauge(f"{METRIC_PREFIX}build_info", "Version of this process", ["version"], registry=self.registry)
        build.labels(version=version).set(1)

    def describe_node(
        self,
        status: Callable[[], NodeReport],
        figures: Callable[[], NodeFigures],
        *,
        is_ours: Callable[[], bool] = lambda: True,
    ) -> None:
        """Add the series that describe the node; the callables return the newest account, from any thread.

        They are left out while the node is not ``is_ours``: another process tells of it then, and sums count once.
        """
        self.registry.register(NodeCollector(status, figures, is_ours))

    def _counter(self, name: str, meaning: str) -> Counter:
        return Counter(f"{METRIC_PREFIX}{name}", meaning, registry=self.registry)
