"""A latency budget on a real API server: judged from the servers' own metrics, written when it changes, advice only."""

from collections.abc import Iterator
from typing import Any

import pytest

from cluster_harness.waiting import wait_for
from cta_group_core.budget.objectives import Measure
from cta_group_core.names import ANNOTATION_BUDGET, DEFAULT_RESOURCE_NAME
from gpu_cluster import OURS, GpuCluster, condition
from operator_fixtures import cluster, kinds, operator, operator_kubeconfig
from operator_process import OperatorProcess
from vllm_server_metrics import ServerMetrics, served_metrics

__all__ = ["cluster", "kinds", "operator", "operator_kubeconfig"]

OPERATOR_FLAGS = ("--budget-seconds=1",)

READ = 'cta_group_budget_reads_total{result="read"}'


@pytest.fixture
def server() -> Iterator[tuple[ServerMetrics, int]]:
    """Serve the metrics of a vLLM server at a port."""
    metrics = ServerMetrics(old=True)
    with served_metrics(metrics) as port:
        yield metrics, port


def deploy(cluster: GpuCluster, port: int) -> dict[str, Any]:
    """Make a Deployment of one vLLM pod that serves at the port, wait until it is bound, and return the Deployment."""
    cluster.add_node("one", [])
    container = {
        "name": "vllm",
        "image": "vllm/vllm-openai:v0.27.1",
        "args": ["Qwen/Qwen3-0.6B", f"--port={port}"],
        "resources": {"limits": {DEFAULT_RESOURCE_NAME: 32}},
    }
    cluster.deploy("web", 32, containers=[container])
    pod = wait_for(lambda: [one for one in cluster.pods() if one["spec"].get("nodeName")], "a bound pod")[0]
    running = {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/{pod['metadata']['name']}/status"
    cluster.api.patch(path, {"status": running})
    return cluster.api.get(f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments/web")


def annotate(cluster: GpuCluster, budget: str | None) -> None:
    """Write the budget on the Deployment, or take it away."""
    path = f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments/web"
    cluster.api.patch(path, {"metadata": {"annotations": {ANNOTATION_BUDGET: budget}}})


def wait_answer(cluster: GpuCluster, status: str, reason: str) -> dict[str, Any]:
    """Wait for the condition, and return the status of the CTAWorkload."""

    def told() -> dict[str, Any] | None:
        found = cluster.explanation("Deployment", "web")
        types = {one["type"] for one in found.get("conditions", ())}
        is_so = "WithinBudget" in types and condition(found, "WithinBudget") == (status, reason)
        return found if is_so else None

    return wait_for(told, f"WithinBudget to be {status} ({reason})")


def written(cluster: GpuCluster) -> tuple[str, Any, Any]:
    """Return the version of the CTAWorkload, what it says of the budget, and what it says of all else."""
    found = cluster.api.get(f"{OURS}/namespaces/{cluster.namespace}/ctaworkloads/deployment-web")
    status = dict(found["status"])
    conditions = {one["type"]: one for one in status.pop("conditions")}
    about_budget = (status.pop("budget"), conditions.pop("WithinBudget"))
    return found["metadata"]["resourceVersion"], about_budget, (status, conditions)


def wait_reads(operator: OperatorProcess, more: int) -> None:
    """Wait until the servers were read so many times more."""
    before = operator.metric(READ) or 0
    wait_for(lambda: (operator.metric(READ) or 0) >= before + more, f"{more} readings")


def test_a_budget_is_followed(
    cluster: GpuCluster, operator: OperatorProcess, server: tuple[ServerMetrics, int]
) -> None:
    """From the first look over kept to broken, with an event and metrics; the Deployment itself is never touched."""
    metrics, port = server
    made = deploy(cluster, port)
    annotate(cluster, "ttft=400ms")
    wait_answer(cluster, "Unknown", "TooFewRequests")
    metrics.observe(Measure.TTFT, 0.2, times=100)
    status = wait_answer(cluster, "True", "BudgetKept")
    (measured,) = status["budget"]["measured"]
    assert (measured["name"], measured["limitMicroseconds"], measured["observations"]) == ("ttft-p95", 400_000, 100)
    assert measured["observedMicroseconds"] == 242_500
    assert status["budget"]["recommendedGroups"] == 32

    version, about_budget, others = written(cluster)
    wait_reads(operator, 15)
    now = written(cluster)
    assert now[1] == about_budget
    assert now[0] == version or now[2] != others  # a node of the test that is lost meanwhile is a reason to write

    metrics.observe(Measure.TTFT, 0.9, times=900)
    status = wait_answer(cluster, "False", "BudgetExceeded")
    assert status["budget"]["recommendedGroups"] == 64
    wait_for(lambda: "BudgetExceeded" in dict(cluster.events("Deployment", "web")), "an event on the Deployment")
    labels = f'kind="Deployment",name="web",namespace="{cluster.namespace}"'
    wait_for(lambda: operator.metric(f"cta_group_workload_budget_kept{{{labels}}}") == 0, "the metric")
    recommended = f"cta_group_workload_recommended_groups{{{labels}}}"
    wait_for(lambda: operator.metric(recommended) == 64, "the recommendation as a metric")
    after = cluster.api.get(f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments/web")
    assert after["spec"] == made["spec"]


@pytest.mark.usefixtures("operator")
def test_a_budget_that_is_wrong_then_right_then_gone(cluster: GpuCluster, server: tuple[ServerMetrics, int]) -> None:
    """The condition names the mistake and nobody is asked; without the annotation nothing of it stays."""
    _, port = server
    deploy(cluster, port)
    annotate(cluster, "quick")
    status = wait_answer(cluster, "Unknown", "InvalidBudget")
    told = next(one["message"] for one in status["conditions"] if one["type"] == "WithinBudget")
    assert "'quick' has not the form MEASURE=LIMIT" in told
    annotate(cluster, "itl-p99=50ms")
    wait_answer(cluster, "Unknown", "TooFewRequests")
    annotate(cluster, None)

    def gone() -> bool:
        found = cluster.explanation("Deployment", "web")
        types = {one["type"] for one in found.get("conditions", ())}
        return "budget" not in found and bool(types) and "WithinBudget" not in types

    wait_for(gone, "the budget to be gone from the status")
