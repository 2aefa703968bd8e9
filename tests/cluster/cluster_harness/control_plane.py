"""A Kubernetes without nodes: etcd, API server, controller manager and scheduler as plain processes on loopback.

It changes nothing on the machine and needs no root. Objects behave as in any cluster, only no pod ever runs::

    with ControlPlane.start() as control_plane:
        control_plane.admin_kubeconfig        # Path; for kubectl, helm and kubernetes.config.load_kube_config
        control_plane.server                  # "https://127.0.0.1:PORT"
        control_plane.api                     # ApiClient: the API as plain JSON, as an administrator
        control_plane.etcd                    # "http://127.0.0.1:PORT"
        control_plane.certificate_authority   # Path of its CA certificate
        control_plane.stop_component("kube-controller-manager")    # SIGTERM; signal=signal.SIGKILL for a crash
        control_plane.start_component("kube-controller-manager")   # as before, and waits until it works
        control_plane.restart_component("kube-apiserver")
        control_plane.log("kube-apiserver")   # its whole log as text

Component names: ``etcd``, ``kube-apiserver``, ``kube-controller-manager``, ``kube-scheduler``. The API server reaches
webhooks at ``https://127.0.0.1:PORT``. Options: see ControlPlaneOptions; ``without=("kube-scheduler",)`` leaves a
component stopped, ``start_component`` starts it later. Ready some six seconds after ``start``. The processes and the
state folder are gone when the block ends, and also when this process is killed.
"""

from collections.abc import Collection
from typing import Self

from cluster_harness.api_client import ApiClient
from cluster_harness.binaries import ensure_control_plane_binaries
from cluster_harness.control_plane_probes import control_plane_probes
from cluster_harness.control_plane_spec import (
    API_SERVER,
    CREDENTIALS,
    ETCD,
    ControlPlaneOptions,
    ControlPlaneSpec,
    Ports,
    make_credentials,
)
from cluster_harness.kubeconfig import write_kubeconfig
from cluster_harness.machine import Machine
from cluster_harness.probes import LOOPBACK, free_ports
from cluster_harness.running import Running
from cluster_harness.state_folder import make_state_folder


class ControlPlane(Running):
    """A running control plane; made by ``start``."""

    def __init__(self, machine: Machine, spec: ControlPlaneSpec) -> None:
        authority = spec.credentials.authority.files.certificate
        self.server = f"https://{LOOPBACK}:{spec.ports.api_server}"
        self.etcd = f"http://{LOOPBACK}:{spec.ports.etcd_client}"
        self.certificate_authority = authority
        self.admin_kubeconfig = write_kubeconfig(
            spec.folder / "admin.kubeconfig", self.server, authority, spec.credentials.admin
        )
        self.api = ApiClient(LOOPBACK, spec.ports.api_server, authority, spec.credentials.admin)
        super().__init__(machine, control_plane_probes(spec.ports, self.api, reach=int))

    def close(self) -> None:
        """End every process and remove the state folder; return when that is done."""
        self.api.close()
        super().close()

    @classmethod
    def start(cls, options: ControlPlaneOptions | None = None, *, without: Collection[str] = ()) -> Self:
        """Build what is missing, start all components but those named in ``without``, and wait until they work."""
        binaries = ensure_control_plane_binaries()
        machine = Machine.start(*make_state_folder())
        try:
            ports = Ports(*free_ports(LOOPBACK, 5))
            credentials = make_credentials(machine.folder / CREDENTIALS, LOOPBACK, ports.api_server)
            spec = ControlPlaneSpec(
                machine.folder, LOOPBACK, ports, binaries, credentials, options or ControlPlaneOptions()
            )
            started = cls(machine, spec)
            components = spec.components()
            for component in components.values():
                machine.control.declare(component)
            names = [name for name in components if name not in without]
            started._start_in_order(names, each_ready={ETCD, API_SERVER})
        except BaseException:
            machine.close()
            raise
        return started
