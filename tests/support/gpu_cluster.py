"""A cluster with fake GPU nodes for tests of the operator: Node objects and CTANodes that the test itself writes.

No kubelet and no plugin runs. The scheduler is real, so a pod is bound for real; that it would start is not shown.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from cluster_harness.api_client import ApiClient
from cluster_harness.waiting import wait_for
from cta_group_core.moments import rfc3339
from cta_group_core.names import DEFAULT_RESOURCE_NAME, GATE_PLACEMENT, LABEL_REQUESTS
from cta_group_core.nodes import Allocation, GpuStatus, NodeStatus

Json = dict[str, Any]
OURS = "/apis/ctagroup.dev/v1alpha1"
CAPACITY = 128
_ANY = {"operator": "Exists"}


def h100(node: str, index: int, allocations: Sequence[Allocation] = ()) -> GpuStatus:
    """Return an H100 with what its tenants hold."""
    free = CAPACITY - sum(one.groups for one in allocations)
    return GpuStatus(
        uuid=f"GPU-{node}-{index}",
        index=index,
        product="NVIDIA H100 80GB HBM3",
        compute_capability="9.0",
        sm_count=132,
        capacity=CAPACITY,
        minimum=8,
        step=8,
        memory_mib=81079,
        reserve_mib=1024,
        free=free,
        largest_fit=free,
        allocations=tuple(allocations),
    )


def held(groups: int, pod: str = "somebody", namespace: str = "elsewhere") -> Allocation:
    """Return what a container holds."""
    return Allocation(namespace=namespace, pod=pod, container="main", groups=groups, memory_mib=groups * 600)


@dataclass
class GpuCluster:
    """Makes objects in one namespace, and nodes, and takes the nodes away again."""

    api: ApiClient
    namespace: str
    nodes: list[str] = field(default_factory=list)
    quotas: list[str] = field(default_factory=list)

    def add_node(
        self,
        name: str,
        *tenants: Sequence[Allocation],
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Json] = (),
        advertised: int | None = None,
    ) -> str:
        """Make a node of H100s, one per list of tenants, and its CTANode; return its name, unique to this test.

        ``advertised``: groups that its kubelet tells the scheduler; those of its GPUs when not given.
        """
        full = f"{name}-{self.namespace}"
        amounts = {
            "cpu": "64",
            "memory": "256Gi",
            "pods": "110",
            DEFAULT_RESOURCE_NAME: str(CAPACITY * len(tenants) if advertised is None else advertised),
        }
        metadata = {"name": full, "labels": {"kubernetes.io/hostname": full, "test": self.namespace, **(labels or {})}}
        self.nodes.append(full)
        self.api.create("/api/v1/nodes", {"metadata": metadata, "spec": {"taints": list(taints)}})
        ready = {"type": "Ready", "status": "True", "reason": "Fake", "message": "fake"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        self.api.patch(f"/api/v1/nodes/{full}/status", {"status": status})
        ctanode = {"apiVersion": "ctagroup.dev/v1alpha1", "kind": "CTANode", "metadata": {"name": full}}
        self.api.create(f"{OURS}/ctanodes", ctanode)
        self.publish(full, *tenants)
        return full

    def wait_known(self, *nodes: str) -> None:
        """Wait until the operator knows these nodes and their GPUs: it has written their labels.

        A pod that is made earlier may be planned over the others alone, each kind being watched for itself.
        """
        for node in nodes:
            wait_for(partial(self._is_labelled, node), f"the operator to label {node}")

    def _is_labelled(self, node: str) -> bool:
        return "ctagroup.dev/groups-per-gpu" in self.api.get(f"/api/v1/nodes/{node}")["metadata"]["labels"]

    def publish(self, node: str, *tenants: Sequence[Allocation], minutes_ago: int | None = None) -> None:
        """Write the CTANode's status, as the plugin does when its tenants change; ``minutes_ago``: confirmed then."""
        gpus = tuple(h100(node, index, one) for index, one in enumerate(tenants))
        confirmed_at = None if minutes_ago is None else rfc3339(time.time() - 60 * minutes_ago)
        status = NodeStatus(
            resource_name=DEFAULT_RESOURCE_NAME,
            simulated=True,
            gpus=gpus,
            confirmed_at=confirmed_at,
        ).with_totals()
        self.api.patch(f"{OURS}/ctanodes/{node}/status", {"status": status.as_api()})

    def declare_quota(self, groups: int, *namespaces: str, name: str | None = None, **more: Any) -> str:
        """Make a CTAQuota over namespaces, this one when none is named; ``more`` are fields of its spec."""
        full = name or self.namespace
        self.quotas.append(full)
        spec = {"groups": groups, "namespaces": list(namespaces or (self.namespace,)), **more}
        self.api.create(
            f"{OURS}/ctaquotas",
            {"apiVersion": "ctagroup.dev/v1alpha1", "kind": "CTAQuota", "metadata": {"name": full}, "spec": spec},
        )
        return full

    def quota_status(self, name: str) -> Json:
        """Return the status of a CTAQuota; empty while nobody has looked at it."""
        status: Json = self.api.get(f"{OURS}/ctaquotas/{name}").get("status", {})
        return status

    def deploy(self, name: str, groups: int, replicas: int = 1, **pod: Any) -> None:
        """Make a Deployment whose pods are as admission makes them: labelled and gated."""
        self.make_controller("Deployment", name, groups, pod, replicas=replicas)

    def make_controller(
        self, kind: str, name: str, groups: int, pod: Mapping[str, Any] | None = None, **spec: Any
    ) -> str:
        """Make a controller of ``apps``, or a Job, of labelled and gated pods; return its path."""
        job = kind == "Job"
        template = {
            "metadata": {"labels": {"app": name, LABEL_REQUESTS: "true"}},
            "spec": self.pod_spec(groups, **({"restartPolicy": "Never"} if job else {}), **(pod or {})),
        }
        selector = {} if job else {"selector": {"matchLabels": {"app": name}}}
        group = "/apis/batch/v1" if job else "/apis/apps/v1"
        path = f"{group}/namespaces/{self.namespace}/{kind.lower()}s"
        self.api.create(path, {"metadata": {"name": name}, "spec": {**selector, **spec, "template": template}})
        return f"{path}/{name}"

    def create_pod(self, name: str, groups: int, **spec: Any) -> Json:
        """Make a labelled and gated pod of its own."""
        metadata = {"name": name, "labels": {LABEL_REQUESTS: "true"}}
        return self.api.create(
            f"/api/v1/namespaces/{self.namespace}/pods", {"metadata": metadata, "spec": self.pod_spec(groups, **spec)}
        )

    def pod_spec(self, groups: int, **spec: Any) -> Json:
        """Return the spec of a gated pod that stays on this test's nodes."""
        container = {
            "name": "main",
            "image": "localhost/none:1",
            "resources": {"limits": {DEFAULT_RESOURCE_NAME: groups}},
        }
        return {
            "containers": [container],
            "schedulingGates": [{"name": GATE_PLACEMENT}],
            "nodeSelector": {"test": self.namespace},
            # No kubelet renews the lease of a fake node, so that it counts as lost after a while.
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready"} | _ANY,
                {"key": "node.kubernetes.io/unreachable"} | _ANY,
            ],
            **spec,
        }

    def pod(self, name: str) -> Json:
        """Return a pod."""
        return self.api.get(f"/api/v1/namespaces/{self.namespace}/pods/{name}")

    def pods(self) -> list[Json]:
        """Return all pods of the namespace."""
        return self.api.items(f"/api/v1/namespaces/{self.namespace}/pods")

    def node_of(self, name: str) -> str | None:
        """Return where a pod is bound."""
        node: str | None = self.pod(name)["spec"].get("nodeName")
        return node

    def wait_bound(self, name: str) -> str:
        """Wait until a pod is bound and return the node."""
        return wait_for(lambda: self.node_of(name), f"pod {name} to be bound")

    def limit(self, namespace: str | None = None) -> int | None:
        """Return the limit that is written in a namespace's ResourceQuota; None when there is none."""
        found = self.api.find(f"/api/v1/namespaces/{namespace or self.namespace}/resourcequotas/cta-group")
        return int(found["spec"]["hard"][f"requests.{DEFAULT_RESOURCE_NAME}"]) if found else None

    def wait_enforced(self, groups: int, namespace: str | None = None) -> None:
        """Wait until the API server enforces this limit."""
        path = f"/api/v1/namespaces/{namespace or self.namespace}/resourcequotas/cta-group"

        def enforced() -> bool:
            status = (self.api.find(path) or {}).get("status", {})
            hard = status.get("hard", {}).get(f"requests.{DEFAULT_RESOURCE_NAME}")
            return hard == str(groups) and bool(status.get("used"))

        wait_for(enforced, f"a limit of {groups} in {namespace or self.namespace}")

    def explanation(self, kind: str, name: str) -> Json:
        """Return the status of a CTAWorkload; empty when there is none."""
        path = f"{OURS}/namespaces/{self.namespace}/ctaworkloads/{kind.lower()}-{name}"
        status: Json = (self.api.find(path) or {}).get("status", {})
        return status

    def wait_told(self, kind: str, name: str, *parts: str) -> Json:
        """Wait until the message of a CTAWorkload contains all parts, and return its status."""

        def told() -> Json | None:
            status = self.explanation(kind, name)
            return status if all(part in status.get("message", "") for part in parts) else None

        return wait_for(told, f"{kind}/{name} to tell {parts}", seen=lambda: self.explanation(kind, name))

    def events(self, kind: str, name: str) -> list[tuple[str, str]]:
        """Return reason and message of the operator's events about an object."""
        selector = f"involvedObject.kind={kind},involvedObject.name={name},source=cta-group-operator"
        items = self.api.items(f"/api/v1/namespaces/{self.namespace}/events?fieldSelector={selector}")
        return [(one["reason"], one["message"]) for one in items]

    def close(self) -> None:
        """Remove what is not in the namespace."""
        for path in (
            *(f"{OURS}/ctaquotas/{name}" for name in self.quotas),
            *(f"{OURS}/ctanodes/{name}" for name in self.nodes),
            *(f"/api/v1/nodes/{name}" for name in self.nodes),
        ):
            self.api.discard(path)


def versions(items: Iterable[Json]) -> dict[str, str]:
    """Return the resourceVersion of each object by its uid."""
    return {one["metadata"]["uid"]: one["metadata"]["resourceVersion"] for one in items}


def condition(status: Json, kind: str) -> tuple[str, str]:
    """Return status and reason of one condition; empty when it is not there."""
    for one in status.get("conditions", ()):
        if one["type"] == kind:
            return one["status"], one["reason"]
    return "", ""
