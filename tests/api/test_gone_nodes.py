"""CTANodes of nodes that are gone go too, and whoever comes under the name of one inherits nothing.

Kubernetes' garbage collector takes them away, by the Node's uid; the operator deletes none and so cannot be misled.
"""

import asyncio
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from signal import SIGKILL

import pytest

from chart_rendering import NAMESPACE, render
from cluster_harness.api_client import ApiClient, Json
from cluster_harness.control_plane import ControlPlane
from cluster_harness.waiting import wait_for
from cta_group_core.names import ANNOTATION_REPAIRED, CONDITION_REPORTING, DEFAULT_RESOURCE_NAME
from cta_group_plugin.adapters.api_server import ApiServer
from cta_group_plugin.adapters.kube_api import KubeNodeApi
from cta_group_plugin.errors import ApiUnavailable
from cta_group_plugin.report import (
    UNHEALTHY,
    AllocationReport,
    ConditionReport,
    EnforcementReport,
    GpuReport,
    NodeReport,
)
from gpu_cluster import CAPACITY, OURS, GpuCluster
from kubectl import Kubectl
from operator_fixtures import cluster, kinds, operator, operator_kubeconfig
from operator_process import OperatorProcess

__all__ = ["cluster", "kinds", "operator", "operator_kubeconfig"]

_ACCOUNT = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/cta-group-plugin/token"
_RBAC = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")
_GONE, _AGAIN = 50, 20
"""Cycles. The 500 and 50 of a run by hand showed the same as these."""
_H100 = GpuReport(
    uuid="GPU-0",
    index=0,
    product="NVIDIA H100 80GB HBM3",
    compute_capability="9.0",
    sm_count=132,
    capacity=CAPACITY,
    minimum=8,
    step=8,
    memory_mib=81079,
    reserve_mib=1024,
    free=CAPACITY,
    largest_fit=CAPACITY,
)
_TENANT = AllocationReport(namespace="team-a", pod="p", container="c", groups=128, memory_mib=80055)
_FULL = replace(_H100, free=0, largest_fit=0, allocations=(_TENANT,))
_SICK = replace(_FULL, health=UNHEALTHY, health_reason="XID 79")


def _report(gpu: GpuReport) -> NodeReport:
    enforcement = EnforcementReport(compute=True, memory=True)
    return NodeReport(
        resource_name=DEFAULT_RESOURCE_NAME,
        driver_version="580.159.04",
        cuda_version="13.0",
        simulated=False,
        enforcement=enforcement,
        conditions=(),
        gpus=(gpu,),
    )


@dataclass
class Fleet:
    """Nodes that come and go, each with the plugin's own code and its own token, bound to the Node as kubelet's are."""

    api: ApiClient
    control_plane: ControlPlane
    folder: Path
    prefix: str

    def add(self, name: str) -> str:
        """Make a Node and return its uid."""
        uid: str = self.api.create("/api/v1/nodes", {"metadata": {"name": name, "labels": {"test": self.prefix}}})[
            "metadata"
        ]["uid"]
        return uid

    def remove(self, name: str) -> None:
        """Delete a Node."""
        self.api.delete(f"/api/v1/nodes/{name}")

    def plugin(self, name: str, uid: str) -> KubeNodeApi:
        """Return what writes for a plugin that starts on that Node now."""
        account = self.folder / uid
        if not account.exists():
            account.mkdir()
            bound = {"kind": "Node", "apiVersion": "v1", "name": name, "uid": uid}
            made = self.api.create(_ACCOUNT, {"spec": {"audiences": [], "boundObjectRef": bound}})
            (account / "token").write_text(made["status"]["token"])
            shutil.copy(self.control_plane.certificate_authority, account / "ca.crt")
        return KubeNodeApi(ApiServer(self.control_plane.server, account), name)

    def ctanodes(self) -> dict[str, Json]:
        """Return the CTANodes of this fleet by name."""
        found = {one["metadata"]["name"]: one for one in self.api.items(f"{OURS}/ctanodes")}
        return {name: one for name, one in found.items() if name.startswith(self.prefix)}

    def wait_collected(self) -> None:
        """Wait until what the collector had to do before this call is done: it takes one thing after the other."""
        owner = {"apiVersion": "v1", "kind": "Node", "name": "never-was", "uid": f"none-{len(self.ctanodes())}"}
        name = f"{self.prefix}-orphan"
        kind = {"apiVersion": "ctagroup.dev/v1alpha1", "kind": "CTANode"}
        self.api.create(f"{OURS}/ctanodes", kind | {"metadata": {"name": name, "ownerReferences": [owner]}})
        wait_for(lambda: name not in self.ctanodes(), "the garbage collector")


@pytest.fixture
def fleet(
    control_plane: ControlPlane,
    namespace: str,
    kinds: None,  # noqa: ARG001 - must be served first
    tmp_path: Path,
) -> Iterator[Fleet]:
    """Return no nodes yet; those that a test leaves are removed."""
    admin = Kubectl.admin(control_plane)
    admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    admin.apply(*(one for one in render("default") if one["kind"] in _RBAC and "plugin" in one["metadata"]["name"]))
    made = Fleet(control_plane.api, control_plane, tmp_path, namespace)
    yield made
    for node in made.api.items(f"/api/v1/nodes?labelSelector=test={namespace}"):
        made.remove(node["metadata"]["name"])


