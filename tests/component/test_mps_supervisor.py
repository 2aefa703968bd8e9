"""The real supervisor with simulated control daemons as real processes: daemons, ceilings, faults."""

import asyncio
import os
import signal
from contextlib import ExitStack
from dataclasses import replace

import pytest

from cluster_harness.waiting import PATIENCE_SECONDS
from cta_group_plugin.adapters.driver_root import driver_words
from cta_group_plugin.adapters.simulated_compute_modes import SimulatedComputeModes
from cta_group_plugin.ports import MpsState
from mps_supervising import ONE, TWO, Supervising, share
from simulated_mps import FAST, IMPATIENT_SECONDS, SimulatedNode, eventually

IMPATIENT = replace(FAST, command_seconds=IMPATIENT_SECONDS)


async def test_a_demand_brings_a_daemon_with_its_limits(mps_node: SimulatedNode, supervisors: Supervising) -> None:
    """The first Sync starts the daemon and answers when it has the limits; a client then gets exactly those."""
    states = await (await supervisors.start()).sync([share(ONE)])
    assert states == {ONE: MpsState(ready=True, reason="", sm_percent=25, memory_mib=17766)}
    with mps_node.client(ONE) as client:
        assert client.answer == {"sm_percent": 25, "memory_mib": 17766}


async def test_the_same_demand_again_changes_nothing(mps_node: SimulatedNode, supervisors: Supervising) -> None:
    """Sync may be repeated: the same daemon goes on."""
    supervisor = await supervisors.start()
    await supervisor.sync([share(ONE)])
    pid = mps_node.pid(ONE)
    assert pid is not None
    assert (await supervisor.sync([share(ONE)]))[ONE].ready
    assert mps_node.pid(ONE) == pid


async def test_a_larger_share_raises_the_ceiling_of_a_running_server(
    mps_node: SimulatedNode, supervisors: Supervising
) -> None:
    """A client that comes after the larger demand gets it; the one that was there keeps what it had."""
    supervisor = await supervisors.start()
    await supervisor.sync([share(ONE)])
    with mps_node.client(ONE, pid=1) as early:
        state = (await supervisor.sync([share(ONE, sm_percent=50, memory_mib=35788)]))[ONE]
        assert (state.ready, state.sm_percent, state.memory_mib) == (True, 50, 35788)
        with mps_node.client(ONE, pid=2) as late:
            assert late.answer == {"sm_percent": 50, "memory_mib": 35788}
        assert early.answer == {"sm_percent": 25, "memory_mib": 17766}
        assert not early.is_dead()


async def test_dimensions_that_are_not_enforced_are_not_limited(
    mps_node: SimulatedNode, supervisors: Supervising
) -> None:
    """100 percent and 0 MiB limit nothing, also on a daemon that had limits before; each leaves the other's limit."""
    supervisor = await supervisors.start()
    assert (await supervisor.sync([share(ONE, sm_percent=100, memory_mib=0)]))[ONE].ready
    with mps_node.client(ONE) as client:
        assert client.answer == {"sm_percent": 100, "memory_mib": None}
    assert (await supervisor.sync([share(ONE)]))[ONE].ready
    assert (await supervisor.sync([share(ONE, sm_percent=100, memory_mib=0)]))[ONE].ready
    with mps_node.client(ONE) as client:
        assert client.answer["memory_mib"] is None
    assert (await supervisor.sync([share(ONE, sm_percent=100)]))[ONE].ready
    with mps_node.client(ONE) as client:
        assert client.answer == {"sm_percent": 100, "memory_mib": 17766}


async def test_two_gpus_have_daemons_of_their_own(mps_node: SimulatedNode, supervisors: Supervising) -> None:
    """Each GPU has its own daemon and limits, and one that does not answer leaves the other serving."""
    supervisor = await supervisors.start(IMPATIENT)
    states = await supervisor.sync([share(ONE), share(TWO, sm_percent=50)])
    assert [states[gpu].sm_percent for gpu in (ONE, TWO)] == [25, 50]
    assert mps_node.pid(ONE) != mps_node.pid(TWO)
    mps_node.fail(ONE, "no-answer")
    states = await supervisor.sync([share(ONE), share(TWO, sm_percent=75)])
    assert not states[ONE].ready
    assert (states[TWO].ready, states[TWO].sm_percent) == (True, 75)


async def test_a_killed_daemon_is_started_again(mps_node: SimulatedNode, supervisors: Supervising) -> None:
    """A daemon that dies is told, waited for, and started again with the same limits, without any Sync."""
    supervisor = await supervisors.start(replace(FAST, backoff_first_seconds=3.0, backoff_cap_seconds=3.0))
    await supervisor.sync([share(ONE)])
    first = mps_node.pid(ONE)
    assert first is not None
    with mps_node.client(ONE) as client:
        os.kill(first, signal.SIGKILL)
        await eventually(client.is_dead, "the client is dead with its daemon")
    state = (await supervisor.sync([share(ONE)]))[ONE]
    assert not state.ready
    assert "ended by SIGKILL; tried again 3 s after that" in state.reason
    await eventually(lambda: mps_node.pid(ONE) not in {None, first}, "another daemon serves")
    await eventually(lambda: supervisors.count("mps_daemon_ready") == 1, "it is ready")
    assert (await supervisor.sync([share(ONE)]))[ONE].sm_percent == 25
    assert supervisors.count("mps_daemon_starts_total") == 2
    assert supervisors.count("mps_daemon_ends_total") == 1


