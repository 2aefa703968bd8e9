"""One process of the plugin takes over from another, as in a rolling update that starts the new one first."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from background import in_background, until_view
from conditions import until
from cta_group_core.health.evidence import Epoch
from cta_group_core.health.inputs import Suspected
from cta_group_core.names import CONDITION_REGISTERED
from cta_group_plugin.answers import CdiRules
from cta_group_plugin.charge import ChargeKeeper
from cta_group_plugin.health_record import RecordKeeper
from cta_group_plugin.specifications import SpecificationKeeper
from cta_group_plugin.state import NodeState
from cta_group_plugin.testing import Ask, FakeGpuSource, FakeKubelet
from plugin_running import FakeNode, plugin_on, registered_plugin, short_folder
from plugin_values import RULES, account, node_of, offer, pod, uuid_of

RESOURCE = "example.com/a"


@pytest.fixture
async def node() -> AsyncIterator[FakeNode]:
    """Return a node with two H100s, as the process sees it that is there first."""
    with short_folder() as root:
        yield FakeNode.under(root, node_of(2))


def successor_on(node: FakeNode) -> FakeNode:
    """Return the same node as a second process sees it."""
    return FakeNode(node.root, FakeGpuSource(node_of(2)))


def said_registered(node: FakeNode) -> set[str]:
    """Return every status of the registration that this process has published."""
    return {one.status for told in node.api.applied for one in told.conditions if one.type == CONDITION_REGISTERED}


def is_second(kubelet: FakeKubelet) -> bool:
    """Tell whether a second registration has told its devices."""
    return len(kubelet.registered) == 2 and list(kubelet.devices.values()) == ["Healthy"] * 256


async def test_the_newer_process_takes_over_and_the_older_one_falls_silent(node: FakeNode) -> None:
    """The older one neither registers again, nor says that it stops; the newer one never says that it is not there."""
    after, older = successor_on(node), AsyncExitStack()
    async with node.kubelet() as kubelet:
        await older.enter_async_context(plugin_on(node, publish=True))
        await kubelet.until(lambda kubelet: bool(kubelet.devices))
        await until(lambda: "True" in said_registered(node))
        async with plugin_on(after, publish=True):
            await kubelet.until(is_second)
            await until(lambda: "True" in said_registered(after))
            told = len(node.api.applied)
            (held,) = await kubelet.admit(pod("a"), [Ask("main", 32)])
            await kubelet.start_container(held)
            await until(lambda: after.mps.generations[-1] > max(node.mps.generations))
            await older.aclose()
            (another,) = await kubelet.admit(pod("b"), [Ask("main", 32)])
            assert len({*held.ids, *another.ids}) == 64
            assert said_registered(after) == {"True"}
        assert len(kubelet.registered) == 2
    assert len(node.api.applied) == told


async def test_a_kubelet_that_drops_the_newer_process_with_the_older_one_gets_it_again(node: FakeNode) -> None:
    """Kubelet before 1.37 knows plugins by their resource only; that the older one still serves is not in the way."""
    older = AsyncExitStack()
    async with node.kubelet() as kubelet:
        await older.enter_async_context(plugin_on(node))
        await kubelet.until(lambda kubelet: bool(kubelet.devices))
        async with plugin_on(successor_on(node)):
            await kubelet.until(is_second)
            assert kubelet.endpoint
            await kubelet.endpoint.stop_listening()
            await kubelet.until(lambda kubelet: len(kubelet.registered) == 3 and "Healthy" in kubelet.devices.values())
            await older.aclose()
            assert len(kubelet.registered) == 3
            (held,) = await kubelet.admit(pod("a"), [Ask("main", 32)])
            assert len(held.ids) == 32


async def test_the_older_process_comes_back_when_the_newer_one_is_gone(node: FakeNode) -> None:
    """A new version that ends at once leaves the node served by the one that still runs."""
    async with registered_plugin(node) as kubelet:
        async with plugin_on(successor_on(node)):
            await kubelet.until(is_second)
        await kubelet.until(lambda kubelet: len(kubelet.registered) == 3 and "Healthy" in kubelet.devices.values())
        (held,) = await kubelet.admit(pod("a"), [Ask("main", 32)])
        assert len(held.ids) == 32


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a short folder for sockets."""
    with short_folder() as made:
        yield made


