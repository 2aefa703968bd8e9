"""Which pod and container a process belongs to, by the text of its ``/proc/PID/cgroup``. Pure.

kubelet names the cgroup of a pod after the pod's UID, and the runtime that of a container, below it, after the
container's id. Both drivers and both versions of cgroups are read, and whatever a distribution puts around that:

=================  ===========================================================================================
cgroupfs           ``/kubepods/burstable/pod3f8e...-...-.../0123abcd...``
systemd            ``/kubepods.slice/kubepods-burstable-pod3f8e_....slice/cri-containerd-0123....scope``
version 1          several lines, ``12:memory:PATH``; any of them may name the pod
version 2          one line, ``0::PATH``; out of a cgroup namespace the path begins with ``/../``
=================  ===========================================================================================

A kubelet that makes no cgroups for pods (``cgroupsPerQOS: false``) leaves the runtime's own place for containers,
``/k8s.io/0123abcd...`` or ``/system.slice/crio-0123....scope``: such a process is in a pod, but nobody can say which.

Source: kubernetes, ``pkg/kubelet/cm/cgroup_manager_linux.go``; cgroups(7), cgroup_namespaces(7).
"""

import re
from dataclasses import dataclass
from typing import Final

_POD: Final = re.compile(
    r"(?:(?:[a-z]+-)*kubepods-(?:[a-z]+-)?)?"
    r"pod(?P<uid>[0-9a-f]{8}(?P<dash>[-_]?)[0-9a-f]{4}(?:(?P=dash)[0-9a-f]{4}){2}(?P=dash)[0-9a-f]{12})(?:\.slice)?"
)
"""A pod's part of the path. The UID of a static pod has no dashes; systemd's driver writes underscores for them."""
_RUNTIME: Final = re.compile(r"(?:crio|cri-containerd)-(?P<id>[0-9a-f]{64})(?:\.scope)?")
_NAMESPACE: Final = "k8s.io"
"""containerd's own name for what belongs to Kubernetes."""
_CONTAINER: Final = re.compile(r"(?:[a-z-]+-)?(?P<id>[0-9a-f]{32,64})(?:\.scope)?")


@dataclass(frozen=True, slots=True)
class PodOfProcess:
    """The pod that a process runs in."""

    uid: str | None
    """As the API server and kubelet's own record write it. ``None``: it is in a pod, and nobody can say in which."""
    container_id: str | None = None
    """The runtime's; ``None`` for a process of the pod's own cgroup."""


def pod_of_cgroup(text: str) -> PodOfProcess | None:
    """Return the pod of a process whose ``/proc/PID/cgroup`` has this text; ``None`` for one that is in no pod."""
    for line in text.splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3 and (found := _pod_in(parts[2].split("/"))):  # noqa: PLR2004 - number, controllers, path
            return found
    return None


def _pod_in(folders: list[str]) -> PodOfProcess | None:
    for place, folder in enumerate(folders):
        if found := _POD.fullmatch(folder):
            return PodOfProcess(found["uid"].replace("_", "-"), _container_in(folders[place + 1 :]))
        if folder == _NAMESPACE and (container_id := _container_in(folders[place + 1 :])):
            return PodOfProcess(None, container_id)
        if found := _RUNTIME.fullmatch(folder):
            return PodOfProcess(None, found["id"])
    return None


def _container_in(folders: list[str]) -> str | None:
    found = _CONTAINER.fullmatch(folders[0]) if folders else None
    return found["id"] if found else None
