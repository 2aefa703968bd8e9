"""Each GPU answers for itself: whatever is wrong with one of them, the others are started, raised and told at once.

Where a test lets something hang it hangs for longer than the test may take, so that nobody can have waited for it.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from cta_group_core.ids import GpuUuid
from cta_group_plugin.adapters.simulated_compute_modes import SimulatedComputeModes
from cta_group_plugin.mps.supervisor import MpsSupervisor
from cta_group_plugin.mps_trouble import MpsTrouble
from cta_group_plugin.ports import ComputeMode, MpsDemand, MpsState, whole_demand
from mps_supervising import ONE, TWO, Supervising, share, state_of
from simulated_mps import FAST, IMPATIENT_SECONDS, SimulatedNode, eventually, is_alive

PATIENT = replace(FAST, command_seconds=600.0, driver_seconds=600.0, sync_seconds=2.0)
"""Nothing that hangs ever counts as silent."""

States = dict[GpuUuid, MpsState]


class StuckModes(SimulatedComputeModes):
    """Compute modes of which one GPU's are not told while it is stuck."""

    def __init__(self, mps_root: Path) -> None:
        super().__init__(mps_root)
        self.answers = threading.Event()
        self.answers.set()

    def get(self, gpu: GpuUuid) -> ComputeMode:
        """Return the mode, for GPU-1 once it is not stuck any more."""
        if gpu == ONE:
            self.answers.wait()
        return super().get(gpu)


@contextmanager
def fault(node: SimulatedNode, name: str) -> Iterator[None]:
    """Give the daemon of GPU-1 a fault until the block ends."""
    node.fail(ONE, name)
    try:
        yield
    finally:
        node.fail(ONE)


def is_silent(reason: str) -> bool:
    """Tell whether a reason says that there was no answer; for how long is told in steps."""
    words = r"GPU GPU-1: its MPS daemon or the driver has not answered for more than \d+ s"
    return re.fullmatch(words, reason) is not None


async def until(supervisor: MpsSupervisor, is_so: Callable[[States], bool], *demands: MpsDemand) -> States:
    """Sync until the states are as they should be, and return them."""
    told: list[States] = []

    async def so() -> bool:
        told.append(await supervisor.sync(demands))
        return is_so(told[-1])

    try:
        await eventually(so, "the states are right")
    except AssertionError as error:
        error.add_note(f"last told: {told[-1:]}")
        raise
    return told[-1]


async def test_a_silent_daemon_delays_no_other(supervisors: Supervising, mps_node: SimulatedNode) -> None:
    """Before: both ready. During: the other is raised, the silent one is told as silent. After: both as demanded."""
    supervisor = await supervisors.start(PATIENT)
    await until(supervisor, lambda states: all(state.ready for state in states.values()), share(ONE), share(TWO))
    more = (share(ONE, sm_percent=50), share(TWO, sm_percent=75))
    with fault(mps_node, "no-answer"):
        states = await until(supervisor, lambda states: states[TWO].ready and states[TWO].sm_percent == 75, *more)
        assert not states[ONE].ready
        await until(supervisor, lambda states: is_silent(states[ONE].reason), *more)
    states = await until(supervisor, lambda states: states[ONE].ready, *more)
    assert states[ONE].sm_percent == 50


async def test_a_daemon_found_silent_keeps_no_supervisor_from_serving(
    supervisors: Supervising, mps_node: SimulatedNode
) -> None:
    """A supervisor that starts beside a daemon that does not answer serves the other GPU, and that one later."""
    first = await supervisors.start()
    assert (await state_of(first)).ready
    pid = mps_node.pid(ONE)
    with mps_node.client(ONE) as client:
        await first.stop()
        with fault(mps_node, "no-answer"):
            second = await supervisors.start(PATIENT)
            states = await until(second, lambda states: states[TWO].ready, share(ONE), share(TWO))
            assert not states[ONE].ready
        await until(second, lambda states: states[ONE].ready, share(ONE), share(TWO))
        assert mps_node.pid(ONE) == pid
        assert not client.is_dead()


async def test_a_driver_that_hangs_on_one_gpu_delays_no_other(
    supervisors: Supervising, mps_node: SimulatedNode
) -> None:
    """A call about the compute mode of one GPU does not come back; the other GPU is shared meanwhile."""
    modes = StuckModes(mps_node.root)
    supervisor = await supervisors.start(PATIENT, modes=modes)
    modes.answers.clear()
    try:
        states = await until(supervisor, lambda states: states[TWO].ready, share(ONE), share(TWO))
        assert not states[ONE].ready
        assert mps_node.pid(ONE) is None
    finally:
        modes.answers.set()
    await until(supervisor, lambda states: states[ONE].ready, share(ONE), share(TWO))


def file_for_its_folder(folder: Path) -> Path:
    """Put a file where the GPU's folder belongs."""
    folder.write_text("", encoding="ascii")
    return folder


def link_to_itself(folder: Path) -> Path:
    """Put a link there that leads nowhere."""
    folder.symlink_to(folder)
    return folder


def file_for_its_pipe(folder: Path) -> Path:
    """Put a file where the pipe folder belongs."""
    folder.mkdir()
    (folder / "pipe").write_text("", encoding="ascii")
    return folder / "pipe"


