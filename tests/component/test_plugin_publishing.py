"""CTANode over HTTP: what is sent, and how errors are told."""

import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from cta_group_core.nodes import NodeStatus
from cta_group_plugin.adapters.api_server import ApiServer
from cta_group_plugin.adapters.kube_api import KubeNodeApi
from cta_group_plugin.errors import ApiUnavailable
from cta_group_plugin.report import as_api
from cta_group_plugin.testing import Ask, FakeKubelet
from fake_api_server import FakeApiServer, fake_api_server
from plugin_running import plugin_process, short_folder
from plugin_values import IDLE_REPORT, pod

PATH = "/apis/ctagroup.dev/v1alpha1/ctanodes/node-a"
WRITTEN = {**as_api(IDLE_REPORT), "nodeUID": "uid-of-node-a"}


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    """Return an API that has the kind and no object."""
    async with fake_api_server() as api:
        yield api


@pytest.fixture
def node_api(server: FakeApiServer, tmp_path: Path) -> KubeNodeApi:
    """Return the adapter for node-a."""
    return KubeNodeApi(ApiServer(server.url, tmp_path), "node-a")


async def test_object_is_created_once_and_its_status_applied(server: FakeApiServer, node_api: KubeNodeApi) -> None:
    """Server-side apply under the plugin's own name: the object first, then its status only."""
    await node_api.apply(IDLE_REPORT)
    await node_api.apply(IDLE_REPORT)
    assert [path for path, _, _ in server.requests] == [PATH, f"{PATH}/status", f"{PATH}/status"]
    assert {kind for _, kind, _ in server.requests} == {"application/apply-patch+yaml"}
    assert [query for _, _, query in server.requests] == [{"fieldManager": "cta-group-plugin", "force": "true"}] * 3
    assert server.objects["node-a"]["status"] == WRITTEN


async def test_object_belongs_to_its_node(server: FakeApiServer, node_api: KubeNodeApi) -> None:
    """The garbage collector takes it when that Node is gone; nobody's right to delete the Node is touched."""
    await node_api.apply(IDLE_REPORT)
    assert server.objects["node-a"]["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "node-a", "uid": "uid-of-node-a"}
    ]


async def test_another_machine_under_the_name_inherits_nothing(
    server: FakeApiServer, node_api: KubeNodeApi, tmp_path: Path
) -> None:
    """What the earlier Node's plugin wrote goes before the new one's first account, and people's words with it."""
    await node_api.apply(IDLE_REPORT)
    earlier = server.objects["node-a"]["metadata"]["uid"]
    server.node_uids["node-a"] = "another"
    await KubeNodeApi(ApiServer(server.url, tmp_path), "node-a").apply(IDLE_REPORT)
    assert server.objects["node-a"]["metadata"]["uid"] != earlier
    assert server.objects["node-a"]["metadata"]["ownerReferences"][0]["uid"] == "another"
    assert server.objects["node-a"]["status"]["nodeUID"] == "another"


async def test_a_restarted_plugin_keeps_the_object(
    server: FakeApiServer, node_api: KubeNodeApi, tmp_path: Path
) -> None:
    """On the same Node nothing is deleted."""
    await node_api.apply(IDLE_REPORT)
    await KubeNodeApi(ApiServer(server.url, tmp_path), "node-a").apply(IDLE_REPORT)
    assert [path for path, what, _ in server.requests if what == "DELETE"] == []


async def test_a_node_that_is_replaced_under_a_running_plugin(server: FakeApiServer, node_api: KubeNodeApi) -> None:
    """The collector took the object of the Node that was deleted; the next one is the new Node's."""
    await node_api.apply(IDLE_REPORT)
    server.objects.clear()
    server.node_uids["node-a"] = "another"
    await node_api.apply(IDLE_REPORT)
    assert server.objects["node-a"]["status"]["nodeUID"] == "another"


async def test_without_its_node_nothing_is_written(server: FakeApiServer, node_api: KubeNodeApi) -> None:
    """A plugin that outlives its Node leaves no object behind."""
    server.node_uids["node-a"] = None
    with pytest.raises(ApiUnavailable, match="CTANode node-a: the cluster has no Node of this name"):
        await node_api.apply(IDLE_REPORT)
    assert server.objects == {}


