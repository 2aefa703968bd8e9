"""Every metric of the operator: declared together, there from the start, bounded by the cluster's own objects.

Counters count in every replica. What describes the cluster comes from one collector over the leader's view, so that a
series of an object that is gone disappears by itself, and a replica that does not lead tells nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cta_group_core.names import METRIC_PREFIX
from cta_group_core.refusals import Cause

RECONCILED: Final = ("quota", "workload", "placement", "node", "refused", "slipped", "stale", "budget")
"""Kinds of work, the values of the label ``kind``."""
READ_RESULTS: Final = ("read", "failed")
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_WAITING_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)


class ReleaseFailure(StrEnum):
    """Why a pod's gate could not be taken off: the label of a metric."""

    CHANGED = "changed"
    """It was another than the one decided on, and is planned again at once."""
    FORBIDDEN = "forbidden"
    """By RBAC or somebody's admission."""
    REJECTED = "rejected"
    """The API server does not take the pod with the change."""
    UNAVAILABLE = "unavailable"
    """No answer, or an error of the API server or of a webhook behind it."""


@dataclass(frozen=True, slots=True)
class QuotaFigures:
    """One CTAQuota, in groups."""

    name: str
    hard: int
    used: int
    pending: int
    borrowed: int = 0
    lent: int = 0
    uncharged: int = 0


@dataclass(frozen=True, slots=True)
class WorkloadFigures:
    """One workload. ``blocked``: the reason of the condition that is False, None while nothing is."""

    namespace: str
    kind: str
    name: str
    requested: int
    blocked: str | None


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """One queue of work: keys that are due or worked on, and for how many seconds the oldest of them is."""

    name: str
    depth: int
    oldest_seconds: float


@dataclass(frozen=True, slots=True)
class BudgetFigures:
    """The latency budget of one workload. ``kept``: None while that is not known."""

    namespace: str
    kind: str
    name: str
    kept: bool | None
    ratios: Sequence[tuple[str, float]] = ()
    """For each objective, such as ``ttft-p95``, the latency as a share of its limit."""
    recommended: int | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """What the leader sees now."""

    leader: bool = False
    quotas: Sequence[QuotaFigures] = ()
    workloads: Sequence[WorkloadFigures] = ()
    budgets: Sequence[BudgetFigures] = ()
    waiting: int = 0
    """Pods whose gate is on."""
    release_refused: int = 0
    """Those of them whose gate the API server did not let the operator take off when it tried last."""
    room_kept: int = 0
    """Those of them that room is kept for."""
    backed_off: int = 0
    """Those of them that wait because a node refused others of their controller."""
    without_webhook: int = 0
    """Pods of the resource that were admitted without the webhook and have not ended."""
    queues: Sequence[QueueFigures] = ()
    stale_nodes: int = 0
    """CTANodes that no plugin has confirmed for long."""
    event_ages: Sequence[tuple[str, float]] = field(default_factory=tuple)
    """For each watched kind, seconds since the API server said anything, a bookmark too."""


