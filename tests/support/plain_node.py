"""Plugin and MPS supervisor of this checkout as plain programs on a real node, to be killed and started at will.

They run beside whatever else the node has, with a resource, simulated GPUs and folders of their own, so that a test
can take them apart without a container runtime or a chart in between. Each GPU is an H100 of 128 groups.
"""

import json
import signal
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path

from cluster_harness.cluster import Cluster
from cluster_harness.components import Component
from cluster_harness.waiting import wait_for
from cta_group_core.ids import GpuUuid
from cta_group_plugin.adapters.simulated import simulated_uuid
from cta_group_plugin.cdi import file_name
from cta_group_plugin.simulated.mps_daemon import FAULTS_NAME, STATE_NAME
from kubelet_groups import groups_for_new_pods
from kubelet_record import are_disjoint, recorded_ids
from plain_pods import FLAGS, RESOURCE, Json, PlainPods

PLUGIN = "plain-plugin"
SUCCESSOR = "plain-plugin-successor"
"""A second plugin, for tests in which one takes over from another."""
SUPERVISOR = "plain-supervisor"
FOLDER = FLAGS.parent
MPS_ROOT = FOLDER / "mps"
_LOG_LINES = 20
_CDI_FOLDER = Path("/run/cdi")  # what /var/run/cdi is; the link itself would lead out of the node
_NODE_NAME = "plain"
_PROGRAM = str(Path(sys.executable).with_name("cta-group-plugin"))


