"""What ``check-release`` says of a cluster: what is wrong, in a sentence with its remedy, or that all is well."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from cta_group_core.names import GATE_PLACEMENT, LABEL_REQUESTS
from cta_group_operator.cli import main
from cta_group_operator.errors import ApiUnavailable, Forbidden, NotFound
from cta_group_operator.ports import Json
from cta_group_operator.release_check import CheckReport, CheckSettings, ReleaseCheck
from release_world import RESOURCE, WorldInMemory, condition, now_text, told

FAST = CheckSettings(timeout_seconds=0.2, pause_seconds=0.001)
PATIENT = CheckSettings(timeout_seconds=30, pause_seconds=0.001)


async def checked(world: WorldInMemory, settings: CheckSettings = FAST) -> CheckReport:
    """Check the world."""
    return await ReleaseCheck(world, settings).run()


async def found(world: WorldInMemory, settings: CheckSettings = FAST) -> str:
    """Return the words about a world in which something is wrong."""
    report = await checked(world, settings)
    assert not report.is_well
    assert all(finding.remedy for finding in report.findings)
    return report.words()


async def test_a_release_that_works_is_said_to() -> None:
    """One look is enough; the pod is the least that was named, in the namespace that was named."""
    world = WorldInMemory()
    report = await checked(world, PATIENT)
    assert report.is_well, report.words()
    assert "comes before the webhook and is gated" in report.words()
    assert "1 of 1 nodes with the plugin offer 128 groups" in report.words()
    ((path, pod),) = world.rehearsed
    assert path == "/api/v1/namespaces/default/pods"
    assert pod["spec"]["containers"][0]["resources"] == {"limits": {RESOURCE: "8"}}


async def test_what_becomes_right_in_time_was_never_wrong() -> None:
    """Right after an install the API server has not heard of the webhook yet."""
    world = WorldInMemory()
    world.labels = {}
    world.becomes_well = lambda: world.labels.update({LABEL_REQUESTS: "true"})
    report = await checked(world, PATIENT)
    assert report.is_well
    assert len(world.rehearsed) == 3


async def test_a_pod_that_came_past_the_webhook() -> None:
    """What to look at first, the ports of private clusters, and the command that knows more."""
    world = WorldInMemory()
    world.labels, world.gates = {}, []
    words = await found(world)
    assert "without the webhook" in words
    assert "kubectl -n cta-group get pods -l app.kubernetes.io/component=operator" in words
    assert "webhook.port: 10250" in words
    assert "kubectl cta doctor" in words


async def test_a_pod_without_its_gate_is_wrong_where_placement_is_on() -> None:
    """Somebody took the gate off, or another release's operator answers; without placement there is none."""
    world = WorldInMemory()
    world.gates = []
    assert f"without the gate {GATE_PLACEMENT}" in await found(world)
    assert (await checked(world, CheckSettings(placement=False))).is_well


async def test_a_webhook_that_fails_closed_and_is_not_reached() -> None:
    """With failurePolicy Fail the API server refuses the pod; the way to mend it is the same."""
    world = WorldInMemory()
    world.failures["/pods"] = ApiUnavailable('500: failed calling webhook "pods.ctagroup.dev": context deadline')
    assert "webhook.port: 10250" in await found(world)


async def test_a_rehearsal_that_a_quota_refuses_names_the_value_for_another_namespace() -> None:
    """Nothing is known of the webhook then."""
    world = WorldInMemory()
    world.failures["/pods"] = Forbidden("exceeded quota: cta-group")
    words = await found(world)
    assert "exceeded quota" in words
    assert "helmTest.namespace" in words


async def test_no_namespace_to_rehearse_in_is_a_finding() -> None:
    """Nothing is rehearsed, and nobody is told that admission works."""
    world = WorldInMemory()
    assert "helmTest.namespace" in await found(world, CheckSettings(rehearse_in="", timeout_seconds=0.05))
    assert world.rehearsed == []


async def test_a_release_without_a_webhook_rehearses_nothing() -> None:
    """Only the nodes are looked at."""
    world = WorldInMemory()
    assert (await checked(world, CheckSettings(webhook=False))).is_well
    assert world.rehearsed == []


@pytest.mark.parametrize(
    ("lease", "words"),
    [
        ({"holderIdentity": "operator-1", "renewTime": "2026-01-01T00:00:00.000000Z"}, "since 2026-01-01T00:00:00"),
        ({"holderIdentity": "", "renewTime": now_text()}, "nobody holds it"),
        ({}, "nobody holds it"),
        ({"holderIdentity": "operator-1", "renewTime": "noon"}, "since noon nobody has renewed it"),
    ],
)
async def test_an_operator_that_nobody_leads(lease: dict[str, Any], words: str) -> None:
    """Pods would be gated and never released."""
    world = WorldInMemory()
    world.lease = lease
    said = await found(world)
    assert words in said
    assert "no replica of the operator leads" in said


async def test_a_leader_whose_clock_differs_leads_all_the_same() -> None:
    """Its renewal is another one at the next look."""
    world = WorldInMemory()
    world.renewals = ["2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:01.500000Z"]
    report = await checked(world, PATIENT)
    assert report.is_well
    assert "operator-1 leads the operator" in report.words()


