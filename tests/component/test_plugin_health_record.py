"""The health of the GPUs over a restart of the process, and what proves that one was repaired."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cluster_harness.waiting import PATIENCE_SECONDS
from cta_group_core.health.evidence import Epoch
from cta_group_core.health.inputs import PollOk, XidSeen
from cta_group_core.health.state import Phase
from cta_group_plugin.adapters.state_folder import RECORD, REPAIRED, StateFolder, host_marks
from cta_group_plugin.health_record import RecordKeeper
from cta_group_plugin.state import NodeState
from plugin_values import uuid_of

A, B = uuid_of(0), uuid_of(1)
MONDAY = Epoch(boot_id="b1", driver_load="d1")


class Node:
    """A node that keeps its folder over many processes; what is so now can be changed at any time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.marks = MONDAY
        self.failures = 0
        self.text_at_failure = ""

    @asynccontextmanager
    async def process(self) -> AsyncIterator[tuple[NodeState, RecordKeeper]]:
        """Run a process that has recalled what it can, and keeps it on."""
        state = NodeState(wall_clock=lambda: 1e9)
        keeper = RecordKeeper(
            state, StateFolder(self.folder), lambda: self.marks, look_seconds=0.01, on_failure=self._fail
        )
        keeper.recall()
        running = asyncio.create_task(keeper.run())
        try:
            yield state, keeper
        finally:
            running.cancel()
            await asyncio.wait([running])

    async def until_written(self, words: str) -> None:
        """Wait until the record has these words."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while words not in self.text():  # noqa: ASYNC110 - a file tells nobody
                await asyncio.sleep(0.01)

    def text(self) -> str:
        """Return the record, empty when there is none."""
        try:
            return (self.folder / RECORD).read_text(errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            return ""

    def _fail(self) -> None:
        self.failures += 1
        self.text_at_failure = self.text()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """Return a node whose folder is not there yet."""
    return Node(tmp_path / "state")


async def phase_of(state: NodeState, phase: Phase | None) -> None:
    """Wait until the first GPU is in a phase; ``None``: healthy."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        view = state.view
        while (view.faults[A].phase if A in view.faults else None) is not phase:
            view = await state.change_after(view)


async def broken(node: Node) -> None:
    """Let a process learn of a fatal error and end."""
    async with node.process() as (state, _):
        state.observe({A: (XidSeen(79),), B: (PollOk(),)})
        await node.until_written("XID 79")


async def test_broken_gpu_is_still_broken_in_the_next_process(node: Node) -> None:
    """Answers alone do not heal it, and nothing is said of the others."""
    await broken(node)
    async with node.process() as (state, _):
        assert {uuid: fault.phase for uuid, fault in state.view.faults.items()} == {A: Phase.UNHEALTHY}
        assert state.view.faults[A].since == 1e9
        state.observe({A: (PollOk(), PollOk(), PollOk(), PollOk())})
        assert state.view.faults[A].phase is Phase.UNHEALTHY


async def test_new_boot_of_the_node_is_a_repair(node: Node) -> None:
    """The GPU recovers after the boot, is healthy after its clean polls, and the record says so."""
    await broken(node)
    node.marks = Epoch(boot_id="b2", driver_load="d2")
    async with node.process() as (state, _):
        assert state.view.faults[A].phase is Phase.RECOVERING
        state.observe({A: (PollOk(), PollOk(), PollOk())})
        assert not state.view.faults
        await node.until_written('"healed_at": 1000000000.0')


async def test_new_load_of_the_driver_is_less_than_a_boot(node: Node) -> None:
    """XID 79 needs the node to be started anew; XID 48 only the GPU."""
    async with node.process() as (state, _):
        state.observe({A: (XidSeen(79),), B: (XidSeen(48),)})
        await node.until_written("XID 48")
        node.marks = Epoch(boot_id="b1", driver_load="d2")
        async with asyncio.timeout(PATIENCE_SECONDS):
            view = state.view
            while view.faults[B].phase is not Phase.RECOVERING:
                view = await state.change_after(view)
        assert view.faults[A].phase is Phase.UNHEALTHY


async def test_mark_that_cannot_be_read_for_a_while_proves_nothing(node: Node) -> None:
    """A driver that is unloaded and the same marks again afterwards are no repair."""
    await broken(node)
    node.marks = Epoch()
    async with node.process() as (state, _):
        assert state.view.faults[A].phase is Phase.UNHEALTHY
    node.marks = MONDAY
    async with node.process() as (state, _):
        assert state.view.faults[A].phase is Phase.UNHEALTHY


