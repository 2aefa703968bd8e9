"""Plugin and MPS supervisor of this checkout as plain programs on a real node, to be killed and started at will.

They run beside whatever else the node has, with a resource, simulated GPUs and folders of their own, so that a test
can take them apart without a container runtime or a chart in between. Each GPU is an H100 of 128 groups.
"""

import json
import signal
import sys
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cluster_harness.base_images import BUSYBOX_IMAGE
from cluster_harness.cluster import Cluster
from cluster_harness.components import Component
from cluster_harness.errors import CommandError, DeadlineError
from cluster_harness.waiting import wait_for
from cta_group_plugin.adapters.simulated import simulated_uuid
from cta_group_plugin.simulated.mps_daemon import FAULTS_NAME

RESOURCE = "plain.example.com/cta-group"
PLUGIN = "plain-plugin"
SUPERVISOR = "plain-supervisor"
FOLDER = Path("/run/plain")
MPS_ROOT = FOLDER / "mps"
FLAGS = FOLDER / "flags"
"""Mounted into pods at the same path: how a test lets a container go on."""
PATIENCE_SECONDS = 60.0
_LOG_LINES = 20
_NODE_NAME = "plain"
_PROGRAM = str(Path(sys.executable).with_name("cta-group-plugin"))

Json = dict[str, Any]