async def test_a_daemon_that_always_crashes_is_tried_less_and_less(
    mps_node: SimulatedNode, supervisors: Supervising
) -> None:
    """The state says how the daemon ended and how long is waited, and the wait grows to its cap."""
    mps_node.fail(ONE, "crash")
    supervisor = await supervisors.start()
    reasons: set[str] = set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not any("1 s after" in reason for reason in reasons):
            state = (await supervisor.sync([share(ONE)]))[ONE]
            assert not state.ready
            reasons.add(state.reason)
    assert any("exit code 1" in reason and "0.2 s after that, failure 1" in reason for reason in reasons)
    assert any("0.4 s after that, failure 2" in reason for reason in reasons)
    mps_node.fail(ONE)
    await eventually(lambda: mps_node.pid(ONE) is not None, "a daemon serves")
    assert (await supervisor.sync([share(ONE)]))[ONE].ready


async def test_a_silent_daemon_is_not_ready_and_recovers(mps_node: SimulatedNode, supervisors: Supervising) -> None:
    """No answer in time: not ready, with GPU and command named, nothing killed; an answer makes it ready again."""
    supervisor = await supervisors.start(IMPATIENT)
    await supervisor.sync([share(ONE)])
    pid = mps_node.pid(ONE)
    mps_node.fail(ONE, "no-answer")
    state = (await supervisor.sync([share(ONE)]))[ONE]
    assert not state.ready
    assert "GPU GPU-1: MPS command 'get_server_list' was not answered in 3 s" in state.reason
    assert mps_node.pid(ONE) == pid
    mps_node.fail(ONE)
    assert (await supervisor.sync([share(ONE)]))[ONE].ready
    assert mps_node.pid(ONE) == pid


async def test_a_server_in_fault_is_not_ready(mps_node: SimulatedNode, supervisors: Supervising) -> None:
    """A daemon whose server is in state FAULT answers, and is not ready until the fault is over."""
    supervisor = await supervisors.start()
    await supervisor.sync([share(ONE)])
    with mps_node.client(ONE):
        mps_node.fail(ONE, "fault")
        state = (await supervisor.sync([share(ONE)]))[ONE]
        assert not state.ready
        assert "state FAULT" in state.reason
    mps_node.fail(ONE)
    assert (await supervisor.sync([share(ONE)]))[ONE].ready


@pytest.mark.parametrize("has_server", [False, True])
async def test_a_memory_limit_that_does_not_take_is_not_ready(
    mps_node: SimulatedNode, supervisors: Supervising, *, has_server: bool
) -> None:
    """A daemon or server that accepts a limit and has none is told, with the driver: nobody would be limited."""
    supervisor = await supervisors.start(replace(FAST, verify_seconds=0.0))
    whose = "the daemon"
    if has_server:
        await supervisor.sync([share(ONE, memory_mib=0)])
        with mps_node.client(ONE):  # which brings the server
            pass
        whose = f"server {mps_node.pid(ONE)}"
    mps_node.fail(ONE, "ignore-server-memory" if has_server else "ignore-memory")
    state = (await supervisor.sync([share(ONE)]))[ONE]
    assert not state.ready
    told = f"{whose} of MPS accepted a memory limit of 17766 MiB and has none instead ({driver_words()})"
    assert told in state.reason
    mps_node.fail(ONE)
    assert (await supervisor.sync([share(ONE)]))[ONE].ready


async def test_a_slow_start_is_waited_for(mps_node: SimulatedNode, supervisors: Supervising) -> None:
    """A daemon that takes its time to listen is not started twice, and Sync answers when it is there."""
    mps_node.fail(ONE, "slow-start 0.7")
    state = (await (await supervisors.start()).sync([share(ONE)]))[ONE]
    assert state.ready


async def test_a_start_that_is_too_slow_is_told(mps_node: SimulatedNode, supervisors: Supervising) -> None:
    """A Sync does not wait for a slow start: until the daemon listens the state says that it is starting."""
    mps_node.fail(ONE, "slow-start 3")
    supervisor = await supervisors.start(replace(FAST, sync_seconds=1.0))
    reasons: set[str] = set()

    async def ready() -> bool:
        state = (await supervisor.sync([share(ONE)]))[ONE]
        reasons.add(state.reason)
        return state.ready

    await eventually(ready, "the daemon serves")
    assert "GPU GPU-1: its MPS daemon is starting" in reasons
    assert supervisors.count("mps_daemon_starts_total") == 1


async def test_a_full_client_table_refuses_the_next_client(mps_node: SimulatedNode, supervisors: Supervising) -> None:
    """The 49th client of a simulated daemon is refused in words and the 48 others live on."""
    await (await supervisors.start()).sync([share(ONE)])
    with ExitStack() as clients:
        held = [clients.enter_context(mps_node.client(ONE, pid)) for pid in range(48)]
        with mps_node.client(ONE, pid=48) as refused:
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
    mps_node: SimulatedNode, supervisors: Supervising, binary: str, told: str
) -> None:
    """Without a usable control program the state lists where it was looked for, and Sync still answers."""
    path = mps_node.root / "bin"
    path.mkdir()
    (path / "present").write_text("", encoding="ascii")
    settings = replace(
        mps_node.settings, simulated=False, control_binary=binary.format(path=path), environment={"PATH": str(path)}
    )
    supervisor = await supervisors.start(settings=settings, modes=SimulatedComputeModes(mps_node.root))
    state = (await supervisor.sync([share(ONE)]))[ONE]
    assert not state.ready
    assert told.format(path=path) in state.reason