def test_nodes_that_come_and_go_leave_nothing(fleet: Fleet) -> None:
    """However many there were, each under a name of its own."""

    async def live(number: int) -> None:
        name = f"{fleet.prefix}-{number}"
        uid = await asyncio.to_thread(fleet.add, name)
        plugin = await asyncio.to_thread(fleet.plugin, name, uid)
        await plugin.apply(_report(_FULL))
        await asyncio.to_thread(fleet.remove, name)
        with pytest.raises(ApiUnavailable):  # a plugin that goes on for a while makes no new one
            await fleet.plugin(name, uid).apply(_report(_FULL))

    async def all_of_them() -> None:
        for number in range(_GONE):
            await live(number)

    asyncio.run(all_of_them())
    wait_for(lambda: fleet.ctanodes() == {}, "every CTANode to be gone")


def test_a_new_machine_under_the_name_inherits_neither_tenants_nor_health(fleet: Fleet) -> None:
    """Its plugin writes within two seconds, before or after the collector; what people said of the old one is gone."""
    name = f"{fleet.prefix}-again"

    async def machines() -> str:
        uid = ""
        for number in range(_AGAIN):
            uid = await asyncio.to_thread(fleet.add, name)
            plugin = fleet.plugin(name, uid)
            word = await plugin.apply(_report(_H100))
            assert word == "", "no word about the machine before"
            told = fleet.api.get(f"{OURS}/ctanodes/{name}")
            assert told["status"]["nodeUID"] == uid
            assert told["status"]["gpus"][0].get("allocations", []) == []
            assert told["status"]["gpus"][0]["health"] == "Healthy"
            if number < _AGAIN - 1:
                await plugin.apply(_report(_SICK))
                fleet.api.patch(
                    f"{OURS}/ctanodes/{name}", {"metadata": {"annotations": {ANNOTATION_REPAIRED: "today"}}}
                )
                fleet.remove(name)
        return uid

    last = asyncio.run(machines())
    fleet.wait_collected()
    (left,) = fleet.ctanodes().values()
    assert [owner["uid"] for owner in left["metadata"]["ownerReferences"]] == [last]


def test_what_the_operator_says_on_a_ctanode_outlives_the_plugins_next_word(fleet: Fleet) -> None:
    """The plugin applies its own conditions; the operator's, that it is silent, is the operator's to turn."""
    name = f"{fleet.prefix}-silent"
    uid = fleet.add(name)
    plugin = fleet.plugin(name, uid)
    own = ConditionReport("Registered", "True", "Registered", "", "2026-01-01T00:00:00Z")
    asyncio.run(plugin.apply(replace(_report(_H100), conditions=(own,))))
    silent = {"type": CONDITION_REPORTING, "status": "False", "reason": "PluginSilent"}
    status = f"{OURS}/ctanodes/{name}/status"
    there = fleet.api.get(f"{OURS}/ctanodes/{name}")["status"]["conditions"]
    fleet.api.patch(status, {"status": {"conditions": [*there, silent]}})
    asyncio.run(plugin.apply(replace(_report(_FULL), conditions=(own,))))
    told = fleet.api.get(f"{OURS}/ctanodes/{name}")["status"]
    assert told["free"] == 0
    assert {one["type"]: one["status"] for one in told["conditions"]} == {
        "Registered": "True",
        CONDITION_REPORTING: "False",
    }


def test_no_pod_is_sent_to_a_machine_by_what_another_said(
    fleet: Fleet,
    cluster: GpuCluster,
    operator: OperatorProcess,  # noqa: ARG001 - must run
) -> None:
    """The CTANode that an earlier Node left under the name is no room, until the new Node's plugin speaks."""
    node = cluster.add_node("name", [])
    written = cluster.api.get(f"{OURS}/ctanodes/{node}")["status"]
    cluster.api.patch(f"{OURS}/ctanodes/{node}/status", {"status": written | {"nodeUID": "of-an-earlier-one"}})
    cluster.create_pod("waits", 32)
    cluster.wait_told("Pod", "waits", "no node")
    uid = cluster.api.get(f"/api/v1/nodes/{node}")["metadata"]["uid"]
    asyncio.run(fleet.plugin(node, uid).apply(_report(_H100)))
    assert cluster.wait_bound("waits") == node


def test_nodes_that_cannot_be_listed_cost_no_ctanode(fleet: Fleet, operator: OperatorProcess) -> None:
    """While the operator's list of nodes is refused, and when it works again, every CTANode is the one of before."""
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/cta-group-operator"
    for number in range(10):
        name = f"{fleet.prefix}-{number}"
        asyncio.run(fleet.plugin(name, fleet.add(name)).apply(_report(_H100)))
    before = {name: one["metadata"]["uid"] for name, one in fleet.ctanodes().items()}
    rules = fleet.api.get(role)["rules"]
    without = [rule | {"resources": [one for one in rule["resources"] if one != "nodes"]} for rule in rules]
    lists = operator.metric('cta_group_lists_total{kind="Node"}') or 0
    try:
        fleet.api.patch(role, {"rules": without})
        # Ends the watch; what follows is a list. A polite end takes the API server long, as long as it has watches.
        fleet.control_plane.restart_component("kube-apiserver", SIGKILL)
        wait_for(lambda: "403" in operator.log and "nodes" in operator.log, "a list that is refused")
        fleet.wait_collected()
        assert {name: one["metadata"]["uid"] for name, one in fleet.ctanodes().items()} == before
    finally:
        fleet.api.patch(role, {"rules": rules})
    wait_for(lambda: (operator.metric('cta_group_lists_total{kind="Node"}') or 0) > lists, "a list again")
    assert {name: one["metadata"]["uid"] for name, one in fleet.ctanodes().items()} == before


def test_the_operator_may_not_delete_ctanodes() -> None:
    """So nothing that it sees, or does not see, costs a CTANode."""
    roles = [one for one in render("default") if one["kind"] == "ClusterRole" and "operator" in one["metadata"]["name"]]
    verbs = [rule["verbs"] for role in roles for rule in role["rules"] if "ctanodes" in rule["resources"]]
    assert verbs == [["list", "watch"]]
