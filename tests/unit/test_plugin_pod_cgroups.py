"""Which pod a process belongs to, by its cgroups: both drivers, both versions, several runtimes and distributions."""

import pytest

from cta_group_plugin.pod_cgroups import PodOfProcess, pod_of_cgroup

UID = "3f8e1c2a-1b2c-4d5e-8f90-0123456789ab"
SLICE = UID.replace("-", "_")
STATIC = UID.replace("-", "")
CONTAINER = "ab" * 32


@pytest.mark.parametrize(
    "path",
    [
        f"/kubepods/burstable/pod{UID}/{CONTAINER}",
        f"/kubepods/pod{UID}/{CONTAINER}",
        f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SLICE}.slice/cri-containerd-{CONTAINER}.scope",
        f"/kubepods.slice/kubepods-pod{SLICE}.slice/crio-{CONTAINER}.scope",
        f"/kubepods.slice/kubepods-pod{SLICE}.slice/crio-{CONTAINER}.scope/container",
        f"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{SLICE}.slice/docker-{CONTAINER}.scope",
        f"/../../pod{UID}/{CONTAINER}",
        f"/../../kubepods-besteffort-pod{SLICE}.slice/cri-containerd-{CONTAINER}.scope",
        f"/kubepods/pod{UID}/{CONTAINER}/kubepods/pod{UID[::-1]}/{CONTAINER[::-1]}",
    ],
)
def test_pod_and_container_of_a_process(path: str) -> None:
    """Version 2 has one line, version 1 one for each controller; what a container makes below itself does not count."""
    expected = PodOfProcess(UID, CONTAINER)
    assert pod_of_cgroup(f"0::{path}\n") == expected
    assert pod_of_cgroup(f"11:cpuset:/\n7:memory:{path}\n1:name=systemd:{path}\n") == expected


def test_static_pod_has_a_uid_without_dashes() -> None:
    """Kubelet takes the hash of its file, in its own record too."""
    assert pod_of_cgroup(f"0::/kubepods/burstable/pod{STATIC}/{CONTAINER}\n") == PodOfProcess(STATIC, CONTAINER)


def test_process_of_the_pods_own_cgroup_has_no_container() -> None:
    """As one that was moved there by hand."""
    assert pod_of_cgroup(f"0::/kubepods.slice/kubepods-pod{SLICE}.slice\n") == PodOfProcess(UID)


@pytest.mark.parametrize(
    "path",
    [f"/k8s.io/{CONTAINER}", f"/node/k8s.io/{CONTAINER}", f"/system.slice/crio-{CONTAINER}.scope"],
)
def test_process_of_a_pod_that_nobody_knows(path: str) -> None:
    """Kubelet makes no cgroups for pods, so the runtime's own place tells the container alone."""
    assert pod_of_cgroup(f"0::{path}\n") == PodOfProcess(None, CONTAINER)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0::/\n",
        "0::/system.slice/nvidia-persistenced.service\n",
        "0::/user.slice/user-1000.slice/podman-1234.scope\n",
        f"0::/machine.slice/libpod-{CONTAINER}.scope\n",
        f"0::/system.slice/docker-{CONTAINER}.scope\n",
        "0::/k8s.io\n",
        f"0::/system.slice/my-pod{UID}.service\n",
        "nonsense",
    ],
)
def test_process_of_no_pod(text: str) -> None:
    """Of the host, of podman, or with a text that says nothing."""
    assert pod_of_cgroup(text) is None
