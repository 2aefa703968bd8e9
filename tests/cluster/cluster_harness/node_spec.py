"""How containerd, the kubelet and kube-proxy of one node are started. Writes their files, returns their commands."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from cluster_harness.base_images import PAUSE_IMAGE
from cluster_harness.binaries import NodeBinaries
from cluster_harness.certs import Authority
from cluster_harness.components import Component, flags
from cluster_harness.errors import HarnessError
from cluster_harness.kubeconfig import write_kubeconfig
from cluster_harness.node_plan import CONTAINERD_ROOT, POD_RANGE, NodePlan

CONTAINERD = "containerd"
KUBELET = "kubelet"
KUBE_PROXY = "kube-proxy"
KUBELET_HEALTH_PORT = 10248
KUBE_PROXY_HEALTH_PORT = 10256
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
_CNI_PLUGINS = "/usr/lib/cni"  # where Debian's containernetworking-plugins lie


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """What a test may vary on a node.

    ``kubelet_config`` is laid over the harness's KubeletConfiguration, key by key, ``featureGates`` merged;
    ``containerd_config`` is TOML added at the end of containerd's configuration (further runtime handlers).
    """

    plan: NodePlan = field(default_factory=NodePlan)
    kubelet_config: Mapping[str, Any] = field(default_factory=dict)
    containerd_config: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """Everything that decides how a node's components are started; ``api_server`` is its URL as the node sees it."""

    folder: Path
    options: NodeOptions
    binaries: NodeBinaries
    authority: Authority
    api_server: str
    feature_gates: Mapping[str, bool]

    @property
    def _files(self) -> Path:
        return self.folder / "node-files"

    def components(self) -> dict[str, Component]:
        """Write the components' files and return the components in the order of their start."""
        self._files.mkdir()
        all_of_them = (self._containerd(), self._kubelet(), self._kube_proxy())
        return {component.name: component for component in all_of_them}

    def _containerd(self) -> Component:
        networks = self._files / "cni"
        networks.mkdir()
        (networks / "10-bridge.conflist").write_text(json.dumps(_network(self.options.plan.pod_range)))
        config = self._files / "containerd.toml"
        config.write_text(_containerd_config(networks) + self.options.containerd_config)
        # containerd finds its shim on PATH.
        path = f"{self.binaries.containerd_shim.parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return Component(CONTAINERD, (str(self.binaries.containerd), "--config", str(config)), {"PATH": path})

    def _kubelet(self) -> Component:
        plan = self.options.plan
        config = self._files / "kubelet.yaml"
        config.write_text(yaml.safe_dump(self._kubelet_config()))
        labels = ",".join(f"{name}={value}" for name, value in self.options.labels.items())
        own = flags(
            config=config,
            kubeconfig=self._kubeconfig("kubelet", f"system:node:{plan.name}", ("system:nodes",)),
            hostname_override=plan.name,
            node_ip=plan.address,
            root_dir=plan.kubelet_root,
            node_labels=labels,
        )
        return Component(KUBELET, (str(self.binaries.kubelet), *own))

    def _kube_proxy(self) -> Component:
        own = flags(
            kubeconfig=self._kubeconfig("kube-proxy", "system:kube-proxy"),
            hostname_override=self.options.plan.name,
            proxy_mode="iptables",
            cluster_cidr=POD_RANGE,
            conntrack_max_per_core=0,  # leaves the machine's connection tracking as it is
        )
        return Component(KUBE_PROXY, (str(self.binaries.kube_proxy), *own))

    def _kubeconfig(self, name: str, user: str, groups: tuple[str, ...] = ()) -> Path:
        pair = self.authority.sign(f"{name}-{self.options.plan.name}", user, groups)
        path = self._files / f"{name}.kubeconfig"
        return write_kubeconfig(path, self.api_server, self.authority.files.certificate, pair)

    def _kubelet_config(self) -> dict[str, Any]:
        plan = self.options.plan
        serving = self.authority.sign(f"kubelet-{plan.name}-serving", plan.name, hosts=(plan.name, plan.address))
        resolver = self._files / "resolv.conf"
        resolver.write_text("nameserver 127.0.0.1\n")
        own = _kubelet_defaults() | {
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(self.authority.files.certificate)},
            },
            "tlsCertFile": str(serving.certificate),
            "tlsPrivateKeyFile": str(serving.key),
            "resolvConf": str(resolver),
        }
        gates = {**self.feature_gates, **self.options.kubelet_config.get("featureGates", {})}
        return {**own, **self.options.kubelet_config, "featureGates": gates}


def _kubelet_defaults() -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        # No systemd, and a machine of either cgroup version, with swap or without.
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        # No DNS service runs: a look-up fails at once, and no pod gets a warning event.
        "clusterDNS": ["127.0.0.1"],
        "clusterDomain": "cluster.local",
        "healthzPort": KUBELET_HEALTH_PORT,
        # Ten times as often as by default, so that a test sees a change of capacity after a second.
        "nodeStatusUpdateFrequency": "1s",
        # A full disk of the developer must not evict pods or images of a test.
        "evictionHard": dict.fromkeys(
            ("imagefs.available", "imagefs.inodesFree", "nodefs.available", "nodefs.inodesFree"), "0%"
        ),
        "imageGCHighThresholdPercent": 100,
    }


def _network(pod_range: str) -> dict[str, Any]:
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": pod_range}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }
    return {
        "cniVersion": "1.0.0",
        "name": "cta-group",
        "plugins": [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}],
    }


def _containerd_config(networks: Path) -> str:
    runc = shutil.which("runc", path="/usr/local/sbin:/usr/sbin:/usr/bin:/usr/local/bin")
    if runc is None:
        raise HarnessError("a node needs runc (Debian: the package runc)")
    return f"""\
version = 3
root = "{CONTAINERD_ROOT}"
state = "/run/containerd"

[grpc]
address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE_IMAGE}"

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
# Loading a profile would change the machine's kernel.
disable_apparmor = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{_CNI_PLUGINS}"]
conf_dir = "{networks}"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "{runc}"
SystemdCgroup = false
"""
