"""When CTANode is written, and when not."""

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from background import in_background
from cluster_harness.waiting import PATIENCE_SECONDS
from cta_group_core.health.inputs import XidSeen
from cta_group_plugin.errors import ApiUnavailable
from cta_group_plugin.metrics import Metrics
from cta_group_plugin.publish import Publisher
from cta_group_plugin.report import NodeReport
from cta_group_plugin.settings import EnforcementSettings
from cta_group_plugin.state import NodeState
from cta_group_plugin.status import status_of
from plugin_values import account, groups, node_of, offer, uuid_of
from virtual_time import run_in_virtual_time

STATUS = partial(status_of, resource_name="nvidia.com/cta-group", enforcement=EnforcementSettings())


class WatchedApi:
    """A NodeApi that is away while told so, and that a test can wait for."""

    def __init__(self) -> None:
        self.applied: list[NodeReport] = []
        self.attempts = 0
        self.is_away = False
        self.word = ""
        self._attempted = asyncio.Condition()

    async def apply(self, status: NodeReport) -> str:
        """Remember the status, or fail."""
        self.attempts += 1
        if not self.is_away:
            self.applied.append(status)
        async with self._attempted:
            self._attempted.notify_all()
        if self.is_away:
            raise ApiUnavailable("the API is away")
        return self.word

    async def close(self) -> None:
        """Nothing to release."""

    async def until_attempts(self, count: int) -> None:
        """Wait until so many writes were tried."""
        async with asyncio.timeout(PATIENCE_SECONDS), self._attempted:
            await self._attempted.wait_for(lambda: self.attempts >= count)


@pytest.fixture
def state() -> NodeState:
    """Return a node without pods whose driver has not answered."""
    state = NodeState()
    state.learn_account(account({}), asked_at=0.0)
    return state


@pytest.fixture
def api() -> WatchedApi:
    """Return an API that answers."""
    return WatchedApi()


def publisher(state: NodeState, api: WatchedApi, *, least_seconds: float = 0.02, confirm: float = 600) -> Publisher:
    """Return a publisher that writes often."""
    return Publisher(state, api, STATUS, Metrics("test"), least_seconds=least_seconds, confirm_seconds=confirm)


def test_nothing_is_written_before_the_driver_answered(state: NodeState) -> None:
    """An unknown node is not published as an empty one."""

    async def unknown_for_an_hour() -> None:
        api = WatchedApi()
        async with in_background(publisher(state, api).run):
            state.learn_registration("", "kubelet.sock is not there")
            await asyncio.sleep(3600)
            assert api.attempts == 0
            state.learn_devices(node_of(1), offer(1), {})
            await api.until_attempts(1)

    run_in_virtual_time(unknown_for_an_hour())


async def test_changes_are_gathered(state: NodeState, api: WatchedApi) -> None:
    """Sixteen grants within the least time between writes are one write, with the last of them."""
    state.learn_devices(node_of(1), offer(1), {})
    async with in_background(publisher(state, api, least_seconds=2.0).run):
        await api.until_attempts(1)
        for start in range(0, 128, 8):
            state.note_grant(groups(0, range(start, start + 8)))
            await asyncio.sleep(0)
        await api.until_attempts(2)
    assert [status.free for status in api.applied] == [128, 0]


def test_nothing_is_written_when_nothing_changed(state: NodeState) -> None:
    """A change that CTANode does not show causes no write."""
    state.learn_devices(node_of(1), offer(1), {})
    state.learn_registration("cta-group-1.sock")

    async def registered_again() -> int:
        api = WatchedApi()
        async with in_background(publisher(state, api, confirm=7200).run):
            await api.until_attempts(1)
            state.learn_registration("cta-group-2.sock")
            await asyncio.sleep(3600)
        return api.attempts

    assert run_in_virtual_time(registered_again()) == 1


async def test_api_that_is_away_only_delays(state: NodeState, api: WatchedApi) -> None:
    """The newest account is written once the API is back."""
    state.learn_devices(node_of(1), offer(1), {})
    api.is_away = True
    async with in_background(publisher(state, api, least_seconds=0.001).run):
        await api.until_attempts(3)
        state.note_grant(groups(0, range(32)))
        api.is_away = False
        await api.until_attempts(api.attempts + 1)
    assert [status.free for status in api.applied] == [96]


async def test_unchanged_account_is_confirmed_from_time_to_time(state: NodeState, api: WatchedApi) -> None:
    """An object that somebody deleted comes back without a change on the node."""
    state.learn_devices(node_of(1), offer(1), {})
    async with in_background(publisher(state, api, confirm=0.02).run):
        await api.until_attempts(3)
    assert len(set(api.applied)) == 1


async def test_what_does_not_change_is_confirmed_every_five_minutes(state: NodeState, api: WatchedApi) -> None:
    """The moment in it stays for five minutes, so that the API server writes nothing; clocks may jump."""
    now = [1_800_000_000.0]
    state.learn_devices(node_of(1), offer(1), {})
    made = Publisher(
        state, api, STATUS, Metrics("test"), least_seconds=0.001, confirm_seconds=0.01, wall_clock=lambda: now[0]
    )
    async with in_background(made.run):
        for moment in (now[0], now[0] + 299, now[0] + 300, now[0] - 1000):
            now[0] = moment
            await api.until_attempts(api.attempts + 2)
    moments = list(dict.fromkeys(status.confirmed_at for status in api.applied))
    assert moments == ["2027-01-15T08:00:00Z", "2027-01-15T08:05:00Z", "2027-01-15T07:43:20Z"]
    assert {replace(status, confirmed_at=None) for status in api.applied} == {
        replace(api.applied[0], confirmed_at=None)
    }


async def test_word_of_a_person_is_passed_on_and_asked_for_often_while_a_gpu_is_in_trouble(
    state: NodeState, api: WatchedApi
) -> None:
    """An unchanged account is applied again soon then, because the answer carries the word."""
    words: list[str] = []
    state.learn_devices(node_of(1), offer(1), {uuid_of(0): (XidSeen(79),)})
    made = Publisher(
        state, api, STATUS, Metrics("test"), least_seconds=0.001, trouble_seconds=0.01, on_word=words.append
    )
    async with in_background(made.run):
        await api.until_attempts(2)
        assert words == []
        api.word = "changed"
        await api.until_attempts(api.attempts + 2)
    assert set(words) == {"changed"}
