"""A team's namespace on a cluster that has the chart: pods and servers that ask for groups, and what became of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from cluster_harness.base_images import BUSYBOX_IMAGE
from cluster_harness.errors import DeadlineError
from cluster_harness.tools import Tools
from cluster_harness.waiting import wait_for

RESOURCE = "nvidia.com/cta-group"
CTA_QUOTAS = "/apis/ctagroup.dev/v1alpha1/ctaquotas"
CTA_NODES = "/apis/ctagroup.dev/v1alpha1/ctanodes"
STAND_IN_IMAGE = "localhost/cta-group-vllm-stand-in:dev"
EIGHT_H100 = 8 * 128
"""Groups that the node of the tests offers."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Team:
    """One namespace and the tools of its user."""

    tools: Tools
    namespace: str

    def declare_quota(self, groups: int) -> None:
        """Give the namespace a CTAQuota of its own and wait until the API server enforces it."""
        spec = {"namespaces": [self.namespace], "groups": groups}
        quota = {"apiVersion": "ctagroup.dev/v1alpha1", "kind": "CTAQuota", "spec": spec}
        self.tools.api.apply(self._quota, {**quota, "metadata": {"name": self.namespace}})
        wait_for(self._is_quota_enforced, f"the ResourceQuota of {self.namespace}")

    def start_server(self, name: str, groups: int = 32, **changes: Any) -> None:
        """Make a Deployment of the vLLM stand-in; ``changes`` are laid over its container."""
        container = {
            "name": "vllm",
            "image": STAND_IN_IMAGE,
            "imagePullPolicy": "Never",
            "command": ["vllm", "serve"],
            "args": ["Qwen/Qwen3-0.6B", "--port=8000"],
            "readinessProbe": {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 1},
            "resources": {"limits": {RESOURCE: groups}},
            **changes,
        }
        template = {
            "metadata": {"labels": {"app": name}},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
        }
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
        deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
        self.tools.api.apply(f"{self._deployments}/{name}", deployment)

    def start_pod(
        self,
        name: str,
        groups: int,
        annotations: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        **changes: Any,
    ) -> None:
        """Make a pod that holds groups and does nothing; ``changes`` are laid over its spec. ApiError if refused."""
        container = {
            "name": "main",
            "image": BUSYBOX_IMAGE,
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", "trap exit TERM; while :; do sleep 1; done"],
            "env": [{"name": key, "value": value} for key, value in (env or {}).items()],
            "resources": {"limits": {RESOURCE: groups}},
        }
        spec = {"terminationGracePeriodSeconds": 1, "containers": [container], **changes}
        metadata = {"name": name, "annotations": dict(annotations or {})}
        self.tools.api.create(self._pods, {"metadata": metadata, "spec": spec})

    def pod(self, name: str) -> Json:
        """Return a pod by its name."""
        return self.tools.api.get(f"{self._pods}/{name}")

    def pods(self, app: str | None = None) -> list[Json]:
        """Return the pods of the namespace, or those of one server."""
        chosen = "" if app is None else f"?labelSelector=app%3D{app}"
        return self.tools.api.items(f"{self._pods}{chosen}")

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    @property
    def _deployments(self) -> str:
        return f"/apis/apps/v1/namespaces/{self.namespace}/deployments"

    @property
    def _quota(self) -> str:
        return f"{CTA_QUOTAS}/{self.namespace}"

    def wait_running(self, *names: str) -> None:
        """Wait until each pod is Ready."""
        for name in names:
            self._wait_for_all(partial(self._is_ready, name), f"pod {name} to be ready")

    def wait_served(self, *names: str) -> None:
        """Wait until each Deployment is rolled out."""
        for name in names:
            self._wait_for_all(partial(self._is_rolled_out, name), f"deployment {name} to be rolled out")

    def _wait_for_all(self, is_so: Callable[[], bool], what: str) -> None:
        """Wait for what the pods bring about; the error tells how they are."""
        try:
            wait_for(is_so, what)
        except DeadlineError as error:
            raise DeadlineError(
                f"{error}\n{[(pod['metadata']['name'], pod['status']) for pod in self.pods()]}"
            ) from error

    def wait_phase(self, name: str, phase: str) -> Json:
        """Wait until the pod is in the phase and return it."""
        return wait_for(lambda: self._in_phase(name, phase), f"pod {name} to be {phase}")

    def server_pod(self, name: str) -> Json:
        """Return the one pod of a server."""
        (pod,) = self.pods(name)
        return pod

    def environment(self, target: str) -> dict[str, str]:
        """Return the environment that a process in the container of ``pod/NAME`` or ``deployment/NAME`` has."""
        lines = self.tools.kubectl("-n", self.namespace, "exec", target, "--", "env").splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def explain(self, target: str) -> str:
        """Return what ``kubectl cta explain`` prints."""
        return self.tools.cta("explain", target, "-n", self.namespace)

    def wait_explained(self, target: str, *words: str) -> str:
        """Wait until the explanation holds all the words and return it."""

        def look() -> str | None:
            text = self.explain(target)
            return text if all(word in text for word in words) else None

        return wait_for(look, f"the explanation of {target} to say {words}")

    def disband(self) -> None:
        """Remove the namespace and its quota, and wait until no pod is there; the rest goes by itself."""
        api = self.tools.api
        api.discard(self._quota)
        api.discard(f"/api/v1/namespaces/{self.namespace}")
        api.delete(self._pods)  # none can come any more, and the namespace's own end begins seconds later
        wait_for(lambda: not self.pods(), f"the pods of {self.namespace} to be gone")

    def _is_quota_enforced(self) -> bool:
        quotas = self.tools.api.items(f"/api/v1/namespaces/{self.namespace}/resourcequotas")
        return any(f"requests.{RESOURCE}" in quota.get("status", {}).get("used", {}) for quota in quotas)

    def _is_ready(self, name: str) -> bool:
        conditions = self.pod(name)["status"].get("conditions", [])
        return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)

    def _is_rolled_out(self, name: str) -> bool:
        deployment = self.tools.api.get(f"{self._deployments}/{name}")
        status, wanted = deployment["status"], deployment["spec"]["replicas"]
        is_known = status.get("observedGeneration") == deployment["metadata"]["generation"]
        counts = [status.get(count, 0) for count in ("replicas", "updatedReplicas", "availableReplicas")]
        return is_known and counts == [wanted] * 3

    def _in_phase(self, name: str, phase: str) -> Json | None:
        pod = self.pod(name)
        return pod if pod["status"].get("phase") == phase else None

    def wait_nothing_held(self) -> None:
        """Wait until CTANode tells of nothing that the namespace holds."""
        wait_for(self._holds_nothing, f"CTANode to forget {self.namespace}")

    def _holds_nothing(self) -> bool:
        return all(it["namespace"] != self.namespace for gpu in gpus(self.tools) for it in gpu.get("allocations", []))


def gpus(tools: Tools) -> list[Json]:
    """Return the GPUs of the only node as CTANode tells them."""
    (node,) = tools.api.items(CTA_NODES)
    return list(node["status"]["gpus"])


def allocatable(tools: Tools) -> int:
    """Return the groups that the scheduler may give out on the only node."""
    (node,) = tools.api.items("/api/v1/nodes")
    return int(node["status"]["allocatable"].get(RESOURCE, "0"))
