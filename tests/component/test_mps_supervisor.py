"""The real supervisor with simulated control daemons as real processes: daemons, ceilings, faults."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace

import pytest
from prometheus_client import generate_latest

from cta_group_core.ids import GpuUuid
from cta_group_plugin.mps.app import build_supervisor
from cta_group_plugin.mps.folders import gpus_with_folders
from cta_group_plugin.mps.metrics import MpsMetrics
from cta_group_plugin.mps.supervisor import MpsSupervisor
from cta_group_plugin.mps.timing import Timing
from cta_group_plugin.ports import MpsDemand, MpsState
from simulated_mps import FAST, IMPATIENT_SECONDS, SimulatedNode, eventually, simulated_node

ONE = GpuUuid("GPU-1")
TWO = GpuUuid("GPU-2")
IMPATIENT = replace(FAST, command_seconds=IMPATIENT_SECONDS)

Supervise = Callable[..., Awaitable[MpsSupervisor]]


@pytest.fixture
def node() -> Iterator[SimulatedNode]:
    """Give the test a node; every daemon in it ends with the test."""
    with simulated_node() as made:
        yield made


@pytest.fixture
def metrics() -> MpsMetrics:
    """Give the test the metrics of its supervisors."""
    return MpsMetrics("test", most_clients=48)


@pytest.fixture
async def supervise(node: SimulatedNode, metrics: MpsMetrics) -> AsyncIterator[Supervise]:
    """Start supervisors of the node that stop with the test."""

    async def start(timing: Timing = FAST) -> MpsSupervisor:
        supervisor = build_supervisor(node.settings, metrics, timing)
        await supervisor.adopt(gpus_with_folders(node.root))
        stack.push_async_callback(supervisor.stop)
        return supervisor

    async with AsyncExitStack() as stack:
        yield start


def quarter(gpu: GpuUuid, sm_percent: int = 25, memory_mib: int = 17766) -> MpsDemand:
    """Return the demand of a quarter of a GPU."""
    return MpsDemand(gpu=gpu, sm_percent=sm_percent, memory_mib=memory_mib)


async def test_a_demand_brings_a_daemon_with_its_limits(node: SimulatedNode, supervise: Supervise) -> None:
    """The first Sync starts the daemon and answers when it has the limits; a client then gets exactly those."""
    states = await (await supervise()).sync([quarter(ONE)])
    assert states == {ONE: MpsState(ready=True, reason="", sm_percent=25, memory_mib=17766)}
    with node.client(ONE) as client:
        assert client.answer == {"sm_percent": 25, "memory_mib": 17766}


async def test_the_same_demand_again_changes_nothing(node: SimulatedNode, supervise: Supervise) -> None:
    """Sync may be repeated: the same daemon goes on."""
    supervisor = await supervise()
    await supervisor.sync([quarter(ONE)])
    pid = node.pid(ONE)
    assert pid is not None
    assert (await supervisor.sync([quarter(ONE)]))[ONE].ready
    assert node.pid(ONE) == pid


async def test_a_larger_share_raises_the_ceiling_of_a_running_server(node: SimulatedNode, supervise: Supervise) -> None:
    """A client that comes after the larger demand gets it; the one that was there keeps what it had."""
    supervisor = await supervise()
    await supervisor.sync([quarter(ONE)])
    with node.client(ONE, pid=1) as early:
        state = (await supervisor.sync([quarter(ONE, sm_percent=50, memory_mib=35788)]))[ONE]
        assert (state.ready, state.sm_percent, state.memory_mib) == (True, 50, 35788)
        with node.client(ONE, pid=2) as late:
            assert late.answer == {"sm_percent": 50, "memory_mib": 35788}
        assert early.answer == {"sm_percent": 25, "memory_mib": 17766}
        assert not early.is_dead()


async def test_dimensions_that_are_not_enforced_are_not_limited(node: SimulatedNode, supervise: Supervise) -> None:
    """100 percent and 0 MiB limit nothing, also on a daemon that had limits before."""
    supervisor = await supervise()
    assert (await supervisor.sync([quarter(ONE, sm_percent=100, memory_mib=0)]))[ONE].ready
    with node.client(ONE) as client:
        assert client.answer == {"sm_percent": 100, "memory_mib": None}
    assert (await supervisor.sync([quarter(ONE)]))[ONE].ready
    assert (await supervisor.sync([quarter(ONE, sm_percent=100, memory_mib=0)]))[ONE].ready
    with node.client(ONE) as client:
        assert client.answer["memory_mib"] is None


async def test_two_gpus_have_daemons_of_their_own(node: SimulatedNode, supervise: Supervise) -> None:
    """Each GPU has its own daemon and limits, and one that does not answer leaves the other serving."""
    supervisor = await supervise(IMPATIENT)
    states = await supervisor.sync([quarter(ONE), quarter(TWO, sm_percent=50)])
    assert [states[gpu].sm_percent for gpu in (ONE, TWO)] == [25, 50]
    assert node.pid(ONE) != node.pid(TWO)
    node.fail(ONE, "no-answer")
    states = await supervisor.sync([quarter(ONE), quarter(TWO, sm_percent=75)])
    assert not states[ONE].ready
    assert (states[TWO].ready, states[TWO].sm_percent) == (True, 75)


async def test_a_killed_daemon_is_started_again(node: SimulatedNode, supervise: Supervise, metrics: MpsMetrics) -> None:
    """A daemon that dies is told, waited for, and started again with the same limits, without any Sync."""
    supervisor = await supervise(replace(FAST, backoff_first_seconds=1.0))
    await supervisor.sync([quarter(ONE)])
    first = node.pid(ONE)
    assert first is not None
    with node.client(ONE) as client:
        os.kill(first, signal.SIGKILL)
        await eventually(client.is_dead, "the client is dead with its daemon")
    state = (await supervisor.sync([quarter(ONE)]))[ONE]
    assert not state.ready
    assert "ended by SIGKILL; tried again 1 s after that" in state.reason
    await eventually(lambda: node.pid(ONE) not in {None, first}, "another daemon serves")
    await eventually(lambda: 'mps_daemon_ready{gpu_uuid="GPU-1"} 1.0' in text_of(metrics), "it is ready")
    assert (await supervisor.sync([quarter(ONE)]))[ONE].sm_percent == 25
    assert 'mps_daemon_starts_total{gpu_uuid="GPU-1"} 2.0' in text_of(metrics)
    assert 'mps_daemon_ends_total{gpu_uuid="GPU-1"} 1.0' in text_of(metrics)


async def test_a_daemon_that_always_crashes_is_tried_less_and_less(node: SimulatedNode, supervise: Supervise) -> None:
    """The state says how the daemon ended and how long is waited, and the wait grows to its cap."""
    node.fail(ONE, "crash")
    supervisor = await supervise()
    reasons: set[str] = set()
    async with asyncio.timeout(90):
        while not any("1 s after" in reason for reason in reasons):
            state = (await supervisor.sync([quarter(ONE)]))[ONE]
            assert not state.ready
            reasons.add(state.reason)
    assert any("exit code 1" in reason and "0.2 s after that, failure 1" in reason for reason in reasons)
    assert any("0.4 s after that, failure 2" in reason for reason in reasons)
    node.fail(ONE)
    await eventually(lambda: node.pid(ONE) is not None, "a daemon serves")
    assert (await supervisor.sync([quarter(ONE)]))[ONE].ready


async def test_a_silent_daemon_is_not_ready_and_recovers(node: SimulatedNode, supervise: Supervise) -> None:
    """No answer in time: not ready, with GPU and command named, nothing killed; an answer makes it ready again."""
    supervisor = await supervise(IMPATIENT)
    await supervisor.sync([quarter(ONE)])
    pid = node.pid(ONE)
    node.fail(ONE, "no-answer")
    state = (await supervisor.sync([quarter(ONE)]))[ONE]
    assert not state.ready
    assert "GPU GPU-1: MPS command 'get_server_list' was not answered in 3 s" in state.reason
    assert node.pid(ONE) == pid
    node.fail(ONE)
    assert (await supervisor.sync([quarter(ONE)]))[ONE].ready
    assert node.pid(ONE) == pid


async def test_a_server_in_fault_is_not_ready(node: SimulatedNode, supervise: Supervise) -> None:
    """A daemon whose server is in state FAULT answers, and is not ready until the fault is over."""
    supervisor = await supervise()
    await supervisor.sync([quarter(ONE)])
    with node.client(ONE):
        node.fail(ONE, "fault")
        state = (await supervisor.sync([quarter(ONE)]))[ONE]
        assert not state.ready
        assert "state FAULT" in state.reason
    node.fail(ONE)
    assert (await supervisor.sync([quarter(ONE)]))[ONE].ready


async def test_a_memory_limit_that_does_not_take_is_not_ready(node: SimulatedNode, supervise: Supervise) -> None:
    """A daemon that accepts a limit and does not have it then is told, since its clients would not be limited."""
    node.fail(ONE, "ignore-memory")
    state = (await (await supervise()).sync([quarter(ONE)]))[ONE]
    assert not state.ready
    assert "accepted a memory limit of 17766 MiB and has none instead" in state.reason


async def test_a_slow_start_is_waited_for(node: SimulatedNode, supervise: Supervise) -> None:
    """A daemon that takes its time to listen is not started twice, and Sync answers when it is there."""
    node.fail(ONE, "slow-start 0.7")
    state = (await (await supervise()).sync([quarter(ONE)]))[ONE]
    assert state.ready


async def test_a_start_that_is_too_slow_is_told(node: SimulatedNode, supervise: Supervise) -> None:
    """When the wait of a Sync is over, the state says that the daemon is starting; a later one finds it ready."""
    node.fail(ONE, "slow-start 1")
    supervisor = await supervise(replace(FAST, sync_seconds=0.1))
    state = (await supervisor.sync([quarter(ONE)]))[ONE]
    assert (state.ready, state.reason) == (False, "GPU GPU-1: its MPS daemon is starting")
    await eventually((node.pipe(ONE) / "simulated.sock").exists, "the daemon listens")
    async with asyncio.timeout(60):
        while not (await supervisor.sync([quarter(ONE)]))[ONE].ready:
            pass


async def test_a_daemon_of_an_earlier_supervisor_is_adopted(node: SimulatedNode, supervise: Supervise) -> None:
    """The next supervisor finds the daemon that runs, keeps it for its clients, and raises its ceiling."""
    with_client = await supervise()
    await with_client.sync([quarter(ONE)])
    pid = node.pid(ONE)
    with node.client(ONE) as client:
        await with_client.stop()
        assert node.pid(ONE) == pid, "a daemon with a client is left running"
        state = (await (await supervise()).sync([quarter(ONE, sm_percent=50)]))[ONE]
        assert (state.ready, state.sm_percent) == (True, 50)
        assert node.pid(ONE) == pid
        assert not client.is_dead()


async def test_a_daemon_nobody_wants_ends_only_without_clients(node: SimulatedNode, supervise: Supervise) -> None:
    """A GPU that is not demanded any more keeps its daemon while a client lives, and loses it then."""
    supervisor = await supervise()
    await supervisor.sync([quarter(ONE)])
    with node.client(ONE) as client:
        assert await supervisor.sync([]) == {}
        await supervisor.sync([quarter(TWO)])
        assert node.pid(ONE) is not None
        assert not client.is_dead()
    await eventually(lambda: node.pid(ONE) is None, "the daemon has ended")
    assert node.pid(TWO) is not None


async def test_stopping_ends_the_daemons_without_clients(node: SimulatedNode, supervise: Supervise) -> None:
    """A supervisor that stops leaves exactly the daemons that have clients."""
    supervisor = await supervise()
    await supervisor.sync([quarter(ONE), quarter(TWO)])
    with node.client(TWO):
        await supervisor.stop()
        assert node.pid(ONE) is None
        assert node.pid(TWO) is not None


async def test_a_full_client_table_refuses_the_next_client(node: SimulatedNode, supervise: Supervise) -> None:
    """The 49th client of a simulated daemon is refused in words and the 48 others live on."""
    await (await supervise()).sync([quarter(ONE)])
    with ExitStack() as clients:
        held = [clients.enter_context(node.client(ONE, pid)) for pid in range(48)]
        with node.client(ONE, pid=48) as refused:
            assert "48 clients" in refused.answer["error"]
        assert not any(client.is_dead() for client in held)


@pytest.mark.parametrize(
    ("binary", "told"),
    [
        ("no-such-mps-control", "looked for {path}/no-such-mps-control, /usr/bin/no-such-mps-control"),
        ("/nowhere/nvidia-cuda-mps-control", "looked for /nowhere/nvidia-cuda-mps-control; set --control-binary"),
        ("{path}/present", "is there but cannot be executed"),
    ],
)
async def test_a_missing_program_is_told_with_the_places(
    node: SimulatedNode, metrics: MpsMetrics, binary: str, told: str
) -> None:
    """Without a usable control program the state lists where it was looked for, and Sync still answers."""
    path = node.root / "bin"
    path.mkdir()
    (path / "present").write_text("", encoding="ascii")
    settings = replace(
        node.settings, simulated=False, control_binary=binary.format(path=path), environment={"PATH": str(path)}
    )
    supervisor = build_supervisor(settings, metrics, FAST)
    try:
        state = (await supervisor.sync([quarter(ONE)]))[ONE]
    finally:
        await supervisor.stop()
    assert not state.ready
    assert told.format(path=path) in state.reason


def text_of(metrics: MpsMetrics) -> str:
    """Return the metrics as Prometheus reads them."""
    return generate_latest(metrics.registry).decode()
