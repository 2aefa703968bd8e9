"""Two real nodes of one H100 each, 96 groups of it held by others, and a team's Deployment with one pod a node."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from cluster_harness.base_images import BUSYBOX_IMAGE
from cluster_harness.cluster import Cluster
from cluster_harness.joined_node import JoinedNode
from cluster_harness.waiting import wait_for
from kubelet_record import are_disjoint, recorded_ids
from team import CTA_NODES, CTA_QUOTAS, RESOURCE, Json, Team

SERVER = "web"
GROUPS = 32
OTHERS = 96
_IDLE = ["sh", "-c", "trap exit TERM; while :; do sleep 1; done"]
_FLAG = "/tmp/may-end"  # noqa: S108 - of a container
_UNTIL_FLAG = {"preStop": {"exec": {"command": ["sh", "-c", f"until [ -e {_FLAG} ]; do sleep 0.1; done"]}}}


@dataclass(frozen=True, slots=True)
class TwoNodes:
    """The cluster, its second node, and the team whose Deployment is on both."""

    cluster: Cluster
    second: JoinedNode
    team: Team

    # --- the Deployment
    def deploy(self, *, ends_by_flag: bool = False) -> None:
        """Have two pods of 32 that are replaced without surge; those that ``ends_by_flag`` end when they are let go."""
        container = {
            "name": "main",
            "image": BUSYBOX_IMAGE,
            "imagePullPolicy": "Never",
            "command": _IDLE,
            "resources": {"limits": {RESOURCE: GROUPS}},
            **({"lifecycle": _UNTIL_FLAG} if ends_by_flag else {}),
        }
        pods = {"terminationGracePeriodSeconds": 120 if ends_by_flag else 1, "containers": [container]}
        spec = {
            "replicas": 2,
            "selector": {"matchLabels": {"app": SERVER}},
            "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "template": {"metadata": {"labels": {"app": SERVER}}, "spec": pods},
        }
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": SERVER}, "spec": spec}
        self.cluster.api.apply(f"/apis/apps/v1/namespaces/{self.team.namespace}/deployments/{SERVER}", body)

    def pods(self, *, ending: bool = False) -> list[Json]:
        """Return the Deployment's pods that are being deleted, or those that are not."""
        return [pod for pod in self.team.pods(SERVER) if ("deletionTimestamp" in pod["metadata"]) is ending]

    def nodes(self) -> list[str | None]:
        """Return where the pods are that are not being deleted; None for one that waits."""
        return sorted((pod["spec"].get("nodeName") for pod in self.pods()), key=str)

    def wait_served(self) -> None:
        """Wait until one pod runs on each node."""
        self.team.wait_served(SERVER)
        assert self.nodes() == sorted(node.name for node in self.cluster.nodes)

    def wait_ending(self) -> Json:
        """Wait until one pod is being deleted, and return it."""
        return wait_for(lambda: self.pods(ending=True), "a pod that ends")[0]

    def let_go(self, pod: Json) -> None:
        """Have a pod end that waits for its flag, and wait until it is gone."""
        name = pod["metadata"]["name"]
        self.team.tools.kubectl("-n", self.team.namespace, "exec", name, "--", "touch", _FLAG)
        wait_for(lambda: name not in self._names(), f"the end of pod {name}")

    def delete(self, name: str) -> None:
        """Delete a pod, with a second of grace."""
        self.cluster.api.delete(f"/api/v1/namespaces/{self.team.namespace}/pods/{name}?gracePeriodSeconds=1")

    def _names(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.team.pods(SERVER)]

    @contextmanager
    def kubelet_away(self) -> Iterator[None]:
        """Stop the second node's kubelet, whose containers run on, and start it again."""
        self.second.stop_kubelet()
        try:
            yield
        finally:
            self.second.start_kubelet()

    # --- what is held
    def fill(self, others: Team) -> None:
        """Have others hold 96 groups on each node."""
        self.wait_offered()
        names = [f"large-{node.plan.number}" for node in self.cluster.nodes]
        for name in names:
            others.start_pod(name, OTHERS)
        others.wait_running(*names)

    def are_ids_disjoint(self) -> bool:
        """Tell whether on each node no id is recorded for two pods."""
        return all(are_disjoint(recorded_ids(node, RESOURCE).values()) for node in self.cluster.nodes)

    def held_on(self, node: str) -> dict[str, int]:
        """Return the groups that a CTANode tells for each pod."""
        (gpu,) = self.cluster.api.get(f"{CTA_NODES}/{node}")["status"]["gpus"]
        return {one["pod"]: one["groups"] for one in gpu.get("allocations", [])}

    def wait_held(self, node: str, pod: str) -> None:
        """Wait until the node's plugin tells what a pod holds: it hears of that from the kubelet, in rounds."""
        wait_for(lambda: self.held_on(node).get(pod) == GROUPS, f"what {pod} holds of {node}")

    def quota(self) -> Json:
        """Return the status of the team's CTAQuota."""
        status: Json = self.cluster.api.get(f"{CTA_QUOTAS}/{self.team.namespace}").get("status", {})
        return status

    def wait_quota(self, **numbers: int) -> Json:
        """Wait until the quota's status has these numbers, and return it."""

        def look() -> Json | None:
            status = self.quota()
            return status if numbers.items() <= status.items() else None

        return wait_for(look, f"the quota to tell {numbers}", seen=self.quota)

    def wait_quota_told(self, words: str) -> None:
        """Wait until ``kubectl cta quota`` says so of the team's quota."""

        def told() -> bool:
            return words in self.team.tools.cta("quota", "-n", self.team.namespace)

        wait_for(told, f"the words {words!r}")

    def wait_offered(self) -> None:
        """Wait until each node offers its GPU, and nobody holds any of it."""
        for node in self.cluster.nodes:
            wait_for(partial(self._is_free, node.name), f"the whole GPU of {node.name}")

    def _is_free(self, node: str) -> bool:
        offered = self.cluster.api.get(f"/api/v1/nodes/{node}")["status"]["allocatable"].get(RESOURCE)
        told = (self.cluster.api.find(f"{CTA_NODES}/{node}") or {}).get("status", {}).get("gpus", [])
        return offered == "128" and [gpu["free"] for gpu in told] == [128]
