"""What is wrong between the plugin and its neighbours on the node: kubelet's sockets and the MPS supervisor."""

from collections.abc import Iterator
from typing import Final

from cta_group_core.compatibility.driver_findings import subject_of
from cta_group_core.compatibility.findings import Finding, Severity
from cta_group_core.nodes import GpuStatus, NodeStatus
from cta_group_core.slices import percent_of
from cta_group_plugin.doctor.gather import DoctorSettings, Examination
from cta_group_plugin.sockets import SELINUX_HINT, SocketLook, SocketState

_SUPERVISOR_REMEDY: Final = "kubectl logs of the MPS supervisor's pod on this node"


def kubelet_findings(found: Examination, settings: DoctorSettings) -> Iterator[Finding]:
    """Yield what keeps the plugin from kubelet."""
    run = settings.run
    if found.kubelet.state is not SocketState.ANSWERS:
        yield Finding(
            Severity.ERROR,
            "kubelet",
            f"its socket for device plugins cannot be used: {found.kubelet.words}; this node offers no groups",
            _socket_remedy(
                found.kubelet,
                f"set kubelet.devicePluginsDir of the chart's values (here {run.device_plugin_dir}) to the folder with "
                "kubelet.sock; it does not move with kubelet's --root-dir",
            ),
        )
    if found.account is None:
        root = run.pod_resources_socket.parent.parent
        yield Finding(
            Severity.ERROR,
            "kubelet",
            f"who holds what cannot be asked: {found.account_problem}; no group is shown as free, and a restarted "
            "plugin does not know its tenants",
            _socket_remedy(
                found.pod_resources,
                f"set kubelet.rootDir of the chart's values (here {root}) to kubelet's --root-dir, such as "
                "/var/lib/k0s/kubelet",
            ),
        )


def _socket_remedy(look: SocketLook, missing: str) -> str:
    if look.state is SocketState.MISSING:
        return missing
    if look.state is SocketState.DENIED:
        return SELINUX_HINT
    return "look at kubelet: journalctl -u kubelet"


def mps_findings(found: Examination, status: NodeStatus, settings: DoctorSettings) -> Iterator[Finding]:
    """Yield what is wrong with MPS: its supervisor, a daemon, the ceiling of one."""
    if found.supervisor is None or not settings.run.enforcement.uses_mps:
        return
    if found.supervisor.state is not SocketState.ANSWERS or found.mps_problem:
        denied = found.supervisor.state is SocketState.DENIED
        yield Finding(
            Severity.ERROR,
            "MPS",
            f"the supervisor cannot be asked: {found.supervisor.words or found.mps_problem}; containers with a part of "
            "a GPU wait for it when they start",
            SELINUX_HINT if denied else "let the MPS supervisor's pod run here (mps.enabled), and look at its log",
        )
        return
    for gpu in status.gpus:
        yield from _of_daemon(found, gpu)


def _of_daemon(found: Examination, gpu: GpuStatus) -> Iterator[Finding]:
    shares = [held.groups for held in gpu.allocations if held.groups < gpu.capacity]
    state = found.mps.get(gpu.gpu_uuid)
    if not shares:
        return
    if state is None:
        yield Finding(
            Severity.ERROR,
            subject_of(gpu),
            f"it is shared by {len(shares)} containers, and the supervisor keeps no MPS daemon for it",
            "kubectl logs of the plugin's pod on this node: it cannot tell the supervisor what is held",
        )
    elif not state.ready:
        words = f"its MPS daemon is not ready: {state.reason}"
        yield Finding(Severity.ERROR, subject_of(gpu), words, _SUPERVISOR_REMEDY)
    elif 0 < state.sm_percent < (needed := percent_of(max(shares), gpu.room().units)):
        yield Finding(
            Severity.ERROR,
            subject_of(gpu),
            f"its MPS daemon lets a client have {state.sm_percent} % of the SMs, and a share of {max(shares)} groups "
            f"needs {needed} %",
            _SUPERVISOR_REMEDY,
        )