@pytest.mark.parametrize(("word", "phase"), [("", Phase.RECOVERING), (f"changed {A}", Phase.RECOVERING), (B, None)])
async def test_person_leaves_a_file(node: Node, word: str, phase: Phase | None) -> None:
    """The file is taken once; it means the GPUs that it names, or all."""
    await broken(node)
    async with node.process() as (state, _):
        (node.folder / REPAIRED).write_text(word)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (node.folder / REPAIRED).exists():  # noqa: ASYNC110 - a file tells nobody
                await asyncio.sleep(0.01)
        await phase_of(state, phase or Phase.UNHEALTHY)


async def test_word_on_the_nodes_object_counts_once(node: Node) -> None:
    """The same word is no news, in this process and in the next; another one is."""
    await broken(node)
    async with node.process() as (state, keeper):
        keeper.learn_word("monday")
        assert state.view.faults[A].phase is Phase.RECOVERING
        state.observe({A: (XidSeen(79),)})
        keeper.learn_word("monday")
        assert state.view.faults[A].phase is Phase.UNHEALTHY
        await node.until_written("monday")
    async with node.process() as (state, keeper):
        keeper.learn_word("monday")
        assert state.view.faults[A].phase is Phase.UNHEALTHY
        keeper.learn_word("tuesday")
        assert state.view.faults[A].phase is Phase.RECOVERING


@pytest.mark.parametrize("text", ["", "{", '{"format": 2}', "\xff"])
async def test_record_that_cannot_be_read_is_begun_anew(node: Node, text: str) -> None:
    """A damaged record costs the memory and nothing else; it is counted."""
    node.folder.mkdir()
    (node.folder / RECORD).write_bytes(text.encode("latin-1"))
    async with node.process() as (state, _):
        assert node.failures == 1
        assert not state.view.faults
        state.observe({A: (XidSeen(48),)})
        await node.until_written("XID 48")


async def test_folder_that_cannot_be_written_costs_only_the_memory(node: Node) -> None:
    """As on a full disk: the health is followed on, the failure counted, and all is written once it can be."""
    node.folder.parent.joinpath("state").write_text("in the way")
    async with node.process() as (state, _):
        state.observe({A: (XidSeen(48),)})
        async with asyncio.timeout(PATIENCE_SECONDS):
            while node.failures < 2:  # noqa: ASYNC110 - the thread that writes tells nobody
                await asyncio.sleep(0.01)
        assert state.view.faults[A].phase is Phase.UNHEALTHY
        node.folder.unlink()
        await node.until_written("XID 48")


async def test_record_that_somebody_removes_is_written_again(node: Node) -> None:
    """Nothing has changed since, and the next process must not take a broken GPU for a healthy one all the same."""
    async with node.process() as (state, _):
        state.observe({A: (XidSeen(79),)})
        await node.until_written("XID 79")
        node.folder.rename(node.folder.with_name("gone"))
        await node.until_written("XID 79")


async def test_full_disk_leaves_the_old_record(node: Node) -> None:
    """A record that cannot be written whole never takes the place of the one before."""
    await broken(node)
    before = node.text()
    full = node.folder / f"{RECORD}.new"
    full.symlink_to("/dev/full")
    async with node.process() as (state, _):
        state.observe({B: (XidSeen(48),)})
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not node.failures:  # noqa: ASYNC110 - the thread that writes tells nobody
                await asyncio.sleep(0.01)
        assert node.text_at_failure == before
        await node.until_written("XID 48")


def test_marks_of_a_host(tmp_path: Path) -> None:
    """The boot id, and a module of the driver that is another one after each load."""
    boot = tmp_path / "proc/sys/kernel/random/boot_id"
    boot.parent.mkdir(parents=True)
    boot.write_text("7f1c\n")
    assert host_marks(tmp_path / "proc", tmp_path / "sys") == Epoch(boot_id="7f1c")
    module = tmp_path / "sys/module/nvidia"
    module.mkdir(parents=True)
    (module / "version").write_text("580.95.05\n")
    first = host_marks(tmp_path / "proc", tmp_path / "sys").driver_load
    os.utime(module, (1, 1))
    assert host_marks(tmp_path / "proc", tmp_path / "sys").driver_load == first
    module.rename(tmp_path / "unloaded")
    module.mkdir()
    (module / "version").write_text("580.95.05\n")
    assert host_marks(tmp_path / "proc", tmp_path / "sys").driver_load not in {None, first}
