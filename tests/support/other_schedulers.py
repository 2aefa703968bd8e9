"""Schedulers beside the default one: a second kube-scheduler, and one that knows nothing of gates."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

from cluster_harness.api_client import ApiClient
from cluster_harness.binaries import ensure_control_plane_binaries
from cluster_harness.control_plane import ControlPlane
from cluster_harness.errors import ApiError
from cluster_harness.probes import LOOPBACK, free_ports
from cluster_harness.waiting import PATIENCE_SECONDS

_LOOK_SECONDS = 0.2


@contextmanager
def second_scheduler(control_plane: ControlPlane, name: str, folder: Path) -> Iterator[None]:
    """Run Kubernetes' own scheduler once more, for pods that name it."""
    config = folder / f"{name}.json"
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(control_plane.admin_kubeconfig)},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": name}],
    }
    config.write_text(json.dumps(content))
    (port,) = free_ports(LOOPBACK, 1)
    program = ensure_control_plane_binaries().kube_scheduler
    command = [str(program), f"--config={config}", f"--bind-address={LOOPBACK}", f"--secure-port={port}"]
    with (folder / f"{name}.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_SECONDS)
        finally:
            process.kill()
            process.wait()


@dataclass
class NaiveScheduler:
    """Binds each pod that names it to one node, whatever gates the pod has; as a program of thirty lines would."""

    api: ApiClient
    name: str
    node: str
    bound: list[str] = field(default_factory=list)
    """Names of pods that it bound."""
    refusals: list[str] = field(default_factory=list)
    """What the API server said to bindings that it did not take."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Bind until the block ends."""
        over = Event()

        def schedule() -> None:
            while not over.wait(_LOOK_SECONDS):
                self._bind_all()

        thread = Thread(target=schedule)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _bind_all(self) -> None:
        waiting = self.api.items(f"/api/v1/pods?fieldSelector=spec.schedulerName={self.name},spec.nodeName=")
        for meta in (pod["metadata"] for pod in waiting):
            target = {"apiVersion": "v1", "kind": "Node", "name": self.node}
            path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/binding"
            try:
                self.api.create(path, {"metadata": {"name": meta["name"]}, "target": target})
            except ApiError as error:
                self.refusals.append(error.sentence)
            else:
                self.bound.append(meta["name"])
