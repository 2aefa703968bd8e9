"""Daemons that hang, are in state FAULT, die or are cut off: what happens to them and to their clients."""

import logging
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from cta_group_plugin.mps.supervisor import MpsSupervisor
from cta_group_plugin.mps.timing import Timing
from cta_group_plugin.ports import MpsState
from mps_supervising import ONE, Supervising, state_of
from simulated_mps import FAST, IMPATIENT_SECONDS, SimulatedNode, eventually, is_alive

QUICK = replace(FAST, command_seconds=IMPATIENT_SECONDS, wedged_seconds=0.5, fault_seconds=1.0)
PATIENT = replace(QUICK, wedged_seconds=600.0, fault_seconds=600.0)


Told = Callable[[], list[str]]


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Told:
    """Return the reasons that were told so far, in order, whoever asked."""
    caplog.set_level(logging.INFO)
    return lambda: [
        vars(record)["event_fields"]["reason"]
        for record in caplog.records
        if record.getMessage() == "mps_state_changed"
    ]


@contextmanager
def tenant() -> Iterator[subprocess.Popen[bytes]]:
    """Be a process that can be a client, until the block ends or it is killed."""
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            yield process
        finally:
            process.kill()


async def started(supervisors: Supervising, node: SimulatedNode, timing: Timing = QUICK) -> tuple[MpsSupervisor, int]:
    """Start a supervisor with one daemon that is ready; return both."""
    supervisor = await supervisors.start(timing)
    assert (await state_of(supervisor)).ready
    pid = node.pid(ONE)
    assert pid is not None
    return supervisor, pid


@pytest.mark.parametrize(("fault", "trouble"), [("no-answer", "silent"), ("fault", "fault")])
async def test_a_daemon_in_trouble_without_a_client_is_replaced(
    supervisors: Supervising, mps_node: SimulatedNode, told: Told, fault: str, trouble: str
) -> None:
    """After its time it is killed and another one serves with the same limits; the state says so before."""
    supervisor, pid = await started(supervisors, mps_node)
    with mps_node.client(ONE):  # so that there is a server that can be in state FAULT
        pass
    mps_node.fail(ONE, fault)
    await eventually(lambda: not is_alive(pid), "the daemon in trouble is killed")
    assert any("without a client it is started anew after 0.5 s" in reason for reason in told())
    mps_node.fail(ONE)
    await until_ready(supervisor)
    assert mps_node.pid(ONE) not in {None, pid}
    assert supervisors.count("mps_daemon_kills_total", trouble=trouble) == 1
    assert supervisors.count("mps_clients_lost_total") == 0


async def test_a_silent_daemon_is_left_alone_as_long_as_a_client_lives(
    supervisors: Supervising, mps_node: SimulatedNode
) -> None:
    """Nobody knows what its clients do, so it is killed only when the last of those that it told of has ended."""
    supervisor, pid = await started(supervisors, mps_node)
    with tenant() as process, mps_node.client(ONE, process.pid) as client:
        assert (await state_of(supervisor)).client_pids == (process.pid,)
        mps_node.fail(ONE, "no-answer")
        states = [await state_of(supervisor) for _ in range(4)]  # longer than it takes to count as wedged
        assert {state.ready for state in states} == {False}
        assert "left alone as long as 1 client may live" in states[-1].reason
        assert is_alive(pid)
        assert not client.is_dead()
        process.kill()
        process.wait()
        await eventually(lambda: not is_alive(pid), "the silent daemon is killed after its last client")


async def test_a_fault_that_lasts_ends_the_daemon_although_a_client_lives(
    supervisors: Supervising, mps_node: SimulatedNode, told: Told
) -> None:
    """A client of a server in FAULT has lost its context already; its end is told with its process id."""
    supervisor, pid = await started(supervisors, mps_node)
    with tenant() as process, mps_node.client(ONE, process.pid) as client:
        mps_node.fail(ONE, "fault")
        await eventually(client.is_dead, "the daemon is killed under its client")
        assert any("when 1 client has ended, at the latest after 1 s" in reason for reason in told())
    mps_node.fail(ONE)
    state = await until_ready(supervisor)
    assert mps_node.pid(ONE) not in {None, pid}
    assert state.loss is not None
    assert state.loss.client_pids == (process.pid,)
    assert "state FAULT" in state.loss.reason
    assert supervisors.count("mps_clients_lost_total") == 1