def folder_for_its_record(folder: Path) -> Path:
    """Put a folder where it is written down which process the daemon is."""
    (folder / "daemon.json").mkdir(parents=True)
    return folder / "daemon.json"


def folder_for_its_output(folder: Path) -> Path:
    """Put a folder where the daemon's output goes."""
    (folder / "log" / "daemon.out").mkdir(parents=True)
    return folder / "log" / "daemon.out"


@pytest.mark.parametrize(
    ("spoil", "is_found"),
    [
        (file_for_its_folder, False),
        (link_to_itself, False),
        (file_for_its_pipe, True),
        (folder_for_its_record, True),
        (folder_for_its_record, False),
        (folder_for_its_output, False),
    ],
)
async def test_a_bad_folder_concerns_its_gpu_only(
    supervisors: Supervising, mps_node: SimulatedNode, spoil: Callable[[Path], Path], *, is_found: bool
) -> None:
    """The GPU waits with the path in its reason, the other one serves, and a repair needs no restart.

    ``is_found``: the supervisor finds it so at its start.
    """
    folder = mps_node.root / ONE
    path = spoil(folder) if is_found else None
    supervisor = await supervisors.start()
    path = path or spoil(folder)
    states = await supervisor.sync([share(ONE), share(TWO)])
    assert states[TWO].ready
    assert not states[ONE].ready
    assert str(path) in states[ONE].reason
    path.rename(mps_node.root / "away")
    await until(supervisor, lambda states: states[ONE].ready, share(ONE), share(TWO))


@pytest.mark.parametrize("record", ["", "null", json.dumps({"pid": "x", "started_ticks": None})])
async def test_a_broken_record_of_a_daemon_costs_nobody_anything(
    supervisors: Supervising, mps_node: SimulatedNode, record: str
) -> None:
    """A daemon that runs with clients is taken over although nobody knows which process it is, and told so."""
    first = await supervisors.start()
    assert (await state_of(first)).ready
    pid = mps_node.pid(ONE)
    with mps_node.client(ONE) as client:
        await first.stop()
        (mps_node.root / ONE / "daemon.json").write_text(record, encoding="ascii")
        timing = replace(FAST, command_seconds=IMPATIENT_SECONDS, wedged_seconds=0.0, fault_seconds=0.0)
        second = await supervisors.start(timing)
        states = await second.sync([share(ONE), share(TWO)])
        assert (states[ONE].ready, states[TWO].ready) == (True, True)
        assert not client.is_dead()
        with fault(mps_node, "fault"):
            state = await state_of(second)
        assert f"{mps_node.root / ONE / 'daemon.json'} does not tell which process its daemon is" in state.reason
    assert mps_node.pid(ONE) == pid


async def test_a_daemon_that_does_not_end_is_killed_for_the_whole_tenant(
    supervisors: Supervising, mps_node: SimulatedNode
) -> None:
    """It was asked to, listens no more and has no client: the GPU is free for its one tenant after a while."""
    supervisor = await supervisors.start(replace(FAST, command_seconds=IMPATIENT_SECONDS, wedged_seconds=0.5))
    assert (await state_of(supervisor)).ready
    pid = mps_node.pid(ONE)
    assert pid is not None
    mps_node.fail(ONE, "stays")
    state = await state_of(supervisor, whole_demand(ONE))
    assert (state.ready, state.reason) == (False, "GPU GPU-1: its MPS daemon was asked to end and still runs")
    assert is_alive(pid)
    await until(supervisor, lambda states: states[ONE].ready, whole_demand(ONE))
    assert not is_alive(pid)


@pytest.mark.parametrize(("name", "trouble"), [("no-answer", MpsTrouble.SILENT), ("fault", MpsTrouble.FAULT)])
async def test_the_state_says_which_trouble_it_is(
    supervisors: Supervising, mps_node: SimulatedNode, name: str, trouble: MpsTrouble
) -> None:
    """Silence and FAULT are told apart in the state and in the metrics; a daemon that is well has neither."""
    supervisor = await supervisors.start(replace(FAST, command_seconds=IMPATIENT_SECONDS))
    assert (await state_of(supervisor)).trouble is None
    with mps_node.client(ONE), fault(mps_node, name):
        assert (await state_of(supervisor)).trouble is trouble
        assert supervisors.count("mps_daemon_trouble", trouble=trouble) == 1
    await until(supervisor, lambda states: states[ONE].ready, share(ONE))
    assert {supervisors.count("mps_daemon_trouble", trouble=each) for each in MpsTrouble} == {0}


async def test_a_daemon_is_not_told_as_ready_once_it_has_fallen_silent(
    supervisors: Supervising, mps_node: SimulatedNode
) -> None:
    """A container starts on that word, so what an older look found is not repeated while a look hangs."""
    supervisor = await supervisors.start(replace(PATIENT, sync_seconds=0.5, poll_seconds=600.0))
    await until(supervisor, lambda states: states[ONE].ready, share(ONE))
    with fault(mps_node, "no-answer"):
        for _ in range(3):
            assert not (await state_of(supervisor)).ready
    await until(supervisor, lambda states: states[ONE].ready, share(ONE))