async def test_an_operator_that_never_led() -> None:
    """There is no lease yet: its pods are to be looked at."""
    world = WorldInMemory()
    world.failures["/cta-group-operator"] = NotFound("GET .../leases/cta-group-operator: 404")
    assert "component=operator" in await found(world)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({}, "its CTANode has no status yet"),
        (told(nodeUID="uid-before"), "has not confirmed the CTANode"),
        (told(confirmedAt=None), "has not confirmed the CTANode"),
        (told(conditions=[condition("Reporting", "False", "silent since noon")]), "Reporting is False"),
        (told(conditions=[condition("Registered", "False", "no kubelet.sock")]), "no kubelet.sock"),
        (told(conditions=[condition("MPSReady", "False", "no daemon")]), "component=mps"),
        (told(conditions=[condition("HoldersKnown", "False", "set kubelet.rootDir")]), "set kubelet.rootDir"),
        (told(capacity=256, allocatable=256), "its kubelet offers 128 nvidia.com/cta-group, and the plugin 256"),
        (told(capacity="many"), "cannot be read"),
        (told(capacity=0, allocatable=0), "its kubelet offers 128"),
    ],
)
async def test_a_node_that_is_not_in_order(status: dict[str, Any], words: str) -> None:
    """Each is told by the node's name."""
    world = WorldInMemory()
    world.published["gpu"]["status"] = status
    said = await found(world)
    assert "node gpu: " in said
    assert words in said


async def test_a_gpu_that_is_ill_is_no_fault_of_the_release() -> None:
    """Nor is a node without a GPU, or a CTANode whose node is gone."""
    world = WorldInMemory()
    world.published["gpu"]["status"]["conditions"].append(condition("GPUsHealthy", "False", "XID 79"))
    nothing = told(capacity=0, allocatable=0, nodeUID="uid-cpu", conditions=[condition("Registered", "False")])
    world.published["cpu"] = {"metadata": {"name": "cpu"}, "status": nothing}
    world.machines["cpu"] = world.machine("cpu", "0")
    world.published["gone"] = {"metadata": {"name": "gone"}, "status": {}}
    report = await checked(world, PATIENT)
    assert report.is_well, report.words()
    assert "1 of 2 nodes with the plugin offer 128 groups" in report.words()


async def test_a_node_that_is_gone_offers_nothing() -> None:
    """Its CTANode may be there still: a cluster without any other does not pass."""
    world = WorldInMemory()
    world.machines = {}
    assert "no node has published its GPUs" in await found(world)


async def test_no_node_at_all() -> None:
    """The values that choose nodes are named."""
    world = WorldInMemory()
    world.published = {}
    words = await found(world)
    assert "no node has published its GPUs" in words
    assert "nodes.selector" in words


async def test_nodes_that_offer_nothing() -> None:
    """A cluster in which nobody can get a group does not pass."""
    world = WorldInMemory()
    world.published["gpu"]["status"] = told(capacity=0, allocatable=0)
    world.machines["gpu"] = world.machine("gpu", "0")
    assert "none of 1 nodes offers groups" in await found(world)


async def test_many_nodes_with_one_fault_are_not_all_told() -> None:
    """Five, and how many more."""
    world = WorldInMemory()
    for number in range(9):
        name = f"gpu-{number}"
        world.published[name] = {"metadata": {"name": name}, "status": {}}
        world.machines[name] = world.machine(name, "0")
    report = await checked(world)
    assert len(report.findings) == 6
    assert "4 more findings" in report.words()


async def test_kinds_that_are_not_installed() -> None:
    """The command that installs them is named."""
    world = WorldInMemory()
    world.failures["/ctanodes"] = NotFound("GET /apis/ctagroup.dev/v1alpha1/ctanodes: 404")
    assert "kubectl apply --server-side -f crds/" in await found(world)


@pytest.mark.parametrize("end", ["/ctanodes", "/nodes"])
async def test_an_api_server_that_does_not_answer(end: str) -> None:
    """What was asked is told, and where to look."""
    world = WorldInMemory()
    world.failures[end] = ApiUnavailable(f"GET {end}: no answer")
    words = await found(world)
    assert f"GET {end}: no answer" in words
    assert "NetworkPolicy" in words


async def test_an_api_server_that_keeps_silent_for_all_the_time() -> None:
    """The time ends in the middle of the first question."""

    class Silent(WorldInMemory):
        async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
            del path, query
            await asyncio.Event().wait()
            return {}

    assert "did not answer within 0.2 s" in await found(Silent())


def test_the_help_says_how_to_call_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Both ways are in the help, to be copied."""
    with pytest.raises(SystemExit) as end:
        main(["check-release", "--help"])
    said = capsys.readouterr().out
    assert end.value.code == 0
    assert "helm test cta-group --namespace cta-group" in said
    assert "--kubeconfig" in said


def test_a_kubeconfig_that_cannot_be_read_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2 and a sentence that names the file."""
    assert main(["check-release", "--kubeconfig=/nowhere/config"]) == 2
    assert "/nowhere/config" in capsys.readouterr().err
