"""How etcd, the API server, the controller manager and the scheduler are started. Pure: paths in, commands out."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cluster_harness.binaries import ControlPlaneBinaries
from cluster_harness.certs import Authority, KeyPair, write_signing_key
from cluster_harness.components import Component, flags
from cluster_harness.kubeconfig import write_kubeconfig

ETCD = "etcd"
API_SERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
CREDENTIALS = "credentials"  # folder in the state folder
ADMIN = "admin"
SERVICE_RANGE = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"  # the first of SERVICE_RANGE, by Kubernetes' rule


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the components listen on the address of the control plane."""

    api_server: int
    etcd_client: int
    etcd_peer: int
    controller_manager: int
    scheduler: int


@dataclass(frozen=True, slots=True)
class ControlPlaneOptions:
    """What a test may vary.

    ``feature_gates`` go to every Kubernetes component; ``extra_flags`` are added to the component of that name, after
    the harness's own (a later flag wins).
    """

    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    extra_flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def flags_of(self, component: str) -> tuple[str, ...]:
        """Return what the options add to the command of one Kubernetes component."""
        gates = ",".join(f"{name}={str(on).lower()}" for name, on in self.feature_gates.items())
        extra = tuple(self.extra_flags.get(component, ()))
        return (*((f"--feature-gates={gates}",) if gates else ()), *extra)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The files by which the components know each other; ``admin`` may do everything."""

    authority: Authority
    serving: KeyPair
    admin: KeyPair
    kubelet_client: KeyPair
    signing_key: Path
    controller_manager_kubeconfig: Path
    scheduler_kubeconfig: Path


def make_credentials(folder: Path, address: str, port: int) -> Credentials:
    """Write all certificates, keys and kubeconfigs of a control plane that listens on ``address:port``."""
    authority = Authority(folder)
    certificate = authority.files.certificate
    names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
    hosts = dict.fromkeys(("localhost", *names, "127.0.0.1", API_SERVICE_ADDRESS, address))

    def component(name: str) -> Path:
        user = authority.sign(name, f"system:{name}")
        return write_kubeconfig(folder / f"{name}.kubeconfig", f"https://{address}:{port}", certificate, user)

    return Credentials(
        authority,
        serving=authority.sign("apiserver", "kube-apiserver", hosts=tuple(hosts)),
        admin=authority.sign(ADMIN, "kubernetes-admin", groups=("system:masters",)),
        kubelet_client=authority.sign("kubelet-client", "kube-apiserver-kubelet-client", groups=("system:masters",)),
        signing_key=write_signing_key(folder / "service-account.key"),
        controller_manager_kubeconfig=component(CONTROLLER_MANAGER),
        scheduler_kubeconfig=component(SCHEDULER),
    )


@dataclass(frozen=True, slots=True)
class ControlPlaneSpec:
    """Everything that decides how the control plane's components are started."""

    folder: Path
    address: str
    ports: Ports
    binaries: ControlPlaneBinaries
    credentials: Credentials
    options: ControlPlaneOptions

    def components(self) -> dict[str, Component]:
        """Return the components in the order of their start."""
        all_of_them = (self._etcd(), self._api_server(), self._controller_manager(), self._scheduler())
        return {component.name: component for component in all_of_them}

    def _etcd(self) -> Component:
        client = f"http://127.0.0.1:{self.ports.etcd_client}"
        peer = f"http://127.0.0.1:{self.ports.etcd_peer}"
        own = flags(
            data_dir=self.folder / "etcd",
            listen_client_urls=client,
            advertise_client_urls=client,
            listen_peer_urls=peer,
            initial_advertise_peer_urls=peer,
            initial_cluster=f"default={peer}",
            log_level="warn",
        )
        return Component(ETCD, (str(self.binaries.etcd), *own, "--unsafe-no-fsync"))

    def _api_server(self) -> Component:
        known = self.credentials
        certificate = known.authority.files.certificate
        own = flags(
            etcd_servers=f"http://127.0.0.1:{self.ports.etcd_client}",
            bind_address=self.address,
            secure_port=self.ports.api_server,
            service_cluster_ip_range=SERVICE_RANGE,
            tls_cert_file=known.serving.certificate,
            tls_private_key_file=known.serving.key,
            client_ca_file=certificate,
            authorization_mode="Node,RBAC",
            enable_admission_plugins="NodeRestriction",
            allow_privileged="true",
            service_account_issuer="https://kubernetes.default.svc",
            service_account_key_file=known.signing_key,
            service_account_signing_key_file=known.signing_key,
            kubelet_certificate_authority=certificate,
            kubelet_client_certificate=known.kubelet_client.certificate,
            kubelet_client_key=known.kubelet_client.key,
            kubelet_preferred_address_types="InternalIP",
        )
        return self._kubernetes(API_SERVER, self.binaries.kube_apiserver, (*own, *self._endpoint()))

    def _endpoint(self) -> tuple[str, ...]:
        """Return what becomes the endpoint of the service ``kubernetes``: never a loopback address, by API rule."""
        if ipaddress.ip_address(self.address).is_loopback:
            return flags(endpoint_reconciler_type="none", external_hostname=self.address)
        return flags(advertise_address=self.address)

    def _controller_manager(self) -> Component:
        known = self.credentials
        certificate = known.authority.files.certificate
        own = flags(
            kubeconfig=known.controller_manager_kubeconfig,
            bind_address="127.0.0.1",
            secure_port=self.ports.controller_manager,
            leader_elect="false",
            use_service_account_credentials="true",
            # It asks for a token for each of its controllers as it starts; at the default rate that takes seconds.
            kube_api_qps=200,
            kube_api_burst=400,
            service_account_private_key_file=known.signing_key,
            root_ca_file=certificate,
            cluster_signing_cert_file=certificate,
            cluster_signing_key_file=known.authority.files.key,
        )
        return self._kubernetes(CONTROLLER_MANAGER, self.binaries.kube_controller_manager, own)

    def _scheduler(self) -> Component:
        own = flags(
            kubeconfig=self.credentials.scheduler_kubeconfig,
            bind_address="127.0.0.1",
            secure_port=self.ports.scheduler,
            leader_elect="false",
        )
        return self._kubernetes(SCHEDULER, self.binaries.kube_scheduler, own)

    def _kubernetes(self, name: str, binary: Path, own: tuple[str, ...]) -> Component:
        return Component(name, (str(binary), *own, *self.options.flags_of(name)))