class Metrics:
    """The registry of this process and what counts in it."""

    def __init__(self, version: str) -> None:
        self.registry = CollectorRegistry()
        self.released = self._counter("placement_released", "Pods whose gate the operator took off")
        self.release_failures = self._labelled(
            "placement_release_failures", "Patches that did not take a pod's gate off", "cause"
        )
        for failure in ReleaseFailure:
            self.release_failures.labels(cause=failure.value)
        self.refused = self._labelled("refused_pods", "Pods that a kubelet did not give their groups", "cause")
        for cause in Cause:
            self.refused.labels(cause=cause.value)
        self.slipped = self._counter("slipped_pods", "Pods that were found to have come past the webhook")
        self.replanned = self._counter(
            "placement_replanned", "Released pods that the scheduler could not bind, deleted to be planned again"
        )
        self.placement_seconds = Histogram(
            f"{METRIC_PREFIX}placement_seconds",
            "From the moment a pod waits for nothing but a node until it is released",
            buckets=_WAITING_SECONDS,
            registry=self.registry,
        )
        self.api_writes = self._counter("api_writes", "Writes that were sent to the API server while leading")
        self.pokes = self._counter("pokes", "Controllers that were woken because quota has room again")
        self.decode_errors = self._labelled("decode_errors", "Objects of the API that could not be read", "kind")
        self.lists = self._labelled("lists", "Full lists of a kind: at the start, and after a watch was lost", "kind")
        self.budget_reads = self._labelled("budget_reads", "Readings of a vLLM server's metrics", "result")
        for result in READ_RESULTS:
            self.budget_reads.labels(result=result)
        self.reconcile_errors = self._labelled(
            "reconcile_errors", "Rounds of work that failed and are repeated", "kind"
        )
        self.reconcile_seconds = Histogram(
            f"{METRIC_PREFIX}reconcile_seconds",
            "Time of one round of work",
            ["kind"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        for kind in RECONCILED:
            self.reconcile_errors.labels(kind=kind)
            self.reconcile_seconds.labels(kind=kind)
        build = Gauge(f"{METRIC_PREFIX}build_info", "Version of this process", ["version"], registry=self.registry)
        build.labels(version=version).set(1)

    def follow(self, figures: Callable[[], Figures]) -> None:
        """Collect from ``figures`` at each scrape."""
        self.registry.register(_ClusterCollector(figures))

    def _counter(self, name: str, meaning: str) -> Counter:
        return Counter(f"{METRIC_PREFIX}{name}", meaning, registry=self.registry)

    def _labelled(self, name: str, meaning: str, label: str) -> Counter:
        return Counter(f"{METRIC_PREFIX}{name}", meaning, [label], registry=self.registry)


class _ClusterCollector(Collector):
    def __init__(self, figures: Callable[[], Figures]) -> None:
        self._figures = figures

    def collect(self) -> Iterable[Metric]:
        now = self._figures()
        yield _number("leader", "1 in the replica that leads", now.leader)
        yield _gauge("watch_event_age_seconds", "Since a watched kind was heard of", ("kind",), _ages(now))
        if now.leader:
            yield from _waiting(now)
            meaning = "Pods that were admitted without the webhook and have not ended"
            yield _number("pods_without_webhook", meaning, now.without_webhook)
            yield from _queues(now.queues)
            meaning = "CTANodes that no plugin has confirmed for so long that they are not believed in full"
            yield _number("stale_nodes", meaning, now.stale_nodes)
            yield from _quotas(now.quotas)
            yield from _workloads(now.workloads)
            yield from _budgets(now.budgets)


def _waiting(now: Figures) -> Iterable[Metric]:
    yield _number("placement_waiting", "Pods whose gate is on", now.waiting)
    yield _number("placement_release_refused", "Pods whose gate the API server keeps on", now.release_refused)
    yield _number("placement_room_kept", "Waiting pods that room is kept for", now.room_kept)
    yield _number("placement_backed_off", "Pods that wait since a node refused their like", now.backed_off)


def _ages(now: Figures) -> list[tuple[tuple[str, ...], float]]:
    return [((kind,), age) for kind, age in now.event_ages]


def _queues(queues: Sequence[QueueFigures]) -> Iterable[Metric]:
    label = ("queue",)
    yield _gauge("queue_depth", "Keys that are due or worked on", label, [((one.name,), one.depth) for one in queues])
    meaning = "For how long the oldest key is due or worked on"
    yield _gauge("queue_oldest_seconds", meaning, label, [((one.name,), one.oldest_seconds) for one in queues])


def _quotas(quotas: Sequence[QuotaFigures]) -> Iterable[Metric]:
    label = ("quota",)
    yield _gauge("quota_hard", "Groups of a CTAQuota", label, [((one.name,), one.hard) for one in quotas])
    yield _gauge("quota_used", "Groups its pods are charged for", label, [((one.name,), one.used) for one in quotas])
    meaning = "Groups of pods that it keeps from being created"
    yield _gauge("quota_pending", meaning, label, [((one.name,), one.pending) for one in quotas])
    meaning = "Groups above its own that it may give its namespaces now"
    yield _gauge("quota_borrowed", meaning, label, [((one.name,), one.borrowed) for one in quotas])
    meaning = "Groups of its own that others of the cohort may use now"
    yield _gauge("quota_lent", meaning, label, [((one.name,), one.lent) for one in quotas])
    meaning = "Groups that GPUs hold for its pods and nobody is charged for, as on a lost node"
    yield _gauge("quota_uncharged", meaning, label, [((one.name,), one.uncharged) for one in quotas])


def _workloads(workloads: Sequence[WorkloadFigures]) -> Iterable[Metric]:
    labels = ("namespace", "kind", "name")
    asked = [((one.namespace, one.kind, one.name), float(one.requested)) for one in workloads]
    yield _gauge("workload_requested", "Groups that all wanted pods of a workload ask for", labels, asked)
    blocked = [((one.namespace, one.kind, one.name, one.blocked), 1.0) for one in workloads if one.blocked]
    yield _gauge("workload_blocked", "1 while a pod can not be created or placed", (*labels, "reason"), blocked)


def _budgets(budgets: Sequence[BudgetFigures]) -> Iterable[Metric]:
    labels = ("namespace", "kind", "name")
    found = [((one.namespace, one.kind, one.name), one) for one in budgets]
    kept = [(key, float(one.kept)) for key, one in found if one.kept is not None]
    yield _gauge("workload_budget_kept", "1 while a workload keeps its latency budget, 0 while not", labels, kept)
    ratios = [((*key, name), ratio) for key, one in found for name, ratio in one.ratios]
    yield _gauge("workload_budget_ratio", "Latency of a workload by its limit", (*labels, "objective"), ratios)
    advised = [(key, float(one.recommended)) for key, one in found if one.recommended is not None]
    yield _gauge("workload_recommended_groups", "Groups that a pod is advised to ask for", labels, advised)


def _number(name: str, meaning: str, value: float) -> GaugeMetricFamily:
    return _gauge(name, meaning, (), [((), float(value))])


def _gauge(
    name: str, meaning: str, labels: Sequence[str], samples: Iterable[tuple[tuple[str, ...], float]]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"{METRIC_PREFIX}{name}", meaning, labels=labels)
    for values, value in dict(samples).items():  # of what was made again under its name, the newer
        family.add_metric(values, value)
    return family