def listening(path: Path) -> socket.socket:
    """Return a socket that is served at ``path``, made at a later tick of the file system's clock than all before."""
    newest = max((other.stat().st_ctime_ns for other in path.parent.iterdir()), default=0)
    tick = path.with_suffix(".tick")
    while not tick.exists() or tick.stat().st_ctime_ns <= newest:
        tick.touch()
    tick.unlink()
    served = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    served.bind(str(path))
    served.listen()
    return served


def socket_of(process: str, folder: Path, resource: str = RESOURCE) -> Path:
    """Return where a process has its first socket."""
    return folder / f"{ChargeKeeper(NodeState(), folder, resource, process).own_begin_with}1.sock"


async def test_a_process_that_was_killed_is_not_in_charge(folder: Path) -> None:
    """Its socket file stays behind, and nobody listens there; then the one that is left counts anew."""
    state = NodeState(boot_clock=iter(range(1, 100)).__next__)
    own = socket_of("aaaa", folder)
    with listening(own):
        state.learn_registration(own.name)
        async with in_background(ChargeKeeper(state, folder, RESOURCE, "aaaa").run):
            with listening(socket_of("bbbb", folder)):
                await until_view(state, lambda view: view.other_in_charge)
                state.learn_account(account({}), asked_at=state.now())
                assert state.view.generation == 1
            await until_view(state, lambda view: not view.other_in_charge)
            state.learn_account(account({}), asked_at=state.now())
            assert state.view.generation == 2


async def test_a_process_that_is_not_registered_leaves_the_talking_to_the_one_that_is(folder: Path) -> None:
    """The one that comes second takes charge by its registration, not by being there."""
    state, own = NodeState(), socket_of("bbbb", folder)
    keeper = ChargeKeeper(state, folder, RESOURCE, "bbbb")
    with listening(socket_of("aaaa", folder)):
        assert keeper.look()
        assert state.view.other_in_charge
        with listening(own):
            state.learn_registration(own.name)
            assert not keeper.look()
            assert not state.view.other_in_charge


async def test_a_plugin_for_another_resource_takes_nothing_over(folder: Path) -> None:
    """Two releases may serve one node, each with a resource and GPUs of its own."""
    state, own = NodeState(), socket_of("aaaa", folder)
    with listening(own):
        state.learn_registration(own.name)
        with listening(socket_of("bbbb", folder, "example.com/b")):
            assert not ChargeKeeper(state, folder, RESOURCE, "aaaa").look()


def test_a_process_decides_over_mps_only_once_it_knows_what_was_given_out() -> None:
    """An account from before its registration may lack what the process of before gave out last."""
    state = NodeState(boot_clock=iter(range(1, 100)).__next__)
    asked_before = state.now()
    state.learn_registration("own.sock")
    state.learn_account(account({}), asked_at=asked_before)
    assert state.view.generation == 0
    state.learn_account(account({}), asked_at=state.now())
    assert state.view.generation == 1


def followed() -> NodeState:
    """Return the state of a process from which another one has taken over."""
    state = NodeState()
    state.learn_devices(node_of(1), offer(1))
    state.learn_registration("own.sock")
    state.learn_account(account({}), asked_at=state.now())
    state.learn_charge(other_in_charge=True)
    return state


class Written:
    """What both processes keep on the host: notes of whom it was, when this one writes."""

    def __init__(self, state: NodeState) -> None:
        self.whose: list[bool] = []
        self._state = state

    def keep(self, _specifications: Mapping[str, str]) -> None:
        """Take a specification."""
        self._note()

    def save(self, _text: str) -> None:
        """Take a record."""
        self._note()

    def load(self) -> None:
        """Return none."""

    def is_kept(self) -> bool:
        """Tell that nobody removes it."""
        return True

    def take_word(self) -> None:
        """Return none."""

    def _note(self) -> None:
        self.whose.append(not self._state.view.other_in_charge)


async def test_what_both_keep_on_the_host_is_the_newer_ones() -> None:
    """The older one, which may have other settings, writes neither CDI devices nor health, until it is alone again."""
    state = followed()
    written = Written(state)
    rules = CdiRules()
    specifications = SpecificationKeeper(state, written, RULES, rules)
    record = RecordKeeper(state, written, Epoch, look_seconds=0.01)
    async with in_background(specifications.run), in_background(record.run):
        state.observe({uuid_of(0): (Suspected("x"),)})
        for _ in range(50):  # both write through a thread, and would be done long before
            await asyncio.to_thread(state.now)
        state.learn_charge(other_in_charge=False)
        await until(lambda: len(written.whose) >= 2)
    assert all(written.whose)
