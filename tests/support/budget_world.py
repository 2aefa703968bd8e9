"""A workload with a latency budget and its servers, behind the operator's ports."""

from dataclasses import dataclass, field, replace
from typing import Any

from cta_group_core.budget.target import MetricsTarget, Served
from cta_group_core.budget.window import Reading
from cta_group_core.ids import NodeName
from cta_group_core.vllm.detect import ContainerFacts, detect
from cta_group_operator.adapters.vllm_exposition import read_exposition
from cta_group_operator.errors import MetricsUnreadable
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import ObjectRef, PodView
from cta_group_operator.reconcile.budget import BudgetWatch
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.server_metrics import BudgetView
from operator_world import FakeClock, a_controller, a_node, a_pod, a_view, ref
from vllm_server_metrics import ServerMetrics

DEPLOYMENT = ref("Deployment", "web")
REPLICA_SET = ref("ReplicaSet", "web-1")
LOOK_SECONDS = 30.0


def a_budget(text: str = "ttft=400ms", *, model: str = "Qwen/Qwen3-0.6B", port: int = 8000) -> BudgetView:
    """Return a budget of a server whose model's size is known."""
    container = ContainerFacts("vllm", "vllm/vllm-openai:v0.27.1", args=(model,))
    return BudgetView(text, Served(MetricsTarget(port), "", detect([container], {}).found))


@dataclass
class FakeServerMetrics:
    """Servers by the address of their pod; one that is not there does not answer."""

    by_address: dict[str, ServerMetrics] = field(default_factory=dict)
    asked: list[tuple[str, int]] = field(default_factory=list)

    async def read(self, address: str, target: MetricsTarget) -> Reading:
        """Read the text that the server would send."""
        self.asked.append((address, target.port))
        if address not in self.by_address:
            raise MetricsUnreadable(f"{address} does not answer")
        return read_exposition(self.by_address[address].text())


@dataclass
class BudgetWorld:
    """A Deployment ``web`` of one pod in 32 groups, and the watch over it."""

    view: ClusterView = field(default_factory=a_view)
    clock: FakeClock = field(default_factory=FakeClock)
    servers: FakeServerMetrics = field(default_factory=FakeServerMetrics)
    metrics: Metrics = field(default_factory=lambda: Metrics("test"))
    told: list[ObjectRef] = field(default_factory=list)
    version: int = 10

    def __post_init__(self) -> None:
        a_node(self.view, "n", 128)
        self.declare(a_budget())
        self.view.controllers["ReplicaSet"].put(a_controller("ReplicaSet", "web-1", owner=DEPLOYMENT))
        self.watch = self.make_watch()

    def make_watch(self, seconds: float = LOOK_SECONDS) -> BudgetWatch:
        """Return what a replica that begins to lead has."""
        return BudgetWatch(
            self.view, self.servers, self.clock, metrics=self.metrics, seconds=seconds, tell=self.told.append
        )

    def declare(self, budget: BudgetView | None) -> None:
        """Write the Deployment with a budget, or without."""
        self.version += 1
        controller = a_controller("Deployment", "web", budget=budget)
        self.view.controllers["Deployment"].put(_versioned(controller, self.version))

    def start(self, name: str = "a", **changes: Any) -> ServerMetrics:
        """Start a pod with its server, whose address is its name."""
        self.version += 1
        running = {"owner": REPLICA_SET, "gates": (), "node": NodeName("n"), "phase": "Running", "address": name}
        pod: PodView = a_pod(name, **{**running, **changes})
        self.view.pods.put(_versioned(pod, self.version))
        self.servers.by_address[name] = ServerMetrics()
        return self.servers.by_address[name]

    async def look(self, times: int = 1) -> float | None:
        """Look at the Deployment, each time after the time between two looks; return when the next one is due."""
        due = None
        for _ in range(times):
            self.clock.now += LOOK_SECONDS
            due = await self.watch.look(DEPLOYMENT)
        return due


def _versioned(view: Any, version: int) -> Any:

    return replace(view, resource_version=str(version))
