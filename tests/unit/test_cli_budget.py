"""Latency budgets at the command line: what explain tells, and what align warns of."""

import json

import pytest

from cta_group_cli.align_rules import answers
from cta_group_cli.exits import Exit
from cta_group_cli.explain import show_explanation
from cta_group_cli.manifests import read_manifests
from cta_group_core.nodes import Condition, ConditionStatus
from cta_group_core.profiles import profile_named
from cta_group_core.vllm.gpu import GpuKind
from cta_group_core.workload import BudgetMeasured, BudgetStatus, WorkloadOwner, WorkloadStatus
from fake_cluster_reader import FakeClusterReader

PROFILE = profile_named("h100-sxm")
H100 = GpuKind(PROFILE.product, PROFILE.memory_total_mib, 1024, PROFILE.units, limits_memory=True)


def a_status(status: ConditionStatus, advice: str = "64 groups would do") -> WorkloadStatus:
    """Return what the operator told of a Deployment that runs and has a budget."""
    return WorkloadStatus(
        owner=WorkloadOwner(api_version="apps/v1", kind="Deployment", name="web"),
        message="1 of 1 pods run",
        groups_per_pod=32,
        budget=BudgetStatus(
            wanted="ttft-p95=400ms",
            measured=(
                BudgetMeasured(
                    name="ttft-p95", limit_microseconds=400_000, observed_microseconds=900_000, observations=50
                ),
            ),
            recommended_groups=64,
            advice=advice,
        ),
        conditions=(
            Condition(type="Placed", status=ConditionStatus.TRUE, reason="Placed"),
            Condition(type="WithinBudget", status=status, reason="BudgetExceeded", message="ttft-p95 is about 900ms"),
        ),
    )


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (ConditionStatus.TRUE, "Its latency budget ttft-p95=400ms is kept: ttft-p95 is about 900ms."),
        (ConditionStatus.FALSE, "Its latency budget ttft-p95=400ms is NOT kept: ttft-p95 is about 900ms."),
        (ConditionStatus.UNKNOWN, "Its latency budget ttft-p95=400ms is not judged: ttft-p95 is about 900ms."),
    ],
)
def test_explain_tells_the_budget_and_the_advice(
    capsys: pytest.CaptureFixture[str], status: ConditionStatus, said: str
) -> None:
    """In words; a budget that is not kept is nothing that keeps the pods from running."""
    reader = FakeClusterReader(workloads={("team-a", "deployment-web"): a_status(status)})
    assert show_explanation(reader, "deploy/web", namespace="team-a", as_json=False) is Exit.FINE
    lines = capsys.readouterr().out.splitlines()
    assert said in lines
    assert "Advice: 64 groups would do." in lines


def test_programs_get_the_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    """As the status has them; without advice there is no sentence of it."""
    reader = FakeClusterReader(workloads={("team-a", "deployment-web"): a_status(ConditionStatus.FALSE, "")})
    show_explanation(reader, "deploy/web", namespace="team-a", as_json=True)
    answer = json.loads(capsys.readouterr().out)
    assert (answer["budget"]["recommendedGroups"], answer["blocked"]) == (64, False)
    assert answer["budget"]["measured"] == [
        {"name": "ttft-p95", "limitMicroseconds": 400_000, "observedMicroseconds": 900_000, "observations": 50}
    ]
    assert not any("Advice" in one for one in answer["remarks"])


def warnings(*, own: str = "", template: str = "", image: str = "vllm/vllm-openai:v0.27.1") -> list[str]:
    """Return the warnings about a Deployment with these annotations."""
    text = f"""
kind: Deployment
metadata: {{name: web, annotations: {{{own}}}}}
spec:
  template:
    metadata: {{annotations: {{{template}}}}}
    spec:
      containers:
      - {{name: main, image: "{image}", args: [m], resources: {{limits: {{nvidia.com/cta-group: 32}}}}}}
"""
    (answer,) = answers(read_manifests(text, "text"), H100)
    return [one for one in answer.warnings if "budget" in one]


def test_align_warns_of_a_budget_that_is_none() -> None:
    """Wherever it is written, the workload's own before its template's."""
    good, bad = 'ctagroup.dev/budget: "ttft=400ms"', 'ctagroup.dev/budget: "fast"'
    assert warnings() == warnings(own=good) == warnings(template=good) == warnings(own=good, template=bad) == []
    for found in (warnings(own=bad), warnings(template=bad), warnings(own=bad, template=good)):
        assert len(found) == 1
        assert "'fast' has not the form MEASURE=LIMIT" in found[0]


def test_align_warns_of_a_budget_that_nobody_can_judge() -> None:
    """A server that is not known to be vLLM needs its container, or its port, to be named."""
    good = 'ctagroup.dev/budget: "ttft=400ms"'
    (told,) = warnings(own=good, image="example.com/own:1")
    assert "its latencies cannot be read: no container looks like vLLM" in told
    assert warnings(own=f'{good}, ctagroup.dev/metrics-port: "9000"', image="example.com/own:1") == []
