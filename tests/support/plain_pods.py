"""Pods of one namespace on a real node that ask for groups of the plain plugin, and what kubelet says of them."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from cluster_harness.api_client import ApiClient
from cluster_harness.base_images import BUSYBOX_IMAGE
from cluster_harness.errors import ApiError, DeadlineError
from cluster_harness.waiting import wait_for

RESOURCE = "plain.example.com/cta-group"
FLAGS = Path("/run/plain/flags")
"""Mounted into pods at the same path: how a test lets a container go on."""
_MET = "met"

Json = dict[str, Any]


class PlainPods:
    """The pods of a namespace."""

    def __init__(self, api: ApiClient, namespace: str, describe: Callable[[], str]) -> None:
        """``describe`` adds to an error what else is known."""
        self.namespace = namespace
        self._api = api
        self._describe = describe

    def start_pod(self, name: str, groups: int, script: str, **changes: Any) -> None:
        """Make a pod whose only container runs ``script``; ``changes`` are laid over the spec."""
        main = container("main", script, groups)
        self.create_pod(name, {"containers": [main], **changes})

    def create_pod(self, name: str, spec: Mapping[str, Any]) -> None:
        """Make a pod."""
        self._api.create(self._pods, {"metadata": {"name": name}, "spec": _spec(spec)})

    def make_deployment(self, name: str, script: str, *, groups: int, replicas: int = 1) -> None:
        """Make a Deployment whose pods have one container that runs ``script``."""
        template = {
            "metadata": {"labels": {"app": name}},
            "spec": _spec({"containers": [container("main", script, groups)]}),
        }
        whole = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
        self._api.create(self._deployments, {"metadata": {"name": name}, "spec": whole})

    def delete_pod(self, name: str) -> None:
        """Remove a pod and wait until it is gone."""
        path = f"{self._pods}/{name}"
        with suppress(ApiError):  # somebody else may remove it too
            self._api.delete(path)
        wait_for(lambda: self._api.find(path) is None, f"{name} to be gone")

    def pods(self) -> list[Json]:
        """Return all pods."""
        return self._api.items(self._pods)

    def pod(self, name: str) -> Json:
        """Return one pod."""
        return self._api.get(f"{self._pods}/{name}")

    def status(self, name: str, container_name: str = "main") -> Json:
        """Return the status of one container, empty before kubelet wrote one."""
        status = self.pod(name)["status"]
        both = [*status.get("containerStatuses", ()), *status.get("initContainerStatuses", ())]
        found: list[Json] = [it for it in both if it["name"] == container_name]
        return found[0] if found else {}

    def wait_waiting(self, name: str, words: str) -> None:
        """Wait until kubelet says that the main container cannot start for a reason with these words in it."""
        self._wait(name, lambda: words in self._waiting(name), f"wait because of {words!r}")

    def wait_running(self, *names: str) -> None:
        """Wait until the main container of each pod runs."""
        for name in names:
            self._wait(name, partial(self._runs, name), "run")

    def _wait(self, name: str, is_so: Callable[[], bool], what: str) -> None:
        """Wait for a pod; the error tells how it is and what else is known. One that failed stays as it is."""
        try:
            is_met = wait_for(lambda: self._outcome(name, is_so), f"{name} to {what}") == _MET
        except DeadlineError as error:
            raise AssertionError(f"{error}\n{self.pod(name)['status']}\n{self._describe()}") from error
        assert is_met, f"{name} was to {what}\n{self.pod(name)['status']}\n{self._describe()}"

    def _outcome(self, name: str, is_so: Callable[[], bool]) -> str:
        """Return _MET, or that the pod has failed and it will never be met; empty as long as neither is known."""
        if is_so():
            return _MET
        return "failed" if self.pod(name)["status"].get("phase") == "Failed" else ""

    def _waiting(self, name: str) -> str:
        return str(self.status(name).get("state", {}).get("waiting", {}).get("message", ""))

    def _runs(self, name: str) -> bool:
        return "running" in self.status(name).get("state", {})

    def failed(self) -> list[str]:
        """Return the pods that kubelet has given up, with its words."""
        return [
            f"{it['metadata']['name']}: {it['status']}" for it in self.pods() if it["status"].get("phase") == "Failed"
        ]

    def end_pods(self) -> None:
        """Remove everything that makes pods, and all pods."""
        for deployment in self._api.items(self._deployments):
            self._api.delete(f"{self._deployments}/{deployment['metadata']['name']}")
        wait_for(lambda: not self._replica_sets(), "the Deployments to be gone")
        for pod in self.pods():
            self.delete_pod(pod["metadata"]["name"])

    def _replica_sets(self) -> list[Json]:
        return self._api.items(f"/apis/apps/v1/namespaces/{self.namespace}/replicasets")

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    @property
    def _deployments(self) -> str:
        return f"/apis/apps/v1/namespaces/{self.namespace}/deployments"


def _spec(changes: Mapping[str, Any]) -> Json:
    volumes = [{"name": "flags", "hostPath": {"path": str(FLAGS), "type": "DirectoryOrCreate"}}]
    return {"terminationGracePeriodSeconds": 0, "volumes": volumes, **changes}


def container(name: str, script: str, groups: int = 0) -> Json:
    """Return a container that runs a shell script; ``groups`` 0 asks for none."""
    made: Json = {
        "name": name,
        "image": BUSYBOX_IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", script],
        "volumeMounts": [{"name": "flags", "mountPath": str(FLAGS)}],
    }
    if groups:
        made["resources"] = {"limits": {RESOURCE: str(groups)}}
    return made
