"""The private cluster runs pods, is reached from the machine, and leaves nothing of itself on it."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from kubernetes import client, config

from cluster_harness.api_client import Json
from cluster_harness.base_images import BUSYBOX_IMAGE
from cluster_harness.cache import cache_folder
from cluster_harness.cgroups import hierarchies
from cluster_harness.cluster import Cluster
from cluster_harness.control import Control
from cluster_harness.errors import StartError
from cluster_harness.image_store import overlay_works
from cluster_harness.machine import Machine
from cluster_harness.node_plan import NodePlan
from cluster_harness.state_folder import BASE, WARDEN_PID, make_state_folder, sweep
from cluster_harness.waiting import wait_for

HARNESS = Path(__file__).resolve().parents[1] / "cluster"
SERVE = "mkdir /www && echo served > /www/index.html && exec httpd -f -p 8080 -h /www"
LAYERS = "var-lib-containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/*"
# Another name and another kubelet folder than the shared cluster's, which runs at the same time.
OWNER = """
import json, sys
from cluster_harness.cluster import Cluster, ClusterOptions
from cluster_harness.node_plan import NodePlan
from cluster_harness.node_spec import NodeOptions
plan = NodePlan(name="other", kubelet_root="/var/lib/elsewhere/kubelet")
options = NodeOptions(plan, kubelet_config={"maxPods": 7}, labels={"example.com/kind": "spare"})
cluster = Cluster.start(ClusterOptions(node=options))
joined = cluster.add_node()
node = cluster.api.get("/api/v1/nodes/other")
print(json.dumps({"folders": [str(cluster.folder), str(joined.folder)], "node": node}), flush=True)
sys.stdin.read()
"""


def pod(name: str, script: str) -> Json:
    """Return a pod of one busybox container that runs a shell script."""
    container = {
        "name": "main",
        "image": BUSYBOX_IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", script],
    }
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec}


def run_pod(cluster: Cluster, namespace: str, name: str, script: str = SERVE) -> Json:
    """Make a pod that serves a page and return it as soon as it runs."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    cluster.api.create(pods, pod(name, script))

    def running() -> Json | None:
        found = cluster.api.get(f"{pods}/{name}")
        return found if found["status"]["phase"] == "Running" else None

    return wait_for(running, f"pod {name} running")


def page(port: int) -> str | None:
    """Return what the server at the port of this machine's loopback says, None while there is none."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return None


def processes_of(folder: Path) -> list[Path]:
    """Return the processes that live in the PID namespace of the cluster's supervisor."""
    home = namespace_of(Path(f"/proc/{Control(folder).process_id()}"))
    return [process for process in Path("/proc").glob("[0-9]*") if namespace_of(process) == home]


def namespace_of(process: Path) -> Path | None:
    """Return the PID namespace of a process, None when it has ended."""
    try:
        return (process / "ns/pid").readlink()
    except OSError:
        return None


def files_below(*folders: Path) -> dict[Path, tuple[int, int, int]]:
    """Return mode, size and time of the last change of everything below the folders."""
    found = {path: path.lstat() for folder in folders for path in folder.rglob("*")}
    return {path: (stat.st_mode, stat.st_size, stat.st_mtime_ns) for path, stat in found.items()}


def mounts_of(name: str) -> list[str]:
    """Return the mounts of this machine that name the state folder."""
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if name in line]


def traces(name: str) -> list[str]:
    """Return what this machine shows of the cluster whose state folder has that name, processes apart."""
    places = [BASE / name, *(hierarchy.root / name for hierarchy in hierarchies())]
    return [*mounts_of(name), *(str(place) for place in places if place.exists())]


def machine_state() -> dict[str, object]:
    """Return what a kubelet, a container runtime and a network plugin change where they are not kept from it."""
    folders = (
        "/var/lib/kubelet",
        "/var/lib/containerd",
        "/run/containerd",
        "/run/cta-group",
        "/var/lib/cni",
        "/etc/cdi",
    )
    settings = ("kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory", "net/ipv4/ip_forward")
    return {
        "folders": [folder for folder in folders if Path(folder).exists()],
        "settings": [Path("/proc/sys", setting).read_text() for setting in settings],
        "interfaces": sorted(path.name for path in Path("/sys/class/net").iterdir()),
    }


def test_a_pod_runs_and_its_service_is_reached_from_the_machine(cluster: Cluster, namespace: str) -> None:
    """Scheduler, kubelet, runtime, network and service proxy work together, and a forward leads to the service."""
    run_pod(cluster, namespace, "web")
    service = {
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
    }
    made = cluster.api.create(f"/api/v1/namespaces/{namespace}/services", service)
    port = cluster.forward(made["spec"]["clusterIP"], 80)
    assert wait_for(lambda: page(port), "the page of the service") == "served\n"