async def test_a_fault_that_passes_ends_nobody(supervisors: Supervising, mps_node: SimulatedNode) -> None:
    """A server that recovers is ready again with the same daemon, and nothing is told as lost."""
    supervisor, pid = await started(supervisors, mps_node, PATIENT)
    with mps_node.client(ONE):
        mps_node.fail(ONE, "fault")
        assert not (await state_of(supervisor)).ready
    mps_node.fail(ONE)
    state = await until_ready(supervisor)
    assert (mps_node.pid(ONE), state.loss) == (pid, None)


async def test_a_daemon_that_dies_under_clients_is_told_with_them(
    supervisors: Supervising, mps_node: SimulatedNode
) -> None:
    """Reason, time and process ids stay in the state until it happens again, so that pods can be told."""
    supervisor, pid = await started(supervisors, mps_node)
    with tenant() as process, mps_node.client(ONE, process.pid):
        assert (await state_of(supervisor)).client_pids == (process.pid,)
        os.kill(pid, signal.SIGKILL)
        await eventually(
            lambda: supervisors.count("mps_clients_lost_total") == 1, "the loss is noticed without a question"
        )
    state = await until_ready(supervisor)
    assert state.loss is not None
    assert state.loss.client_pids == (process.pid,)
    assert "ended by SIGKILL" in state.loss.reason
    assert state.client_pids == ()


async def test_a_server_that_dies_under_clients_is_told_and_its_daemon_kept(
    supervisors: Supervising, mps_node: SimulatedNode
) -> None:
    """The daemon starts another server for the next client, with the limits; who was on the first one is told."""
    supervisor, pid = await started(supervisors, mps_node)
    with tenant() as process, mps_node.client(ONE, process.pid) as client:
        assert (await state_of(supervisor)).client_pids == (process.pid,)
        mps_node.fail(ONE, "server-crash")
        await eventually(client.is_dead, "the client is dead with its server")
        mps_node.fail(ONE)
    state = await until_ready(supervisor)
    assert state.loss is not None
    assert state.loss.client_pids == (process.pid,)
    assert mps_node.pid(ONE) == pid
    with mps_node.client(ONE) as late:
        assert late.answer == {"sm_percent": 25, "memory_mib": 17766}


async def test_a_wiped_pipe_folder_is_no_second_daemon(supervisors: Supervising, mps_node: SimulatedNode) -> None:
    """A daemon whose socket was removed still has its clients: it is not doubled, and replaced when they are gone."""
    supervisor, pid = await started(supervisors, mps_node)
    with tenant() as process, mps_node.client(ONE, process.pid) as client:
        assert (await state_of(supervisor)).client_pids == (process.pid,)
        for file in mps_node.pipe(ONE).iterdir():
            file.unlink()
        states = [await state_of(supervisor) for _ in range(2)]
        assert "its MPS daemon runs and does not listen" in states[-1].reason
        assert supervisors.count("mps_daemon_starts_total") == 1
        assert not client.is_dead()
    await until_ready(supervisor)
    assert not is_alive(pid)
    assert mps_node.pid(ONE) not in {None, pid}


async def test_a_cut_off_daemon_is_left_to_the_next_supervisor(
    supervisors: Supervising, mps_node: SimulatedNode
) -> None:
    """A supervisor that stops does not end a daemon whose clients it cannot ask for; the next one knows the process."""
    supervisor, pid = await started(supervisors, mps_node)
    with mps_node.client(ONE) as client:
        (mps_node.pipe(ONE) / "simulated.sock").unlink()
        await supervisor.stop()
        assert is_alive(pid)
        assert not client.is_dead()
        successor = await supervisors.start(PATIENT)
        assert "runs and does not listen" in (await state_of(successor)).reason
        assert supervisors.count("mps_daemon_starts_total") == 1


async def until_ready(supervisor: MpsSupervisor) -> MpsState:
    """Wait until GPU-1 is ready and return its state."""
    states: list[MpsState] = []

    async def ready() -> bool:
        states.append(await state_of(supervisor))
        return states[-1].ready

    await eventually(ready, "the GPU is ready")
    return states[-1]
