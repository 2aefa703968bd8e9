"""Makes the private namespaces a machine of their own, from inside, before any component runs in them.

A kubelet writes kernel settings, a container runtime mounts, a network plugin makes interfaces and firewall rules.
All of that stays in here: /etc, /opt and /var are overlays whose changes are lost at the end, /run and /dev/shm are
empty, the kernel settings that a kubelet writes are plain files, and cgroups begin at the cluster's own.
"""

import socket
import subprocess
from collections.abc import Iterable
from pathlib import Path

from cluster_harness import cgroups
from cluster_harness.node_plan import PRIVATE_PARENTS, NodePlan

LINK = "eth0"
_FAR_END = "eth0-gateway"
_CGROUPS = Path("/sys/fs/cgroup")
# What a kubelet writes (kubernetes, setupKernelTunables of pkg/kubelet/cm/container_manager_linux.go).
_KERNEL_SETTINGS = (
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
)


def prepare_node(folder: Path) -> None:
    """Prepare what the plan in the state folder asks for; without a plan there is nothing to prepare."""
    plan = NodePlan.read(folder)
    if plan is None:
        return
    found = cgroups.hierarchies()
    cgroups.enter(folder.name)
    socket.sethostname(plan.name)
    _mount("-t", "proc", "proc", "/proc")
    _mount("-t", "sysfs", "-o", "ro", "sysfs", "/sys")
    _mount_cgroups(found)
    _own_folders(folder, plan)
    _plain_kernel_settings(folder / "kernel")
    _mount("--make-rshared", "/")  # pods may ask for mounts that travel both ways
    _connect(plan)


def _mount_cgroups(found: Iterable[cgroups.Hierarchy]) -> None:
    """Mount each hierarchy again where it was: inside the namespace it begins at the cluster's own cgroup."""
    if all(hierarchy.root != _CGROUPS for hierarchy in found):
        _mount("-t", "tmpfs", "-o", "mode=755", "cgroup", str(_CGROUPS))
    for hierarchy in found:
        hierarchy.root.mkdir(parents=True, exist_ok=True)
        options = ("-o", hierarchy.options) if hierarchy.kind == "cgroup" else ()
        _mount("-t", hierarchy.kind, *options, hierarchy.kind, str(hierarchy.root))
        if hierarchy.kind == "cgroup2":
            cgroups.delegate_controllers(hierarchy.root)
        for controller in hierarchy.root.name.split(",") if "," in hierarchy.root.name else ():
            (hierarchy.root.parent / controller).symlink_to(hierarchy.root.name)


def _own_folders(folder: Path, plan: NodePlan) -> None:
    changes = folder / "changes"
    changes.mkdir()
    _mount("-t", "tmpfs", "-o", "mode=755", "changes", str(changes))
    for parent in PRIVATE_PARENTS:
        upper, work = changes / parent.strip("/"), changes / f"{parent.strip('/')}.work"
        upper.mkdir()
        work.mkdir()
        _mount("-t", "overlay", "-o", f"lowerdir={parent},upperdir={upper},workdir={work}", "overlay", parent)
    _mount("-t", "tmpfs", "-o", "mode=755", "run", "/run")
    _mount("-t", "tmpfs", "-o", "mode=1777", "shm", "/dev/shm")  # noqa: S108 - what pods with hostIPC share
    for kept in plan.kept_folders:
        _bind(plan.place_of(kept, folder), Path(kept))
    for empty in ("/run/lock", "/etc/cni/net.d", "/etc/cdi", "/run/cdi", "/var/lib/cni", "/var/log/containers"):
        Path(empty).mkdir(parents=True, exist_ok=True)


def _plain_kernel_settings(folder: Path) -> None:
    for setting in _KERNEL_SETTINGS:
        real = Path("/proc/sys") / setting
        if real.exists():
            plain = folder / setting.replace("/", "-")
            plain.parent.mkdir(exist_ok=True)
            plain.write_text(real.read_text())
            _mount("--bind", str(plain), str(real))


def _connect(plan: NodePlan) -> None:
    """Give the node an address and a default route, which a kubelet wants; both ends of the link are in here.

    A node that joins gets its link from outside, where both network namespaces are known.
    """
    _ip("link", "set", "lo", "up")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    if plan.joins:
        return
    _ip("link", "add", LINK, "type", "veth", "peer", "name", _FAR_END)
    _ip("address", "add", f"{plan.address}/30", "dev", LINK)
    _ip("link", "set", LINK, "up")
    _ip("link", "set", _FAR_END, "up")
    _ip("route", "add", "default", "via", plan.gateway)


def _bind(source: Path, target: Path) -> None:
    for folder in (source, target):
        folder.mkdir(parents=True, exist_ok=True)
    _mount("--bind", str(source), str(target))


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