async def test_object_that_was_deleted_comes_back(server: FakeApiServer, node_api: KubeNodeApi) -> None:
    """A status that finds no object makes it again in the same call."""
    await node_api.apply(IDLE_REPORT)
    server.objects.clear()
    await node_api.apply(IDLE_REPORT)
    assert server.objects["node-a"]["status"] == WRITTEN


async def test_missing_kind_says_what_to_install(server: FakeApiServer, node_api: KubeNodeApi) -> None:
    """Without the CRDs the error says so."""
    server.has_kind = False
    with pytest.raises(ApiUnavailable, match="CTANode node-a: not found; are the CRDs of cta-group installed"):
        await node_api.apply(IDLE_REPORT)


async def test_refusal_carries_the_servers_sentence(server: FakeApiServer, node_api: KubeNodeApi) -> None:
    """What an admission policy says reaches the log."""
    server.error = 403
    with pytest.raises(ApiUnavailable, match="CTANode node-a: the API answered 403 for its Node: told to fail"):
        await node_api.apply(IDLE_REPORT)


async def test_server_that_is_away_is_named(tmp_path: Path) -> None:
    """The error names the object and the address."""
    api = KubeNodeApi(ApiServer("http://127.0.0.1:1", tmp_path), "node-a")
    with pytest.raises(ApiUnavailable, match=r"CTANode node-a: http://127.0.0.1:1: ConnectionRefusedError"):
        await api.apply(IDLE_REPORT)


async def test_missing_service_account_is_no_crash(tmp_path: Path) -> None:
    """Over TLS the files of the service account are needed; without them the error names the API and the file."""
    api = KubeNodeApi(ApiServer("https://127.0.0.1:1", tmp_path), "node-a")
    with pytest.raises(ApiUnavailable, match=f"https://127.0.0.1:1: .*{tmp_path}/token"):
        await api.apply(IDLE_REPORT)


async def test_rotated_token_and_authority_are_read_again(tmp_path: Path) -> None:
    """Over TLS with the pod's files: each request takes them as they are then, and a stranger is refused."""
    account_dir = tmp_path / "serviceaccount"
    account_dir.mkdir()
    certificate, key = self_signed(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    async with fake_api_server(tls) as server:
        api = KubeNodeApi(ApiServer(server.url, account_dir), "node-a")
        account_dir.joinpath("ca.crt").write_bytes(self_signed(tmp_path, "other")[0].read_bytes())
        account_dir.joinpath("token").write_text("first\n")
        with pytest.raises(ApiUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
            await api.apply(IDLE_REPORT)
        account_dir.joinpath("ca.crt").write_bytes(certificate.read_bytes())
        for token in ("first", "second"):
            server.token = token
            account_dir.joinpath("token").write_text(f"{token}\n")
            await api.apply(IDLE_REPORT)
        server.token = "third"
        with pytest.raises(ApiUnavailable, match="the API answered 401: Unauthorized"):
            await api.apply(IDLE_REPORT)


def self_signed(folder: Path, name: str = "api") -> tuple[Path, Path]:
    """Write a certificate for this machine's loopback address and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / f"{name}.crt", folder / f"{name}.key"
    paths[0].write_bytes(certificate.public_bytes(Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return paths


async def test_node_publishes_who_holds_what(server: FakeApiServer) -> None:
    """The whole program writes its node, registered and with the pod's name, and marks it as simulated."""
    with short_folder() as root:
        (root / "plugins").mkdir()
        arguments = ["--publish", f"--api-server={server.url}", "--node-name=node-a", "--count=2"]
        async with (
            FakeKubelet(root / "plugins", pod_resources_socket=root / "pods.sock") as kubelet,
            plugin_process(root, *arguments),
        ):
            await kubelet.until(lambda kubelet: len(kubelet.devices) == 256)
            await kubelet.admit(pod("vllm"), [Ask("main", 32)])
            status = await _status_with_allocation(server)
    assert (status.capacity, status.free, status.simulated) == (256, 224, True)
    assert [condition.status for condition in status.conditions if condition.type == "Registered"] == ["True"]
    (held,) = status.gpus[0].allocations
    assert (held.namespace, held.pod, held.container, held.groups) == ("team-a", "vllm", "main", 32)


async def _status_with_allocation(server: FakeApiServer) -> NodeStatus:
    while True:
        seen = len(server.requests)
        status = NodeStatus.model_validate(server.objects.get("node-a", {}).get("status", as_api(IDLE_REPORT)))
        if any(gpu.allocations for gpu in status.gpus):
            return status
        await server.until_requests(seen + 1)
