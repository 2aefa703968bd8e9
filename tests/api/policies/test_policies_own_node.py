"""The plugin of a node writes that node's CTANode and no other."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_harness.api_client import ApiClient, Json
from cluster_harness.control_plane import ControlPlane
from cta_group_core.names import ANNOTATION_REPAIRED, API_GROUP_VERSION, FIELD_MANAGER_PLUGIN
from cta_group_core.nodes import NodeStatus
from cta_group_plugin.adapters.api_server import ApiServer
from cta_group_plugin.adapters.kube_api import KubeNodeApi
from cta_group_plugin.adapters.kube_events import KubeEvents
from cta_group_plugin.errors import ApiUnavailable
from cta_group_plugin.pod_events import PodEvent
from cta_group_plugin.ports import PodName
from cta_group_plugin.report import (
    HEALTH_STATES,
    UNHEALTHY,
    AllocationReport,
    ConditionReport,
    EnforcementReport,
    GpuReport,
    NodeReport,
    PcieLink,
    as_api,
)
from group_pods import container, pod
from kubectl import Kubectl

_ACCOUNT = "/api/v1/namespaces/cta-group/serviceaccounts/cta-group-plugin/token"
_CTANODES = f"/apis/{API_GROUP_VERSION}/ctanodes"


def _ctanode(name: str) -> Json:
    return {"apiVersion": API_GROUP_VERSION, "kind": "CTANode", "metadata": {"name": name}}


def _status(name: str) -> Json:
    return _ctanode(name) | {"status": NodeStatus(resource_name="nvidia.com/cta-group").as_api()}


@pytest.fixture
def token(policies: None, api: ApiClient) -> Iterator[str]:  # noqa: ARG001 - needed for what it does
    """Return the token that a plugin on node own-a gets."""
    node = api.create("/api/v1/nodes", {"metadata": {"name": "own-a"}})["metadata"]
    bound = {"kind": "Node", "apiVersion": "v1", "name": "own-a", "uid": node["uid"]}
    made: str = api.create(_ACCOUNT, {"spec": {"audiences": [], "boundObjectRef": bound}})["status"]["token"]
    api.create("/api/v1/nodes", {"metadata": {"name": "own-b"}})
    yield made
    for name in ("own-a", "own-b"):
        api.discard(f"/api/v1/nodes/{name}")
    for name in (stored["metadata"]["name"] for stored in api.items(_CTANODES)):
        if name.startswith("own-"):
            api.discard(f"{_CTANODES}/{name}")  # Kubernetes' collector takes those of a Node that is gone too


@pytest.fixture
def plugin(token: str, control_plane: ControlPlane) -> Kubectl:
    """Return kubectl with that token."""
    return Kubectl.with_token(control_plane, token)


def _report(*gpus: GpuReport) -> NodeReport:
    enforcement = EnforcementReport(compute=True, memory=True)
    ready = ConditionReport("MPSReady", "True", "Ready", "1 GPUs are shared", "2026-01-01T00:00:00Z")
    return NodeReport(
        resource_name="nvidia.com/cta-group",
        driver_version="580.159.04",
        cuda_version="13.0",
        simulated=False,
        enforcement=enforcement,
        conditions=(ready,),
        gpus=gpus,
    )


async def test_the_plugin_s_own_code_publishes_with_these_rights_alone(
    token: str, control_plane: ControlPlane, api: ApiClient, tmp_path: Path
) -> None:
    """A served GPU with a tenant, an unhealthy one and one that does not answer: the kind takes all that it writes."""
    (tmp_path / "token").write_text(token)
    shutil.copy(control_plane.certificate_authority, tmp_path / "ca.crt")
    held = AllocationReport(namespace="team-a", pod="p", container="c", groups=32, memory_mib=20013)
    h100 = GpuReport(
        uuid="GPU-0",
        index=0,
        product="NVIDIA H100 80GB HBM3",
        compute_capability="9.0",
        sm_count=132,
        capacity=128,
        minimum=8,
        step=8,
        memory_mib=81079,
        driver_reserved_mib=480,
        reserve_mib=1024,
        minor=0,
        pci_bus_id="0000:1b:00.0",
        numa_node=-1,
        link=PcieLink(16, 16, 1, 5),
        copy_engines=8,
        mig_mode="Disabled",
        compute_mode="ExclusiveProcess",
        persistence_mode=True,
        foreign_memory_mib=640,
        notice="processes that are no tenants use it: Xorg (pid 12)",
        free=96,
        largest_fit=96,
        allocations=(held,),
    )
    sick = replace(h100, uuid="GPU-1", index=1, health=UNHEALTHY, health_reason="XID 79 " * 100, largest_fit=0)
    held_back = [
        replace(h100, uuid=f"GPU-{state}", index=9, health=state, health_reason="x", notice="y", largest_fit=0)
        for state in HEALTH_STATES
    ]
    silent = GpuReport(
        uuid="GPU-unknown-2", index=2, product="unknown", compute_capability="unknown", health=UNHEALTHY, withheld="?"
    )
    node_api = KubeNodeApi(ApiServer(control_plane.server, tmp_path), "own-a")
    await node_api.apply(_report())
    await node_api.apply(_report(*held_back))
    await node_api.apply(_report(h100, sick, silent))
    stored = api.get(f"{_CTANODES}/own-a")["status"]
    # Fields that the kind does not have are dropped without a word; the UID is added when it is written.
    assert {name: told for name, told in stored.items() if name != "nodeUID"} == as_api(_report(h100, sick, silent))
    status = NodeStatus.model_validate(stored)
    assert (status.capacity, status.allocatable, status.free) == (256, 128, 96)
    assert [gpu.uuid for gpu in status.gpus] == ["GPU-0", "GPU-1", "GPU-unknown-2"]
    with pytest.raises(ApiUnavailable, match="may write the CTANode own-a only, not own-b"):
        await KubeNodeApi(ApiServer(control_plane.server, tmp_path), "own-b").apply(_report(h100))


async def test_what_a_person_says_of_a_repair_comes_with_the_next_write(
    token: str, control_plane: ControlPlane, api: ApiClient, tmp_path: Path
) -> None:
    """The plugin may not read its object, and need not: the answer to its write carries the annotation."""
    (tmp_path / "token").write_text(token)
    shutil.copy(control_plane.certificate_authority, tmp_path / "ca.crt")
    node_api = KubeNodeApi(ApiServer(control_plane.server, tmp_path), "own-a")
    assert await node_api.apply(_report()) == ""
    api.patch(f"{_CTANODES}/own-a", {"metadata": {"annotations": {ANNOTATION_REPAIRED: "2026-11-30"}}})
    assert await node_api.apply(_report()) == "2026-11-30"


async def test_it_tells_pods_by_events_that_kubectl_shows(
    token: str, control_plane: ControlPlane, api: ApiClient, namespace: str, tmp_path: Path
) -> None:
    """In the pod's namespace, with these rights alone; the same cause again is no second event and no error."""
    (tmp_path / "token").write_text(token)
    shutil.copy(control_plane.certificate_authority, tmp_path / "ca.crt")
    made = api.create(f"/api/v1/namespaces/{namespace}/pods", pod(container(), gates=["example.com/hold"]))
    event = PodEvent(
        PodName(namespace, made["metadata"]["name"]),
        made["metadata"]["uid"],
        "GPUUnhealthy",
        "GPU 0 (GPU-0) is unhealthy: XID 79",
        key="GPU-0/1.0",
    )
    for _ in range(2):
        await KubeEvents(ApiServer(control_plane.server, tmp_path), "own-a").write(event)
    told = Kubectl.admin(control_plane).run("describe", "pod", event.pod.name, "-n", namespace).stdout
    assert told.count("GPUUnhealthy") == 1
    assert "cta-group-plugin" in told
    assert "XID 79" in told


