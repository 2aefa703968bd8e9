"""Signs that the components of a control plane work, wherever they listen."""

from collections.abc import Callable

from cluster_harness.api_client import ApiClient
from cluster_harness.control_plane_spec import API_SERVER, CONTROLLER_MANAGER, ETCD, SCHEDULER, Ports
from cluster_harness.probes import LOOPBACK, healthy
from cluster_harness.running import Probe

_DEFAULT_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


def control_plane_probes(ports: Ports, api: ApiClient, reach: Callable[[int], int]) -> dict[str, Probe]:
    """Return for each component the sign that it works; ``reach`` turns a port into one of this machine's loopback."""

    def controller_manager() -> bool:
        # Nothing can be admitted before the controller manager has made the default service account.
        works = healthy("https", LOOPBACK, reach(ports.controller_manager), "/healthz")
        return works and api.find(_DEFAULT_ACCOUNT) is not None

    return {
        ETCD: lambda: healthy("http", LOOPBACK, reach(ports.etcd_client), "/health"),
        API_SERVER: api.ready,
        CONTROLLER_MANAGER: controller_manager,
        SCHEDULER: lambda: healthy("https", LOOPBACK, reach(ports.scheduler), "/healthz"),
    }
