"""The command ``cta-group-plugin mps`` as a process: its socket, its end, and what it leaves behind."""

import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import grpc.aio
import pytest

from cta_group_core.ids import GpuUuid
from cta_group_plugin.adapters.simulated_compute_modes import SimulatedComputeModes
from cta_group_plugin.adapters.supervisor_client import SupervisorClient
from cta_group_plugin.ports import ComputeMode, MpsDemand, MpsState, whole_demand
from cta_group_plugin.supervisor_api import supervisor_pb2, supervisor_pb2_grpc
from http_probe import fetch, free_address
from simulated_mps import SimulatedNode, eventually, simulated_node

GPU = GpuUuid("GPU-1")
QUARTER = MpsDemand(gpu=GPU, sm_percent=25, memory_mib=17766)
PROGRAM = Path(sys.executable).with_name("cta-group-plugin")

StartSupervisor = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def node() -> Iterator[SimulatedNode]:
    """Give the test a node; every daemon in it ends with the test."""
    with simulated_node() as made:
        yield made


@pytest.fixture
def start_supervisor(node: SimulatedNode) -> Iterator[StartSupervisor]:
    """Start the command; each process that is left is killed with the test."""
    with ExitStack() as started:

        def start(*options: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen([*command(node), *options], stderr=subprocess.DEVNULL, umask=0o077)
            started.enter_context(process)
            started.callback(process.kill)
            return process

        yield start


def command(node: SimulatedNode) -> list[str]:
    """Return the command line of the node's supervisor."""
    return [str(PROGRAM), "mps", "--mps-root", str(node.root), "--simulated", "--metrics-address", "127.0.0.1:0"]


async def settled(
    node: SimulatedNode, demand: MpsDemand = QUARTER, is_so: Callable[[MpsState], bool] = lambda state: state.ready
) -> MpsState:
    """Ask over the socket, once it is there, again and again as the device plugin does; return the state that is so."""
    await eventually(node.settings.mps_socket.exists, "the supervisor's socket is there")
    client = SupervisorClient(node.settings.mps_socket)
    told: list[MpsState] = []

    async def so() -> bool:
        told.append((await client.sync([demand]))[demand.gpu])
        return is_so(told[-1])

    try:
        await eventually(so, "the state is as it should be")
    finally:
        await client.close()
    return told[-1]


async def test_the_plugin_gets_its_daemon_over_the_socket(
    node: SimulatedNode, start_supervisor: StartSupervisor
) -> None:
    """A Sync over the socket answers with the daemon ready; only our own user may use the socket."""
    start_supervisor()
    assert await settled(node) == MpsState(ready=True, reason="", sm_percent=25, memory_mib=17766)
    assert stat.S_IMODE(node.settings.mps_socket.stat().st_mode) == 0o600


async def test_clients_of_any_user_reach_the_pipe_folder(
    node: SimulatedNode, start_supervisor: StartSupervisor
) -> None:
    """Whatever the supervisor's umask, other users can pass to the pipe's socket, and cannot write beside it."""
    start_supervisor()
    await settled(node)
    pipe = node.pipe(GPU)
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (pipe.parent, pipe)] == [0o755, 0o755]
    assert stat.S_IMODE((pipe / "simulated.sock").stat().st_mode) & 0o002


@pytest.mark.parametrize(
    ("shut", "mode", "open_again"),
    [("pipe/simulated.sock", 0o600, 0o666), ("pipe", 0o700, 0o755)],
)
async def test_a_pipe_that_is_shut_to_other_users_is_told(
    node: SimulatedNode, start_supervisor: StartSupervisor, shut: str, mode: int, open_again: int
) -> None:
    """Containers run as any user, so a socket or folder that only root passes keeps them waiting with its mode."""
    start_supervisor()
    await settled(node)
    path = node.root / GPU / shut
    path.chmod(mode)
    state = await settled(node, is_so=lambda state: not state.ready)
    assert state.reason == f"{path} has mode {mode:04o} and shuts out clients that do not run as root"
    path.chmod(open_again)
    await settled(node)


async def test_clients_and_losses_are_told_over_the_socket(
    node: SimulatedNode, start_supervisor: StartSupervisor
) -> None:
    """The plugin learns which processes are clients, and who died with a daemon, when and why."""
    start_supervisor()
    await settled(node)
    before = time.time()
    with node.client(GPU) as client:
        own = os.getpid()
        state = await settled(node, is_so=lambda state: bool(state.client_pids))
        assert state.client_pids == (client.pid,) == (own,)
        daemon = node.pid(GPU)
        assert daemon is not None
        os.kill(daemon, signal.SIGKILL)
        await eventually(client.is_dead, "the client is dead with its daemon")
    loss = (await settled(node, is_so=lambda state: state.ready and state.loss is not None)).loss
    assert loss is not None
    assert (loss.client_pids, loss.reason) == ((own,), "the daemon ended by SIGKILL")
    assert before <= loss.at <= time.time()


async def test_a_whole_gpu_is_demanded_over_the_socket(node: SimulatedNode, start_supervisor: StartSupervisor) -> None:
    """Its state is ready without a daemon, and its compute mode Default."""
    start_supervisor()
    await settled(node)
    assert await settled(node, whole_demand(GPU)) == MpsState(ready=True, reason="")
    assert node.pid(GPU) is None
    assert SimulatedComputeModes(node.root).get(GPU) is ComputeMode.DEFAULT