def test_it_creates_and_updates_its_own_object(plugin: Kubectl, api: ApiClient) -> None:
    """Server-side apply of the object and of its status, again and again, with the chart's rights alone."""
    for _ in range(2):
        plugin.apply(_ctanode("own-a"), manager=FIELD_MANAGER_PLUGIN, extra=["--validate=false"])
        plugin.apply(_status("own-a"), manager=FIELD_MANAGER_PLUGIN, extra=["--validate=false", "--subresource=status"])
    assert api.get(f"{_CTANODES}/own-a")["status"]["resourceName"] == "nvidia.com/cta-group"


def test_it_may_not_write_another_node_s(plugin: Kubectl, api: ApiClient) -> None:
    """Neither created nor changed: a node that was taken over cannot lie about others."""
    words = "the plugin of node own-a may write the CTANode own-a only, not own-b"
    api.create(_CTANODES, _ctanode("own-b"))
    for made, extra in ((_ctanode("own-b"), []), (_status("own-b"), ["--subresource=status"]), (_ctanode("own-c"), [])):
        command = ("apply", "--server-side", "--field-manager=x", "--validate=false", *extra, "-f", "-")
        done = plugin.run(*command, objects=[made])
        assert done.returncode != 0
        assert words.replace("own-b", made["metadata"]["name"]) in done.stderr
    assert api.find(f"{_CTANODES}/own-c") is None