def test_a_pod_reaches_the_api_server_by_its_service_address(cluster: Cluster, namespace: str) -> None:
    """No DNS is needed: the address that every container gets in its environment leads to the API server."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    reach = pod(
        "caller", "until nc -w 1 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null; do sleep 0.1; done"
    )
    reach["spec"]["restartPolicy"] = "Never"
    cluster.api.create(pods, reach)
    wait_for(lambda: cluster.api.get(f"{pods}/caller")["status"]["phase"] == "Succeeded", "an answer to the pod")


def test_an_ordinary_client_works_with_the_admin_kubeconfig(cluster: Cluster) -> None:
    """The kubeconfig alone is enough for a client outside the cluster's network."""
    with config.new_client_from_config(str(cluster.admin_kubeconfig)) as made:
        nodes = client.CoreV1Api(made).list_node().items
    assert [node.metadata and node.metadata.name for node in nodes] == [cluster.node.name]


def test_a_pod_lives_through_a_restart_of_the_kubelet(cluster: Cluster, namespace: str) -> None:
    """Only the kubelet restarts: the container that ran before is the one that runs after."""
    before = run_pod(cluster, namespace, "lasting")
    cluster.restart_kubelet()
    run_pod(cluster, namespace, "later")  # so the new kubelet has taken over
    after = cluster.api.get(f"/api/v1/namespaces/{namespace}/pods/lasting")
    assert (
        after["status"]["containerStatuses"][0]["containerID"]
        == before["status"]["containerStatuses"][0]["containerID"]
    )
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0
    port = cluster.forward(before["status"]["podIP"], 8080)
    assert wait_for(lambda: page(port), "the page of the pod") == "served\n"


def test_a_command_runs_inside_the_node(cluster: Cluster) -> None:
    """The node has its own name, processes and folders."""
    assert cluster.exec_in_node(["hostname"]).strip() == cluster.node.name
    listed = ["ls", "/var/lib/kubelet/device-plugins"]
    wait_for(lambda: "kubelet.sock" in cluster.exec_in_node(listed), "kubelet's socket to be seen inside")
    socket = cluster.node.kubelet_folder / "device-plugins/kubelet.sock"
    wait_for(socket.is_socket, "kubelet's socket to be seen from outside")


@pytest.mark.skipif(not overlay_works(cache_folder()), reason="nothing can be shared from this cache folder")
def test_what_a_pod_does_to_its_files_is_not_done_to_other_clusters(cluster: Cluster, namespace: str) -> None:
    """Clusters share the layers of the images that their nodes have from the start; a pod writes above them."""
    layers = [path.resolve() for path in (cluster.folder / "node").glob(LAYERS) if path.is_symlink()]
    assert layers
    assert all(layer.is_relative_to(cache_folder()) for layer in layers)
    before = files_below(*layers)
    assert any(path.name == "httpd" for path in before)
    run_pod(cluster, namespace, "vandal", f"rm /bin/nc && chmod 700 /tmp && echo more >> /bin/busybox && {SERVE}")
    assert files_below(*layers) == before
    run_pod(cluster, namespace, "other")


def test_nothing_is_left_when_the_owner_is_killed() -> None:
    """SIGKILL of the owner ends every process and removes mounts, interfaces, cgroups and folders; options are kept.

    The same goes for a node that was added.
    """
    before = machine_state()
    environment = os.environ | {"PYTHONPATH": str(HARNESS)}
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        told = json.loads(owner.stdout.readline())
        folders = [Path(folder) for folder in told["folders"]]
        during = machine_state()
        mounts = [mount for folder in folders for mount in mounts_of(folder.name)]
        first, added = (processes_of(folder) for folder in folders)
        owner.kill()
    assert told["node"]["status"]["capacity"]["pods"] == "7"
    assert told["node"]["metadata"]["labels"]["example.com/kind"] == "spare"
    assert during == before
    assert mounts == []
    assert len(first) >= 8
    assert len(added) >= 4
    wait_for(lambda: not any(process.exists() for process in (*first, *added)), "end of all processes")
    wait_for(lambda: not any(traces(folder.name) for folder in folders), "removal of every trace")
    assert machine_state() == before


def test_what_a_killed_warden_leaves_is_swept_at_the_next_start() -> None:
    """Processes end with the warden at once; its folder and cgroups go as soon as anybody starts a cluster."""
    folder, lock = make_state_folder()
    NodePlan(name="doomed").write(folder)
    machine = Machine.start(folder, lock)
    processes = processes_of(folder)
    try:
        os.kill(int((folder / WARDEN_PID).read_text()), signal.SIGKILL)
        wait_for(lambda: not any(process.exists() for process in processes), "end of all processes")
        sweep()  # as does whoever starts another cluster at this moment
        wait_for(lambda: not traces(folder.name), "removal of every trace")
    finally:
        machine.close()


def test_a_node_that_cannot_be_prepared_says_why_and_leaves_nothing() -> None:
    """The reason comes from inside the namespaces, although they and the state folder are gone."""
    folder, lock = make_state_folder()
    NodePlan(kubelet_root="/etc/passwd/kubelet").write(folder)
    with pytest.raises(StartError, match=r"(?s)ended at once.*Not a directory: '/etc/passwd/kubelet'"):
        Machine.start(folder, lock)
    wait_for(lambda: not traces(folder.name), "removal of every trace")