async def test_a_supervisor_killed_hard_leaves_its_daemon_to_the_next(
    node: SimulatedNode, start_supervisor: StartSupervisor
) -> None:
    """After kill -9 daemon and client live on, and the next supervisor takes the daemon over as it is."""
    first = start_supervisor()
    await settled(node)
    pid = node.pid(GPU)
    assert pid is not None
    assert os.getsid(pid) == pid, "the daemon leads a session of its own"
    with node.client(GPU) as client:
        first.kill()
        first.wait()
        node.settings.mps_socket.unlink()  # what the killed one left; the wait of sync is for the next one's
        assert node.pid(GPU) == pid
        start_supervisor()
        await settled(node)
        assert node.pid(GPU) == pid
        assert not client.is_dead()


async def test_sigterm_without_clients_ends_the_daemon(node: SimulatedNode, start_supervisor: StartSupervisor) -> None:
    """An idle node is left clean: no daemon, no socket, exit code 0."""
    process = start_supervisor()
    await settled(node)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert node.pid(GPU) is None
    assert not node.settings.mps_socket.exists()


async def test_sigterm_with_clients_leaves_the_daemon(node: SimulatedNode, start_supervisor: StartSupervisor) -> None:
    """A client keeps its daemon when the supervisor ends."""
    process = start_supervisor()
    await settled(node)
    with node.client(GPU) as client:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert node.pid(GPU) is not None
        assert not client.is_dead()


async def test_sigterm_leaves_a_daemon_that_does_not_say(
    node: SimulatedNode, start_supervisor: StartSupervisor
) -> None:
    """A daemon that does not answer may have clients, so it is left as it is, and the supervisor ends all the same."""
    process = start_supervisor()
    await settled(node)
    node.fail(GPU, "no-answer")
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert node.pid(GPU) is not None


async def test_a_socket_that_somebody_removes_is_made_anew(
    node: SimulatedNode, start_supervisor: StartSupervisor
) -> None:
    """A host that cleans its folders must not keep every container of the node waiting; the daemon goes on."""
    start_supervisor()
    await settled(node)
    pid = node.pid(GPU)
    node.settings.mps_socket.unlink()
    assert (await settled(node)).ready
    assert node.pid(GPU) == pid
    assert stat.S_IMODE(node.settings.mps_socket.stat().st_mode) == 0o600


async def test_a_second_supervisor_is_refused(node: SimulatedNode, start_supervisor: StartSupervisor) -> None:
    """Two supervisors of one folder would start two daemons for a GPU: the second ends with a sentence."""
    start_supervisor()
    await settled(node)
    second = refused(node)
    assert second.returncode == 2
    assert "another supervisor" in second.stderr
    await settled(node)


async def test_nonsense_is_refused_with_the_reason(node: SimulatedNode, start_supervisor: StartSupervisor) -> None:
    """A demand that can never be meant is an invalid argument, named; nothing is started for it."""
    start_supervisor()
    await eventually(node.settings.mps_socket.exists, "the supervisor's socket is there")
    wrong = {
        "../../etc": 25,
        "GPU-1": 0,
        "GPU-2": 101,
    }
    async with grpc.aio.insecure_channel(
        f"unix:{node.settings.mps_socket}", options=[("grpc.default_authority", "localhost")]
    ) as channel:
        stub = supervisor_pb2_grpc.MpsSupervisorStub(channel)
        for uuid, percent in wrong.items():
            demand = supervisor_pb2.Demand(gpu_uuid=uuid, sm_percent=percent)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.Sync(supervisor_pb2.SyncRequest(demands=[demand]), timeout=60)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert uuid in (caught.value.details() or "")
    assert sorted(path.name for path in node.root.iterdir()) == ["supervisor.lock", "supervisor.sock"]


def test_a_socket_path_that_is_too_long_is_a_wrong_setting(node: SimulatedNode) -> None:
    """The kernel's limit is told as a setting that is wrong, exit code 2."""
    long_path = node.root / ("x" * 100) / "supervisor.sock"
    ended = refused(node, "--mps-socket", str(long_path))
    assert ended.returncode == 2
    assert "107 bytes" in ended.stderr


async def test_probes_and_metrics_are_served(node: SimulatedNode, start_supervisor: StartSupervisor) -> None:
    """The supervisor is live and ready over HTTP, and its metrics name the GPU."""
    address = free_address()
    start_supervisor("--metrics-address", address)
    await settled(node)
    bodies = {path: fetch(f"http://{address}{path}") for path in ("/healthz", "/readyz", "/metrics")}
    assert (bodies["/healthz"], bodies["/readyz"]) == ("ok\n", "ok\n")
    assert re.search(r'cta_group_mps_daemon_sm_percent\{gpu_uuid="GPU-1"\} 25\.0', bodies["/metrics"])


def refused(node: SimulatedNode, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a supervisor that ends by itself."""
    return subprocess.run([*command(node), *options], capture_output=True, text=True, timeout=90, check=False)
