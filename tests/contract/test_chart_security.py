"""What the chart's pods may do: as little as each of them can live with, and a value for each step beyond."""

from typing import Any

import pytest

from chart_rendering import SCENARIOS, Manifest, of_kind, pod_templates, render

_NODE_PODS = ("cta-group-plugin", "cta-group-mps")


def _pod(scenario: str, name: str, *settings: str) -> dict[str, Any]:
    spec: dict[str, Any] = pod_templates(render(scenario, *settings))[name]["spec"]
    return spec


def _security(pod: Manifest) -> dict[str, Any]:
    (container,) = pod["containers"]
    found: dict[str, Any] = container["securityContext"]
    return found


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_container_can_write_its_own_files(scenario: str) -> None:
    """The root of each container is read-only; what is written lies in a volume."""
    for pod in pod_templates(render(scenario)).values():
        assert _security(pod["spec"])["readOnlyRootFilesystem"] is True


def test_the_operator_is_nobody_in_particular() -> None:
    """Not root, no fixed user (OpenShift gives one), no capability, no host namespace, no host path."""
    for scenario in SCENARIOS:
        name = "gpu-groups-operator" if scenario == "hardened" else "cta-group-operator"
        pod = _pod(scenario, name)
        assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        assert _security(pod) == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert all("hostPath" not in volume for volume in pod["volumes"])
        assert "hostPID" not in pod
        assert ("hostNetwork" in pod) == (scenario == "hardened")


def test_the_plugin_is_root_without_any_capability() -> None:
    """Root owns the kubelet's folders, and on real GPUs it sees who is on them, unless a value forbids that."""
    for scenario in ("default", "simulated", "minimal"):
        pod = _pod(scenario, "cta-group-plugin")
        assert _security(pod) == {
            "runAsUser": 0,
            "privileged": False,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        assert "hostNetwork" not in pod
        assert pod.get("hostPID", False) is (scenario != "simulated")
    assert "hostPID" not in _pod("default", "cta-group-plugin", "plugin.hostPID=false")


def test_the_supervisor_has_the_same_rights_with_simulated_gpus() -> None:
    """Privileged and in the host's process ids, so that what is shown with simulated GPUs is true; a value for each."""
    for scenario in ("default", "simulated"):
        pod = _pod(scenario, "cta-group-mps")
        assert (pod["hostPID"], _security(pod)["privileged"]) == (True, True)
    less = _pod("default", "cta-group-mps", "mps.privileged=false", "mps.hostPID=false")
    assert "hostPID" not in less
    assert _security(less)["privileged"] is False


def test_tokens_are_mounted_where_the_api_is_used() -> None:
    """The supervisor never talks to the API server."""
    assert _pod("default", "cta-group-mps")["automountServiceAccountToken"] is False
    for name in ("cta-group-plugin", "cta-group-operator"):
        assert "automountServiceAccountToken" not in _pod("default", name)


def test_host_folders_are_those_that_the_work_is_in() -> None:
    """Four folders for the plugin, a fifth for CDI, two for the supervisor; nobody writes where reading is enough."""

    def folders(pod: dict[str, Any]) -> dict[str, bool]:
        (container,) = pod["containers"]
        readonly = {mount["name"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
        return {volume["hostPath"]["path"]: readonly[volume["name"]] for volume in pod["volumes"]}

    assert folders(_pod("default", "cta-group-plugin")) == {
        "/var/lib/kubelet/device-plugins": False,
        "/var/lib/kubelet/pod-resources": True,
        "/run/cta-group/mps": True,
        "/var/lib/cta-group": False,
    }
    assert folders(_pod("cdi", "cta-group-plugin")).items() - folders(_pod("default", "cta-group-plugin")).items() == {
        ("/etc/cdi", False)
    }
    assert "/var/lib/cta-group" not in folders(_pod("simulated", "cta-group-plugin"))
    assert folders(_pod("default", "cta-group-mps")) == {"/run/cta-group/mps": False, "/sys/fs/cgroup": False}
    assert "/sys/fs/cgroup" not in folders(_pod("default", "cta-group-mps", "mps.cgroupRoot="))
    assert folders(_pod("driver-root", "cta-group-mps"))["/home/kubernetes/bin/nvidia"] is True


def test_host_folders_have_the_same_path_inside() -> None:
    """Paths go to the kubelet and into tenants' containers, so they must mean the same in the pod and on the host."""
    for name in _NODE_PODS:
        pod = _pod("k0s", name)
        (container,) = pod["containers"]
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        for volume in pod["volumes"]:
            assert mounts[volume["name"]] == volume["hostPath"]["path"]


def test_a_kubelet_with_a_folder_of_its_own_moves_pod_resources_only() -> None:
    """The device plugin sockets stay at the default place whatever --root-dir says."""
    (container,) = _pod("k0s", "cta-group-plugin")["containers"]
    assert "--device-plugin-dir=/var/lib/kubelet/device-plugins" in container["args"]
    assert "--pod-resources-socket=/var/lib/k0s/kubelet/pod-resources/kubelet.sock" in container["args"]
    types = {v["name"]: v["hostPath"]["type"] for v in _pod("k0s", "cta-group-plugin")["volumes"]}
    # A wrong folder must give a plugin that says so, not a pod that waits without a word.
    assert types["pod-resources"] == "DirectoryOrCreate"


def test_openshift_s_binding_is_for_the_node_pods_alone() -> None:
    """The operator runs under the default constraints; the two DaemonSets do not."""
    (binding,) = [manifest for manifest in render("openshift") if _is_scc(manifest)]
    assert [subject["name"] for subject in binding["subjects"]] == ["cta-group-plugin", "cta-group-mps"]
    for name in _NODE_PODS:
        assert _security(_pod("openshift", name))["seLinuxOptions"] == {"type": "spc_t"}
    assert not any(_is_scc(manifest) for manifest in render("default"))


def _is_scc(manifest: Manifest) -> bool:
    return str(manifest.get("roleRef", {}).get("name", "")).startswith("system:openshift:scc:")


def test_secrets_and_leases_are_reached_by_name() -> None:
    """In its own namespace the operator may change the Secret and the Lease that are its own, no other."""
    (role,) = of_kind(render("default"), "Role").values()
    named = {(r["resources"][0], tuple(r.get("resourceNames", ()))): set(r["verbs"]) for r in role["rules"]}
    assert named.pop(("secrets", ())) == {"create"}
    assert named.pop(("leases", ())) == {"create"}
    assert {key for key, _ in named.items()} == {
        ("secrets", ("cta-group-webhook",)),
        ("leases", ("cta-group-operator",)),
    }
    for cluster_role in of_kind(render("default"), "ClusterRole").values():
        assert all("secrets" not in rule["resources"] for rule in cluster_role["rules"])


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_role_has_a_wildcard(scenario: str) -> None:
    """Each right is spelled out."""
    for manifest in render(scenario):
        for rule in manifest.get("rules", ()):
            assert "*" not in {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
