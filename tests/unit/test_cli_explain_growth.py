"""``kubectl cta explain`` about what may hang later, the server that was found, and pods that never came to be."""

import pytest

from cta_group_cli.errors import NotFound
from cta_group_cli.exits import Exit
from cta_group_cli.explain import show_explanation
from cta_group_cli.ports import Quota
from cta_group_core.nodes import Condition, ConditionStatus
from cta_group_core.quota import QuotaSpec, QuotaStatus
from cta_group_core.workload import (
    CeilingStatus,
    MemoryPlan,
    RolloutStatus,
    ServerStatus,
    WorkloadOwner,
    WorkloadStatus,
)
from explained_objects import answer
from fake_cluster_reader import FakeClusterReader


def a_reader(status: WorkloadStatus) -> FakeClusterReader:
    """Return a cluster in which the operator has written about Deployment web."""
    return FakeClusterReader(workloads={("team-a", "deployment-web"): status})


RUNS = WorkloadStatus(
    owner=WorkloadOwner(api_version="apps/v1", kind="Deployment", name="web"),
    message="6 of 6 pods run, 32 groups each",
    groups_per_pod=32,
    replicas_wanted=6,
    replicas_running=6,
)


def test_pod_that_was_refused_leaves_nothing() -> None:
    """A pod of its own that a quota refused does not exist: what can be known is what the quota has left."""
    shares = [{"name": "team-a", "hard": 96, "used": 64}]
    status = QuotaStatus.model_validate({"groups": 160, "used": 160, "namespaces": shares})
    reader = FakeClusterReader(all_quotas=[Quota("ours", QuotaSpec(groups=160), status)])
    with pytest.raises(NotFound) as missing:
        show_explanation(reader, "pod/missing", namespace="team-a", as_json=False)
    assert str(missing.value) == (
        "pod/missing is not in namespace team-a, and no CTAWorkload tells of it (-n: another); a pod that nobody "
        "controls leaves nothing when it is refused: its creator got the reason; CTAQuota ours has 0 of 160 groups "
        "left, 32 of 96 in namespace team-a"
    )


HANGS = "a rollout would hang"
WARNED = RUNS.model_copy(
    update={
        "ceiling": CeilingStatus(replicas=10, groups=320, set_by="HorizontalPodAutoscaler web"),
        "rollout": RolloutStatus(surge_replicas=1, surge_groups=32, unavailable_replicas=0),
        "server": ServerStatus(
            engine="vLLM",
            container="vllm",
            version="0.27.1",
            arguments_form="list",
            arguments=("--model=Qwen/Qwen3-4B",),
            memory=(
                MemoryPlan(
                    product="H100",
                    slice_mib=20013,
                    context_mib=148,
                    reserve_mib=3072,
                    utilization="0.2071",
                    weights_mib=7629,
                    cache_mib=7984,
                ),
            ),
        ),
        "conditions": (
            Condition(type="Admissible", status=ConditionStatus.TRUE, reason="Admitted"),
            Condition(type="RolloutSafe", status=ConditionStatus.FALSE, reason="SurgeExceedsQuota", message=HANGS),
        ),
    }
)


def test_what_may_hang_later_is_told_and_is_no_obstacle(capsys: pytest.CaptureFixture[str]) -> None:
    """Warnings stand below the sentence with their condition; a workload that runs is fine all the same."""
    status = show_explanation(a_reader(WARNED), "deploy/web", namespace="team-a", as_json=False)
    text = capsys.readouterr().out
    assert status is Exit.FINE
    assert f"\n\nRolloutSafe: {HANGS}.\n\n" in text


def test_server_ceiling_and_rollout_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """What the operator found is read by people and by programs."""
    show_explanation(a_reader(WARNED), "deploy/web", namespace="team-a", as_json=False)
    text = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "most pods: 10, 320 groups (HorizontalPodAutoscaler web)" in lines
    assert "a rollout: at most 1 pod more, 32 groups; 0 may be missing meanwhile" in lines
    assert "server: vLLM 0.27.1 in container vllm, arguments as list: --model=Qwen/Qwen3-4B" in lines
    assert (
        "memory on H100: 20013 MiB: context 148, reserve 3072, weights about 7629, 7984 left for the KV cache; "
        "--gpu-memory-utilization at most 0.2071"
    ) in lines
    found = answer(capsys, a_reader(WARNED), "deploy/web")
    assert (found["ceiling"]["groups"], found["rollout"]["surgeGroups"]) == (320, 32)
    assert found["server"]["memory"][0]["sliceMiB"] == 20013