def test_it_may_delete_its_own_object_only(plugin: Kubectl, api: ApiClient) -> None:
    """What an earlier Node of its name left goes; another node's stays."""
    for name in ("own-a", "own-b"):
        api.create(_CTANODES, _ctanode(name))
    assert plugin.run("delete", "--raw", f"{_CTANODES}/own-a").returncode == 0
    refused = plugin.run("delete", "--raw", f"{_CTANODES}/own-b")
    assert "the plugin of node own-a may write the CTANode own-a only, not own-b" in refused.stderr
    assert api.find(f"{_CTANODES}/own-b")


def test_a_generated_name_is_no_way_around(plugin: Kubectl) -> None:
    """The policy sees the name that the server made."""
    made = _ctanode("x") | {"metadata": {"generateName": "own-a-"}}
    done = plugin.run("create", "--validate=false", "-f", "-", objects=[made])
    assert "may write the CTANode own-a only, not own-a-" in done.stderr


@pytest.mark.usefixtures("plugin")
def test_a_token_without_a_node_may_write_nothing(control_plane: ControlPlane, api: ApiClient) -> None:
    """A token that somebody made by hand for the account is not a plugin on a node."""
    token = api.create(_ACCOUNT, {"spec": {"audiences": []}})["status"]["token"]
    stray = Kubectl.with_token(control_plane, token)
    done = stray.run("create", "--validate=false", "-f", "-", objects=[_ctanode("own-a")])
    assert "the plugin's token is bound to no node (claim authentication.kubernetes.io/node-name)" in done.stderr


def test_it_may_do_nothing_else(plugin: Kubectl) -> None:
    """Its role gives it its CTANode and a look at its Node; it lists nothing, and sees no pod and no secret."""
    others = (("list", "nodes"), ("patch", "nodes"), ("get", "ctanodes"), ("list", "ctanodes"), ("list", "pods"))
    for verb, resource in (*others, ("get", "secrets")):
        assert plugin.run("auth", "can-i", verb, resource, "--all-namespaces").stdout.strip() == "no"


@pytest.mark.usefixtures("plugin")
def test_other_writers_are_not_its_business(api: ApiClient) -> None:
    """Whom roles let write CTANodes, such as an administrator that cleans up, may go on."""
    api.create(_CTANODES, _ctanode("own-d"))
    api.delete(f"{_CTANODES}/own-d")
