"""A Kubernetes without nodes: etcd, API server, controller manager and scheduler as plain processes on loopback.

It changes nothing on the machine and needs no root. Objects behave as in any cluster, only no pod ever runs::

    with ControlPlane.start() as control_plane:
        control_plane.admin_kubeconfig        # Path; for kubectl, helm and kubernetes.config.load_kube_config
        control_plane.server                  # "https://127.0.0.1:PORT"
        control_plane.api                     # ApiClient: the API as plain JSON, as an administrator
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
from cluster_harness.control_plane_spec import (
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    SCHEDULER,
    ControlPlaneOptions,
    ControlPlaneSpec,
    Ports,
    make_credentials,
)
from cluster_harness.kubeconfig import write_kubeconfig
from cluster_harness.machine import Machine
from cluster_harness.probes import free_ports, healthy, listens
from cluster_harness.running import Probe, Running
from cluster_harness.state_folder import make_state_folder

_ADDRESS = "127.0.0.1"
_DEFAULT_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


class ControlPlane(Running):
    """A running control plane; made by ``start``."""

    def __init__(self, machine: Machine, spec: ControlPlaneSpec) -> None:
        authority = spec.credentials.authority.files.certificate
        self.api = ApiClient(_ADDRESS, spec.ports.api_server, authority, spec.credentials.admin)
        super().__init__(machine, spec.components(), _probes(spec, self.api))
        self.server = f"https://{_ADDRESS}:{spec.ports.api_server}"
        self.certificate_authority = authority
        self.admin_kubeconfig = write_kubeconfig(
            spec.folder / "admin.kubeconfig", self.server, authority, spec.credentials.admin
        )

    @classmethod
    def start(cls, options: ControlPlaneOptions | None = None, *, without: Collection[str] = ()) -> Self:
        """Build what is missing, start all components but those named in ``without``, and wait until they work."""
        binaries = ensure_control_plane_binaries()
        machine = Machine.start(*make_state_folder())
        try:
            ports = Ports(*free_ports(_ADDRESS, 5))
            credentials = make_credentials(machine.folder / "credentials", _ADDRESS, ports.api_server)
            spec = ControlPlaneSpec(
                machine.folder, _ADDRESS, ports, binaries, credentials, options or ControlPlaneOptions()
            )
            started = cls(machine, spec)
            started._start_all(without)
        except BaseException:
            machine.close()
            raise
        return started

    def _start_all(self, without: Collection[str]) -> None:
        started = [name for name in self._components if name not in without]
        for name in started:
            self._machine.control.start(self._components[name])
            if name in {ETCD, API_SERVER}:  # what follows gives up when these are away
                self._wait([name])
        self._wait(started)


def _probes(spec: ControlPlaneSpec, api: ApiClient) -> dict[str, Probe]:
    ports = spec.ports
    return {
        ETCD: lambda: listens(_ADDRESS, ports.etcd_client),
        API_SERVER: api.ready,
        # Nothing can be admitted before the controller manager has made the default service account.
        CONTROLLER_MANAGER: lambda: (
            healthy(_ADDRESS, ports.controller_manager) and api.find(_DEFAULT_ACCOUNT) is not None
        ),
        SCHEDULER: lambda: healthy(_ADDRESS, ports.scheduler),
    }
