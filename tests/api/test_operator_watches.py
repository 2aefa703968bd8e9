"""Watches that end, hang or are refused unnoticed: the operator works again by itself once the API server is there.

Meanwhile its webhook answers, whatever the operator itself can reach.
"""

import json
import ssl
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest
import yaml

from admission_endpoint import webhook_of
from admission_running import local_certificate, write_pair
from asking import Asker, asking
from chart_rendering import NAMESPACE
from cluster_harness.api_client import ApiClient
from cluster_harness.control_plane import ControlPlane
from cluster_harness.probes import LOOPBACK, free_ports
from cluster_harness.waiting import wait_for
from cta_group_core.names import DEFAULT_RESOURCE_NAME
from gpu_cluster import OURS, GpuCluster
from lossy_proxy import LossyProxy
from new_namespaces import new_namespace
from operator_fixtures import OPERATOR, cluster, is_served, kinds, operator_kubeconfig
from operator_process import OperatorProcess
from registered_operator import probe_pod

__all__ = ["cluster", "kinds", "operator_kubeconfig"]

pytestmark = pytest.mark.usefixtures("kinds")

_WORKS_SECONDS = 120.0
"""From the API server's return until a new quota is enforced and a new pod bound."""
_PREPARED_SECONDS = 120.0
_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass
class Watching:
    """An operator that reaches the API server through a proxy, and is started anew when it ends or is not alive."""

    plane: ControlPlane
    cluster: GpuCluster
    proxy: LossyProxy
    kubeconfig: Path
    folder: Path
    asker: Asker
    runs: list[OperatorProcess] = field(default_factory=list)
    _made: int = 0

    def start(self) -> None:
        """Start it as a kubelet does; its watches are short, so that a test need not wait long for their ends."""
        webhook = (f"--webhook-port={self.asker.port}", f"--webhook-tls-dir={self.folder}")
        self.runs.append(OperatorProcess(self.kubeconfig, NAMESPACE, self.folder, "--watch-seconds=5", *webhook))

    @property
    def log(self) -> str:
        """What all of its runs logged."""
        return "".join(run.log for run in self.runs)

    def has_logged(self, *parts: str) -> bool:
        """Tell whether a line has all these parts."""
        return any(all(part in line for part in parts) for line in self.log.splitlines())

    def works(self) -> None:
        """Make a quota and a pod, and wait until one is enforced and the other bound."""
        self._made += 1
        name, quota = f"pod-{self._made}", f"{self.cluster.namespace}-{self._made}"
        space_name = new_namespace(self.cluster.api, "watched")
        self.cluster.declare_quota(64, space_name, name=quota)
        self.cluster.create_pod(name, 8)
        wait_for(lambda: self._alive() and self._is_enforced(space_name), f"quota {self._made}", _WORKS_SECONDS)
        wait_for(lambda: self._alive() and self.cluster.node_of(name), f"pod {self._made}", _WORKS_SECONDS)
        self.cluster.api.discard(f"/api/v1/namespaces/{space_name}")

    def ran_once(self) -> None:
        """Check that one process did it all, and that its webhook had an answer to every question."""
        assert len(self.runs) == 1, self.log
        assert self.asker.gaps() == []
        assert self.asker.rehearsed > 0

    def misses_kinds(self) -> bool:
        """Tell whether it says that the project's kinds are not there; one that ends is started anew."""
        return self._alive() and self.has_logged("list_failed", "not installed")

    def _is_enforced(self, namespace: str) -> bool:
        path = f"/api/v1/namespaces/{namespace}/resourcequotas/cta-group"
        hard = (self.cluster.api.find(path) or {}).get("status", {}).get("hard", {})
        return bool(hard.get(f"requests.{DEFAULT_RESOURCE_NAME}") == "64")

    def _alive(self) -> bool:
        if self.runs[-1].process.poll() is not None:
            self.start()
        return True


@pytest.fixture
def asker(api: ApiClient, namespace: str, tmp_path: Path) -> Iterator[Asker]:
    """Register a webhook for the test's namespace that the operator is to serve."""
    (port,) = free_ports(LOOPBACK, 1)
    bundle, pair = local_certificate()
    write_pair(tmp_path, pair)
    name = f"watches-{namespace}"
    api.create(_WEBHOOKS, webhook_of(name, f"https://127.0.0.1:{port}/mutate", bundle, namespace))
    yield Asker(port, ssl.create_default_context(cadata=bundle.decode()), api, namespace, probe_pod())
    api.delete(f"{_WEBHOOKS}/{name}")