class PlainNode:
    """The node, its two programs and its pods."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self._arguments: tuple[str, ...] = ()

    # --- the programs
    def start_supervisor(self) -> None:
        """Start the MPS supervisor, with simulated daemons, and return when it answers."""
        argv = (_PROGRAM, "mps", "--simulated", f"--mps-root={MPS_ROOT}", "--metrics-address=")
        self.cluster.add_component(
            Component(SUPERVISOR, argv), lambda: self.path(MPS_ROOT / "supervisor.sock").exists()
        )

    def start_plugin(self, *arguments: str, count: int = 2) -> None:
        """Start the plugin with ``count`` GPUs and return when kubelet knows it."""
        self.spawn_plugin(*arguments, count=count)
        self.wait_registered()

    def spawn_plugin(self, *arguments: str, count: int = 2) -> None:
        """Start the plugin and return at once."""
        argv = (
            *(_PROGRAM, "run", "--source=simulated", f"--count={count}", f"--node-name={_NODE_NAME}"),
            *(f"--resource-name={RESOURCE}", f"--mps-root={MPS_ROOT}", f"--mps-socket={MPS_ROOT}/supervisor.sock"),
            *("--no-publish", "--metrics-address=", "--log-format=json"),
            *arguments,
        )
        self.cluster.add_component(Component(PLUGIN, argv), lambda: True)

    def stop(self, program: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End a program, if it runs."""
        self.cluster.stop_component(program, how)

    def events(self, name: str) -> list[Json]:
        """Return the plugin's log entries of one event, over all its lives."""
        entries = (json.loads(line) for line in self.cluster.log(PLUGIN).splitlines() if line.startswith("{"))
        return [entry for entry in entries if entry["event"] == name]

    def wait_registered(self, more_than: int = 0) -> None:
        """Wait until kubelet counts the groups of a plugin that registered after ``more_than`` registrations."""
        wait_for(lambda: len(self.events("registered")) > more_than, "another registration", PATIENCE_SECONDS)
        wait_for(lambda: self.allocatable() > 0, "the node to offer groups", PATIENCE_SECONDS)

    def silence_daemon(self, index: int) -> None:
        """Let the MPS daemon of a GPU answer nothing, from its start on."""
        faults = self._faults(index)
        faults.parent.mkdir(parents=True, exist_ok=True)
        faults.write_text("no-answer")

    def mend_daemon(self, index: int) -> None:
        """Let it answer again."""
        self._faults(index).unlink()

    def _faults(self, index: int) -> Path:
        return self.path(MPS_ROOT) / self.uuid(index) / "pipe" / FAULTS_NAME

    # --- the node
    def path(self, inside: Path) -> Path:
        """Return where a path of the node is seen from here."""
        return self.cluster.node.root / inside.relative_to("/")

    def allocatable(self) -> int:
        """Return the groups that the scheduler may give out."""
        node = self.cluster.api.get(f"/api/v1/nodes/{self.cluster.node.name}")
        return int(node["status"]["allocatable"].get(RESOURCE, "0"))

    def uuid(self, index: int) -> str:
        """Return the UUID of a GPU."""
        return simulated_uuid(_NODE_NAME, index)

    def held(self) -> dict[str, frozenset[str]]:
        """Return the ids that kubelet has recorded for each pod, by its UID."""
        checkpoint = self.cluster.node.kubelet_folder / "device-plugins" / "kubelet_internal_checkpoint"
        held: dict[str, frozenset[str]] = {}
        for entry in json.loads(checkpoint.read_text())["Data"]["PodDeviceEntries"] or ():
            if entry["ResourceName"] == RESOURCE:
                ids = frozenset(each for several in entry["DeviceIDs"].values() for each in several)
                held[entry["PodUID"]] = held.get(entry["PodUID"], frozenset()) | ids
        return held

    def is_disjoint(self) -> bool:
        """Tell whether no id is held by two pods."""
        held = self.held().values()
        return len(frozenset().union(*held)) == sum(map(len, held))

    # --- pods
    def start_pod(self, name: str, groups: int, script: str, **changes: Any) -> None:
        """Make a pod whose only container runs ``script``; ``changes`` are laid over the spec."""
        main = container("main", script, groups)
        self.create_pod(name, {"containers": [main], **changes})

    def create_pod(self, name: str, spec: Mapping[str, Any]) -> None:
        """Make a pod."""
        volumes = [{"name": "flags", "hostPath": {"path": str(FLAGS), "type": "DirectoryOrCreate"}}]
        whole = {"terminationGracePeriodSeconds": 0, "volumes": volumes, **spec}
        self.cluster.api.create(self._pods, {"metadata": {"name": name}, "spec": whole})

    def delete_pod(self, name: str) -> None:
        """Remove a pod and wait until it is gone."""
        self.cluster.api.delete(f"{self._pods}/{name}")
        wait_for(lambda: self.cluster.api.find(f"{self._pods}/{name}") is None, f"{name} to be gone", PATIENCE_SECONDS)

    def pods(self) -> list[Json]:
        """Return all pods."""
        return self.cluster.api.items(self._pods)

    def pod(self, name: str) -> Json:
        """Return one pod."""
        return self.cluster.api.get(f"{self._pods}/{name}")

    def status(self, name: str, container_name: str = "main") -> Json:
        """Return the status of one container, empty before kubelet wrote one."""
        status = self.pod(name)["status"]
        both = [*status.get("containerStatuses", ()), *status.get("initContainerStatuses", ())]
        found: list[Json] = [it for it in both if it["name"] == container_name]
        return found[0] if found else {}

    def wait_waiting(self, name: str, words: str) -> None:
        """Wait until kubelet says that the container cannot start for a reason with these words in it."""

        def waits() -> bool:
            return words in self.status(name).get("state", {}).get("waiting", {}).get("message", "")

        wait_for(waits, f"{name} to wait because of {words!r}", PATIENCE_SECONDS)

    def wait_running(self, *names: str) -> None:
        """Wait until the main container of each pod runs; the error tells how the pod is and what the plugin said."""
        for name in names:
            try:
                wait_for(partial(self._runs, name), f"{name} to run", PATIENCE_SECONDS)
            except DeadlineError as error:
                log = "\n".join(self.cluster.log(PLUGIN).splitlines()[-_LOG_LINES:])
                raise AssertionError(f"{error}\n{self._holdings()}\n{self.pod(name)['status']}\n{log}") from error

    def _runs(self, name: str) -> bool:
        return "running" in self.status(name).get("state", {})

    def _holdings(self) -> list[str]:
        """Return how many groups of which GPU kubelet has recorded for each pod."""
        held, pods = self.held(), {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in self.pods()}
        return [
            f"{pods.get(uid, uid)}: {Counter(each.partition('::')[0] for each in ids)}" for uid, ids in held.items()
        ]

    def failed(self) -> list[str]:
        """Return the pods that kubelet has given up, with its words."""
        return [
            f"{it['metadata']['name']}: {it['status']}" for it in self.pods() if it["status"].get("phase") == "Failed"
        ]

    def raise_flag(self, name: str) -> None:
        """Let containers see the file ``name`` in FLAGS."""
        self.path(FLAGS).mkdir(parents=True, exist_ok=True)
        (self.path(FLAGS) / name).touch()

    def close(self) -> None:
        """End the pods, then both programs."""
        for pod in self.pods():
            self.delete_pod(pod["metadata"]["name"])
        for program in (PLUGIN, SUPERVISOR):
            if self.cluster.is_running(program):
                self.stop(program)
        try:
            self.cluster.exec_in_node(["rm", "-rf", str(FOLDER)])
        except CommandError as error:
            raise AssertionError(f"something still holds {FOLDER}: {error}") from error

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"


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