class PlainNode(PlainPods):
    """The node, its two programs and its pods."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        super().__init__(cluster.api, namespace, self._describe_node)
        self.cluster = cluster
        # The log goes on over the tests of a cluster, and what an earlier plugin said is none of ours.
        self._log_begins = len(self._whole_log())

    # --- the programs
    def start_supervisor(self) -> None:
        """Start the MPS supervisor, with simulated daemons, and return when it answers."""
        argv = (_PROGRAM, "mps", "--simulated", f"--mps-root={MPS_ROOT}", "--metrics-address=")
        self.cluster.add_component(
            Component(SUPERVISOR, argv), lambda: self.path(MPS_ROOT / "supervisor.sock").exists()
        )

    def start_plugin(self, *arguments: str, count: int = 2) -> None:
        """Start the plugin with ``count`` GPUs and return when kubelet knows it."""
        registered = self.registrations()
        self.spawn_plugin(*arguments, count=count)
        self.wait_registered(more_than=registered)

    def spawn_plugin(self, *arguments: str, count: int = 2, program: str = PLUGIN) -> None:
        """Start the plugin, or one beside it under another name, and return at once."""
        argv = (
            *(_PROGRAM, "run", "--source=simulated", f"--count={count}", f"--node-name={_NODE_NAME}"),
            *(f"--resource-name={RESOURCE}", f"--mps-root={MPS_ROOT}", f"--mps-socket={MPS_ROOT}/supervisor.sock"),
            *("--no-publish", "--metrics-address=", "--log-format=json"),
            *arguments,
        )
        self.cluster.add_component(Component(program, argv), lambda: True)

    def stop(self, program: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End a program, if it runs."""
        self.cluster.stop_component(program, how)

    def events(self, name: str) -> list[Json]:
        """Return the plugin's log entries of one event, over all the lives that it had in this test."""
        lines = self._log().splitlines(keepends=True)
        # The last line may be half written.
        entries = (json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n"))
        return [entry for entry in entries if entry["event"] == name]

    def registrations(self) -> int:
        """Return how often the plugin has registered in this test."""
        return len(self.events("registered"))

    def wait_registered(self, *, more_than: int) -> None:
        """Wait until kubelet admits pods on the groups of a plugin that registered after ``more_than`` registrations.

        The Node object tells of them later, and for a while still of those of a plugin that has gone.
        """
        wait_for(lambda: self.registrations() > more_than, "another registration")
        wait_for(self.groups_for_new_pods, "kubelet to take the groups as healthy")

    def groups_for_new_pods(self) -> int:
        """Ask kubelet itself how many groups it may hand out, held ones included."""
        return groups_for_new_pods(self.cluster.node, RESOURCE)

    def _log(self) -> str:
        return self._whole_log()[self._log_begins :]

    def _whole_log(self) -> str:
        return self.cluster.log(PLUGIN) if self.cluster.has_component(PLUGIN) else ""

    def silence_daemon(self, index: int) -> None:
        """Let the MPS daemon of a GPU answer nothing, from its start on."""
        faults = self._faults(index)
        faults.parent.mkdir(parents=True, exist_ok=True)
        faults.write_text("no-answer")

    def mend_daemon(self, index: int) -> None:
        """Let it answer again."""
        self._faults(index).unlink()

    def daemon(self, index: int) -> Json:
        """Return what the MPS daemon of a GPU says of itself: ``pid``, ``default_sm_percent`` and so on."""
        told: Json = json.loads((self._pipe(index) / STATE_NAME).read_text())
        return told

    def kill_daemon(self, index: int) -> int:
        """End the MPS daemon of a GPU hard, and return which process it was."""
        pid = int(self.daemon(index)["pid"])
        self.cluster.exec_in_node(["kill", "-KILL", str(pid)])
        return pid

    def obstruct_specification(self, index: int) -> None:
        """Put a folder where the plugin would describe the CDI devices of a GPU."""
        self._specification(index).mkdir(parents=True)

    def free_specification(self, index: int) -> None:
        """Take the folder away."""
        self._specification(index).rmdir()

    def _specification(self, index: int) -> Path:
        return self.path(_CDI_FOLDER) / file_name(GpuUuid(self.uuid(index)))

    def _faults(self, index: int) -> Path:
        return self._pipe(index) / FAULTS_NAME

    def _pipe(self, index: int) -> Path:
        return self.path(MPS_ROOT) / self.uuid(index) / "pipe"

    def restart_kubelet(self) -> None:
        """Restart kubelet and return when it knows the plugin."""
        before = self._kubelet_socket_made()
        self.cluster.restart_kubelet()
        # kubelet says that it is healthy before it takes registrations.
        wait_for(lambda: self._kubelet_socket_made() > before, "another kubelet.sock")
        # It may make the socket once more than we saw, so each look compares with what is there then.
        wait_for(self._is_registered_on_kubelet_socket, "another registration")

    def _is_registered_on_kubelet_socket(self) -> bool:
        made = self._kubelet_socket_made()
        return made > 0 and self._registered_at() > made

    def _kubelet_socket_made(self) -> float:
        """Return when kubelet made its socket, in seconds of the epoch; 0 while it has none."""
        try:
            return (self.cluster.node.kubelet_folder / "device-plugins" / "kubelet.sock").stat().st_ctime
        except FileNotFoundError:  # kubelet takes the old one away at any moment of its start
            return 0

    def _registered_at(self) -> float:
        return datetime.fromisoformat(self.events("registered")[-1]["time"]).timestamp()

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
        return recorded_ids(self.cluster.node, RESOURCE)

    def is_disjoint(self) -> bool:
        """Tell whether no id is held by two pods."""
        return are_disjoint(self.held().values())

    def raise_flag(self, name: str) -> None:
        """Let containers see the file ``name`` in FLAGS."""
        self.path(FLAGS).mkdir(parents=True, exist_ok=True)
        (self.path(FLAGS) / name).touch()

    def flag(self, name: str) -> str:
        """Return what containers wrote into the file ``name`` in FLAGS; nothing when it is not there."""
        path = self.path(FLAGS) / name
        return path.read_text() if path.exists() else ""

    def _describe_node(self) -> str:
        """Tell how many groups of which GPU kubelet has recorded for each pod, and what the plugin said."""
        pods = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in self.pods()}
        held = {
            pods.get(uid, uid): Counter(each.partition("::")[0] for each in ids) for uid, ids in self.held().items()
        }
        log = "\n".join(self._log().splitlines()[-_LOG_LINES:])
        return f"{held}\n{log}"

    def close(self) -> None:
        """End what makes pods, the pods, and both programs, and leave no CDI device of theirs to the next test."""
        try:
            self.end_pods()
        finally:
            for program in (PLUGIN, SUCCESSOR, SUPERVISOR):
                if self.cluster.is_running(program):
                    self.stop(program)
        self.cluster.exec_in_node(["rm", "-rf", str(FOLDER)])
        for described in self.path(_CDI_FOLDER).glob(file_name(GpuUuid("*"))):
            # A test that failed may have left the folder with which it was in the plugin's way.
            described.rmdir() if described.is_dir() else described.unlink()
