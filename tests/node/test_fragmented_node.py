"""Eight GPUs with 64 groups free each and a pod of 96: enough in sum, on no GPU. With the operator, and without it.

kube-scheduler counts one number a node, here 512 free groups. Left to itself it binds such a pod, the plugin refuses
it, its controller makes another, and that is bound again (kubernetes#108152). The operator keeps it gated and says why.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cluster_harness import release
from cluster_harness.base_images import BUSYBOX_IMAGE
from cluster_harness.tools import Tools
from cluster_harness.waiting import wait_for
from cta_group_core.names import GATE_PLACEMENT
from team import Team, gpus

OPERATOR = "cta-group-operator"
STORM = 5
"""Refused pods of one controller that show that it would go on."""


@pytest.fixture
def holders(team: Team) -> list[str]:
    """Fill every GPU by two pods of 64, then end one on each; return the pods that are left."""
    names = [f"half-{number}" for number in range(16)]
    for name in names:
        team.start_pod(name, 64)
    team.wait_running(*names)
    wait_for(lambda: all(gpu["free"] == 0 for gpu in gpus(team.tools)), "every GPU to be full")
    on_each = [[it["pod"] for it in gpu["allocations"]] for gpu in gpus(team.tools)]
    team.tools.kubectl("-n", team.namespace, "delete", "pod", *(first for first, _ in on_each))
    wait_for(lambda: all(gpu["free"] == 64 for gpu in gpus(team.tools)), "half of every GPU to be free")
    return [second for _, second in on_each]


@contextmanager
def without_the_operator(tools: Tools) -> Iterator[None]:
    """Have no operator, and bring it back."""
    place = ("-n", release.NAMESPACE)
    (replicas,) = {tools.objects("deployment", OPERATOR, *place)["spec"]["replicas"]}
    tools.kubectl(*place, "scale", f"deployment/{OPERATOR}", "--replicas=0")
    try:
        chosen = ("-l", "app.kubernetes.io/component=operator")
        tools.kubectl(*place, "wait", "--for=delete", "pod", *chosen, "--timeout=180s")
        yield
    finally:
        tools.kubectl(*place, "scale", f"deployment/{OPERATOR}", f"--replicas={replicas}")
        tools.kubectl(*place, "rollout", "status", f"deployment/{OPERATOR}", "--timeout=180s")


def start_large(team: Team) -> None:
    """Make a Deployment of one pod of 96 that does nothing."""
    idle = ["sh", "-c", "trap exit TERM; while :; do sleep 1; done"]
    team.start_server("large", 96, image=BUSYBOX_IMAGE, command=idle, args=[], readinessProbe=None)


def refused(team: Team) -> list[dict[str, Any]]:
    """Return the pods of the Deployment that the node refused."""
    return [pod for pod in team.pods("large") if pod["status"].get("reason") == "UnexpectedAdmissionError"]


def test_with_the_operator_it_waits_with_a_reason_and_runs_when_one_gpu_has_room(
    team: Team, holders: list[str]
) -> None:
    """96 groups wait while every GPU has 64 free, are told asked, free and what fits, and run when one GPU is free."""
    start_large(team)
    team.wait_explained("deployment/large", "96", "64 of 128", "largest request that fits now is 64")
    (pod,) = team.pods("large")
    assert [gate["name"] for gate in pod["spec"]["schedulingGates"]] == [GATE_PLACEMENT]
    assert "nodeName" not in pod["spec"]
    team.tools.kubectl("-n", team.namespace, "delete", "pod", holders[0])
    team.wait_served("large")
    (after,) = team.pods("large")
    assert after["metadata"]["uid"] == pod["metadata"]["uid"]


def test_without_the_operator_it_is_bound_and_refused_again_and_again(team: Team, holders: list[str]) -> None:
    """The same Deployment makes pod after pod, all bound and refused; the operator's return ends that."""
    assert len(holders) == 8
    with without_the_operator(team.tools):
        start_large(team)
        wait_for(lambda: len(refused(team)) >= STORM, f"{STORM} refused pods")
        storm = refused(team)
    assert {pod["spec"]["nodeName"] for pod in storm} == {storm[0]["spec"]["nodeName"]}
    assert len({pod["metadata"]["ownerReferences"][0]["uid"] for pod in storm}) == 1
    for fact in ("asked for 96 groups", "64 of 128", "largest request that fits now is 64"):
        assert all(fact in pod["status"]["message"] for pod in storm)

    def only_gated_ones_are_left() -> bool:
        living = [pod for pod in team.pods("large") if pod["status"].get("phase") != "Failed"]
        return len(living) == 1 and bool(living[0]["spec"].get("schedulingGates"))

    wait_for(only_gated_ones_are_left, "the storm to end with a gated pod")
    # The operator knows these words of this kubelet: it tells of them and leaves one to be looked at, then none.
    wait_for(lambda: len(refused(team)) <= 1, "the failed pods to be taken away")
    selector = "involvedObject.name=large,reason=RefusedByNode"
    path = f"/api/v1/namespaces/{team.namespace}/events?fieldSelector={selector}"
    told = wait_for(lambda: team.tools.api.items(path), "an event about the refused pods")
    assert {event["involvedObject"]["kind"] for event in told} == {"Deployment"}
    assert all("which asks for 96 groups: UnexpectedAdmissionError" in event["message"] for event in told)
