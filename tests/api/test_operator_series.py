"""Series of what is gone: whatever comes and goes in the cluster, the exposition is what it was before."""

from collections.abc import Iterable
from dataclasses import dataclass

from cluster_harness.api_client import ApiClient, Json
from cluster_harness.waiting import wait_for
from cta_group_core.budget.objectives import Measure
from cta_group_core.names import ANNOTATION_BUDGET, DEFAULT_RESOURCE_NAME
from gpu_cluster import GpuCluster
from new_namespaces import new_namespace
from operator_fixtures import cluster, kinds, operator, operator_kubeconfig
from operator_process import OperatorProcess
from scraping import Scraper, scraping
from vllm_server_metrics import ServerMetrics, served_metrics

__all__ = ["cluster", "kinds", "operator", "operator_kubeconfig"]

OPERATOR_FLAGS = ("--budget-seconds=1", "--slipped-pods-seconds=1")

ROUNDS = 3
AT_ONCE = 8
REFUSED = 'cta_group_refused_pods_total{cause="room"}'
SLIPPED = "cta_group_slipped_pods_total"
_NO_ROOM = "Allocate failed due to rpc error: code = ResourceExhausted desc = no GPU has room, which is unexpected"


@dataclass(frozen=True)
class Life:
    """What comes and goes in one namespace: all that the operator has series of."""

    cluster: GpuCluster
    port: int

    @property
    def steady(self) -> tuple[str, ...]:
        """The series that are there for as long as their objects are."""
        space = self.cluster.namespace
        workloads = (("Deployment", "web"), ("Deployment", "denied"), ("Pod", "past"))
        return (*(requested(*one, space) for one in workloads), quota_hard(space))

    def is_all_told(self, series: Iterable[str]) -> bool:
        """Tell whether everything that is here is told, what is denied and whether the budget is kept too."""
        space = self.cluster.namespace
        denied = f'kind="Deployment",name="denied",namespace="{space}"'
        blocked = any(one.startswith("cta_group_workload_blocked") and denied in one for one in series)
        return blocked and {*self.steady, budget_kept("web", space)} <= set(series)

    def begin(self) -> None:
        """Make a node and a quota."""
        self.cluster.add_node("n", [])
        self.cluster.declare_quota(64)

    def serve(self) -> None:
        """Make a Deployment with a latency budget, once the quota is in force."""
        self.cluster.wait_enforced(64)
        container = {
            "name": "vllm",
            "image": "vllm/vllm-openai:v0.27.1",
            "args": ["Qwen/Qwen3-0.6B", f"--port={self.port}"],
            "resources": {"limits": {DEFAULT_RESOURCE_NAME: 32}},
        }
        self.cluster.deploy("web", 32, containers=[container])
        budget = {"metadata": {"annotations": {ANNOTATION_BUDGET: "ttft=400ms"}}}
        self.cluster.api.patch(f"/apis/apps/v1/namespaces/{self.cluster.namespace}/deployments/web", budget)

    def fill(self) -> None:
        """Let the server run, a pod come past the webhook, and the quota refuse one more."""
        pod = wait_for(lambda: [one for one in self.cluster.pods() if "nodeName" in one["spec"]], "a bound pod")[0]
        running = {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
        self._say(pod["metadata"]["name"], running)
        spec = self.cluster.pod_spec(32)
        del spec["schedulingGates"]
        body = {"metadata": {"name": "past"}, "spec": spec}
        self.cluster.api.create(f"/api/v1/namespaces/{self.cluster.namespace}/pods", body)
        self.cluster.deploy("denied", 32)

    def refuse(self) -> None:
        """Refuse a pod as a kubelet does."""
        self._say("past", {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": _NO_ROOM})

    def end(self) -> None:
        """Take all away."""
        api, space = self.cluster.api, f"namespaces/{self.cluster.namespace}"
        wait_for(lambda: self.cluster.events("Pod", "past"), "the refusal to be seen")
        self.cluster.close()
        api.discard(f"/apis/apps/v1/{space}/deployments")
        api.discard(f"/api/v1/{space}/pods?gracePeriodSeconds=0")
        api.discard(f"/api/v1/{space}")

    def _say(self, pod: str, status: Json) -> None:
        self.cluster.api.patch(f"/api/v1/namespaces/{self.cluster.namespace}/pods/{pod}/status", {"status": status})


def requested(kind: str, name: str, namespace: str) -> str:
    """Return the series of a workload."""
    return f'cta_group_workload_requested{{kind="{kind}",name="{name}",namespace="{namespace}"}}'


def quota_hard(name: str) -> str:
    """Return the series of a quota."""
    return f'cta_group_quota_hard{{quota="{name}"}}'


def budget_kept(name: str, namespace: str) -> str:
    """Return the series of the latency budget of a Deployment."""
    return f'cta_group_workload_budget_kept{{kind="Deployment",name="{name}",namespace="{namespace}"}}'


def live_and_die(scraper: Scraper, api: ApiClient, server: ServerMetrics, port: int) -> list[str]:
    """Let some namespaces come and go with all that is in them, and return their names."""
    lives = [Life(GpuCluster(api, new_namespace(api, "life")), port) for _ in range(AT_ONCE)]
    for step in (Life.begin, Life.serve, Life.fill):
        for life in lives:
            step(life)
    steady = [one for life in lives for one in life.steady]

    def all_told() -> bool:
        server.observe(Measure.TTFT, 0.2, times=100)
        return all(life.is_all_told(scraper.now) for life in lives)

    wait_for(all_told, "all that was made to be told")
    scraper.wait_told(*steady)
    scraper.may_go(*steady)
    for step in (Life.refuse, Life.end):
        for life in lives:
            step(life)
    return [life.cluster.namespace for life in lives]


def test_nothing_that_is_gone_is_told(cluster: GpuCluster, operator: OperatorProcess) -> None:
    """Two dozen namespaces with all that can be in them come and go, and the series are those of before.

    No scrape meanwhile misses what is there, and counters go on.
    """
    cluster.add_node("stays", [])
    cluster.declare_quota(32)
    cluster.wait_enforced(32)
    cluster.deploy("stays", 32)
    server = ServerMetrics()
    stays = (requested("Deployment", "stays", cluster.namespace), quota_hard(cluster.namespace))
    with served_metrics(server) as port, scraping(operator.metrics_url) as scraper:
        scraper.wait_told(*stays)
        before = set(scraper.now)
        counted = {name: scraper.now[name] for name in (REFUSED, SLIPPED)}
        gone = [name for _ in range(ROUNDS) for name in live_and_die(scraper, cluster.api, server, port)]
        wait_for(lambda: scraper.now.keys() <= before, "the series of before")
        assert not [one for one in scraper.now if any(name in one for name in gone)]
        assert set(stays) <= scraper.now.keys()
        assert {name: scraper.now[name] - was for name, was in counted.items()} == {
            REFUSED: len(gone),
            SLIPPED: len(gone),
        }
    assert scraper.missed() == []
    assert scraper.went_back() == []
    assert scraper.failures() == []