@pytest.fixture
def watching(
    control_plane: ControlPlane, cluster: GpuCluster, operator_kubeconfig: Path, asker: Asker, tmp_path: Path
) -> Iterator[Watching]:
    """Run an operator behind a proxy, see it work once, and ask its webhook from then on."""
    port = int(control_plane.server.rpartition(":")[2])
    with LossyProxy(port) as proxy:
        config = yaml.safe_load(operator_kubeconfig.read_text())
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
        kubeconfig = tmp_path / "through-proxy.kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(config))
        made = Watching(control_plane, cluster, proxy, kubeconfig, tmp_path, asker)
        cluster.add_node("one", [], [])
        made.start()
        try:
            wait_for(asker.is_asked, "the API server to ask the webhook", _PREPARED_SECONDS)
            made.works()
            with asking(asker):
                yield made
        finally:
            made.runs[-1].end()


def test_restarts_of_the_api_server(watching: Watching) -> None:
    """Each time the API server was killed and is back, new objects are followed by the same process."""
    for _ in range(2):
        watching.plane.restart_component("kube-apiserver", SIGKILL)
        watching.works()
    watching.ran_once()


def test_connections_that_fall_silent(watching: Watching) -> None:
    """Watches whose connections carry nothing more, and are not closed either, are opened again by the same process."""
    wait_for(lambda: watching.proxy.open_connections() > 10, "all watches to be open", _PREPARED_SECONDS)
    watching.proxy.silence()
    watching.works()
    watching.ran_once()


def test_a_position_that_was_compacted_away(watching: Watching) -> None:
    """Where the API server has forgotten what happened meanwhile, kinds are listed anew."""
    watching.proxy.cut(takes_connections=False)
    note = {"metadata": {"annotations": {"changed": "while the operator could not see it"}}}
    changed = watching.cluster.api.patch(f"/api/v1/namespaces/{watching.cluster.namespace}", note)
    compact(watching.plane, int(changed["metadata"]["resourceVersion"]))
    watching.plane.restart_component("kube-apiserver", SIGKILL)
    watching.proxy.mend()
    watching.works()
    wait_for(lambda: watching.has_logged("watch_position_lost", "Pod"), "a new list of pods", _PREPARED_SECONDS)
    watching.ran_once()


def compact(plane: ControlPlane, revision: int) -> None:
    """Let etcd forget everything before a revision, over its JSON gateway."""
    body = json.dumps({"revision": str(revision), "physical": True}).encode()
    request = urllib.request.Request(f"{plane.etcd}/v3/kv/compaction", body)  # noqa: S310 - etcd of this test
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        assert "header" in json.load(answer)


def test_a_kind_that_was_deleted_and_defined_again(watching: Watching) -> None:
    """CTAQuota's definition goes, and every quota with it; defined again, quotas are followed again.

    kopf ends with a kind that it follows, and so does the process; the next one waits for the kind.
    """
    path = f"{_CRDS}/ctaquotas.ctagroup.dev"
    definition = watching.cluster.api.get(path)
    watching.cluster.api.delete(path)
    wait_for(lambda: watching.cluster.api.find(path) is None, "the kind to be gone", _PREPARED_SECONDS)
    wait_for(watching.misses_kinds, "the operator to miss it", _PREPARED_SECONDS)
    watching.cluster.quotas.clear()
    definition["metadata"] = {"name": definition["metadata"]["name"]}
    definition.pop("status")
    watching.cluster.api.create(_CRDS, definition)
    quotas = f"{OURS}/ctaquotas"
    wait_for(lambda: is_served(watching.cluster.api, quotas), "the kind to be served", _PREPARED_SECONDS)
    watching.works()
    assert len(watching.runs) == 2, watching.log
    wait_for(watching.asker.is_asked, "the webhook to answer again", _PREPARED_SECONDS)
    assert len(watching.asker.gaps()) <= 2  # while one process ends, and until the next one listens


def test_rights_that_were_taken_and_given_back(watching: Watching) -> None:
    """Without the right to see pods the operator waits; with it again, pods are released."""
    api, path = watching.cluster.api, f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{OPERATOR}"
    rules = api.get(path)["rules"]
    api.patch(path, {"rules": [without_pods(rule) for rule in rules]})
    try:
        watching.proxy.cut()
        wait_for(lambda: watching.has_logged("failed", "kind=Pod", "403"), "pods to be refused", _PREPARED_SECONDS)
    finally:
        api.patch(path, {"rules": rules})
    watching.works()
    watching.ran_once()


def without_pods(rule: dict[str, Any]) -> dict[str, Any]:
    """Return a rule of a role that says nothing of pods."""
    left = [one for one in rule["resources"] if one != "pods"]
    return {**rule, "resources": left or ["nothing"]}
