"""Pods for processes of a test on a real GPU: what the kernel and kubelet would tell of them on a node.

The processes are real, and so is everything that the kernel says of them but their cgroup: a test may not make cgroups
on every machine. kubelet's record is a file of the test's own, since its kubelet is a fake one.
"""

from collections.abc import Iterable
from pathlib import Path

from cta_group_plugin.ports import PodDevices
from gpu_looks import write_record


class PodsOfNode:
    """A folder like ``/proc`` in which processes are in pods, and kubelet's record of what the pods hold."""

    def __init__(self, processes: Path, device_plugins: Path) -> None:
        self.processes = processes
        self._device_plugins = device_plugins
        self._held: dict[str, PodDevices] = {}
        (processes / "self").mkdir(parents=True)
        write_record(device_plugins, ())

    def hold(self, number: int, ids: Iterable[str]) -> str:
        """Note that a pod holds groups and return its UID."""
        uid = f"{number:08d}-1111-4111-8111-111111111111"
        self._held[uid] = PodDevices(uid, "server", frozenset(ids))
        write_record(self._device_plugins, self._held.values())
        return uid

    def release(self, pod_uid: str) -> None:
        """Note that a pod is gone."""
        del self._held[pod_uid]
        write_record(self._device_plugins, self._held.values())

    def show(self, pid: int, pod_uid: str | None = None) -> None:
        """Show a process of this machine, in a pod or in none, for as long as it runs."""
        place = self.processes / str(pid)
        place.mkdir(exist_ok=True)
        if not (place / "stat").is_symlink():
            (place / "stat").symlink_to(f"/proc/{pid}/stat")
        pod = f"/kubepods/burstable/pod{pod_uid}/{'c' * 64}" if pod_uid else "/user.slice"
        (place / "cgroup").write_text(f"0::{pod}\n")
