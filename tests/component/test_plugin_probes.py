"""/metrics, /healthz and /readyz of the running plugin."""

import asyncio
import http.client
import socket
import threading
import urllib.request
from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest
from prometheus_client import CollectorRegistry

from cluster_harness.waiting import PATIENCE_SECONDS
from cta_group_plugin.errors import BadSetting, DriverAbsent
from cta_group_plugin.probes import ProbeChecks, ProbeServer, on_loop
from cta_group_plugin.testing import Ask
from http_probe import fetch_status, free_address
from plugin_running import FakeNode, plugin_on, registered_plugin, short_folder
from plugin_values import account, groups, pod, uuid_of


@pytest.fixture
async def node() -> AsyncIterator[FakeNode]:
    """Return a node with eight H100s."""
    with short_folder() as root:
        yield FakeNode.under(root)


@pytest.fixture
def address() -> str:
    """Return an address of this machine that is free now."""
    return free_address()


async def get(address: str, path: str) -> tuple[int, str]:
    """Return status and body of a request to the plugin, once it listens."""

    def ask() -> tuple[int, str] | None:
        try:
            return fetch_status(f"http://{address}{path}")
        except OSError:
            return None

    async with asyncio.timeout(PATIENCE_SECONDS):
        while (answer := await asyncio.to_thread(ask)) is None:
            pass
    return answer


async def test_registered_plugin_is_live_and_ready(node: FakeNode, address: str) -> None:
    """Both probes pass once kubelet knows the plugin; an unknown path says what there is."""
    async with registered_plugin(node, metrics_address=address):
        assert await get(address, "/healthz") == (200, "ok\n")
        assert await get(address, "/readyz") == (200, "ok\n")
        assert (await get(address, "/"))[0] == 404


async def test_plugin_without_kubelet_is_live_and_not_ready(node: FakeNode, address: str) -> None:
    """It waits, and says for what."""
    async with plugin_on(node, metrics_address=address):
        assert (await get(address, "/healthz"))[0] == 200
        async with asyncio.timeout(PATIENCE_SECONDS):
            while "kubelet.sock is not there" not in (answer := await get(address, "/readyz"))[1]:
                assert answer[0] == 503
        assert answer[0] == 503


async def test_node_without_driver_is_ready(node: FakeNode, address: str) -> None:
    """Mixed clusters run the plugin everywhere: a node without GPUs is idle, not broken."""
    node.gpus.open_problem = DriverAbsent("no driver here")
    async with plugin_on(node, metrics_address=address), asyncio.timeout(PATIENCE_SECONDS):
        while (await get(address, "/readyz"))[0] != 200:
            pass


async def test_metrics_follow_the_pods(node: FakeNode, address: str) -> None:
    """A container's series is there while it holds groups and gone with it; the others stay."""
    held = f'cta_group_allocated{{container="main",gpu="0",gpu_uuid="{uuid_of(0)}"'
    async with registered_plugin(node, metrics_address=address) as kubelet:
        node.pod_resources.told = account({"vllm": groups(0, range(32))})
        await kubelet.admit(pod("vllm"), [Ask("main", 32)])
        await metrics_with(address, held)
        node.pod_resources.told = account({})
        kubelet.delete(pod("vllm"))
        await kubelet.admit(pod("short"), [Ask("main", 8)])
        text = await metrics_without(address, held)
    assert "cta_group_registrations_total 1.0" in text
    assert 'cta_group_refusals_total{call="Allocate"} 0.0' in text
    assert f'cta_group_capacity{{gpu="7",gpu_uuid="{uuid_of(7)}",product="NVIDIA H100 80GB HBM3"}} 128.0' in text
    assert "cta_group_simulated 0.0" in text


async def metrics_with(address: str, series: str) -> str:
    """Return the metrics once a series is among them."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while series not in (text := (await get(address, "/metrics"))[1]):
            pass
    return text


async def metrics_without(address: str, series: str) -> str:
    """Return the metrics once a series is gone."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while series in (text := (await get(address, "/metrics"))[1]):
            pass
    return text


async def test_blocked_event_loop_fails_the_liveness_probe() -> None:
    """A check that does not come back is a failed probe with its reason, not a hanging request."""

    async def never() -> str:
        await asyncio.Event().wait()
        return ""

    checks = ProbeChecks(CollectorRegistry(), on_loop(never, limit_seconds=0.05), lambda: "")
    with ProbeServer("127.0.0.1:0", checks) as server:
        status, told = await get(f"127.0.0.1:{server.port}", "/healthz")
    assert status == 503
    assert "no answer within" in told


def test_address_that_is_taken_is_a_wrong_setting() -> None:
    """The sentence names the flag and the address."""
    checks = ProbeChecks(CollectorRegistry(), lambda: "", lambda: "")
    with ProbeServer("127.0.0.1:0", checks) as server, pytest.raises(BadSetting, match="--metrics-address"):
        ProbeServer(f"127.0.0.1:{server.port}", checks)


async def test_connections_that_say_nothing_keep_nobody_out() -> None:
    """Any pod can open as many as it likes; the oldest are ended, and whoever comes last is served."""
    checks = ProbeChecks(CollectorRegistry(), lambda: "", lambda: "")
    with ProbeServer("127.0.0.1:0", checks) as server, ExitStack() as opened:
        held = [opened.enter_context(socket.create_connection(("127.0.0.1", server.port), 60)) for _ in range(100)]
        assert await get(f"127.0.0.1:{server.port}", "/healthz") == (200, "ok\n")
        assert await asyncio.to_thread(held[0].recv, 1) == b"", "the oldest was ended"
        assert threading.active_count() < 100


async def test_fault_of_a_series_is_logged_as_everything_else(caplog: pytest.LogCaptureFixture) -> None:
    """Not printed past the form of the log; the next request is served."""

    def fails() -> str:
        raise ZeroDivisionError("a fault of ours")

    checks = ProbeChecks(CollectorRegistry(), fails, lambda: "")
    with ProbeServer("127.0.0.1:0", checks) as server:
        with pytest.raises(http.client.RemoteDisconnected):
            await asyncio.to_thread(urllib.request.urlopen, f"http://127.0.0.1:{server.port}/healthz", timeout=60)
        assert await get(f"127.0.0.1:{server.port}", "/readyz") == (200, "ok\n")
    assert [record.message for record in caplog.records] == ["probe_failed"]
