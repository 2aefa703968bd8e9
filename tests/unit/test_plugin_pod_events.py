"""Who is told what about a GPU in trouble, how often, and what happens when nobody listens."""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import pytest

from background import in_background
from cluster_harness.waiting import PATIENCE_SECONDS
from cta_group_core.health.inputs import FoundAgain, Lost, PollOk, Suspected, XidSeen
from cta_group_core.ids import GroupId
from cta_group_plugin.errors import ApiRefused, ApiUnavailable
from cta_group_plugin.inventory import offer_of
from cta_group_plugin.mps_trouble import MpsLoss
from cta_group_plugin.occupancy_view import Occupancy, Unlimited
from cta_group_plugin.pod_events import EventTeller, PodEvent
from cta_group_plugin.ports import MpsState
from cta_group_plugin.state import NodeState
from plugin_values import RESERVE_MIB, account, groups, node_of, pod, uuid_of

NEXT = ("c", "GPUUnhealthy")


@dataclass
class Listener:
    """An API that remembers what was written; a test can make it fail."""

    problem: Exception | None = None
    written: list[PodEvent] = field(default_factory=list)
    attempts: int = 0

    async def write(self, event: PodEvent) -> None:
        """Remember the event, or fail."""
        self.attempts += 1
        if self.problem:
            raise self.problem
        self.written.append(event)

    def told(self) -> list[tuple[str, str]]:
        """Return pod and reason of each event, in order."""
        return sorted((event.pod.name, event.reason) for event in self.written)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that the teller brings about."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():  # noqa: ASYNC110 - a fake tells nobody
                await asyncio.sleep(0.001)


@pytest.fixture
async def state() -> NodeState:
    """Return a node with two H100s; pods a and b hold groups of the first, c of the second."""
    state = NodeState(wall_clock=lambda: 1e9)
    state.learn_devices(node_of(2), offer_of(node_of(2), reserve_mib=RESERVE_MIB))
    held = {"a": groups(0, range(32)), "b": groups(0, range(32, 64)), "c": groups(1, range(32))}
    state.learn_account(account(held), asked_at=0.0)
    return state


def uid_of(ids: Collection[GroupId]) -> str | None:
    """Return a UID that tells which groups were asked about."""
    return f"uid-{min(group_id.number for group_id in ids)}"


async def until_the_next_is_told(state: NodeState, api: Listener) -> None:
    """Let the other GPU break, and wait until its pod is told: whatever there was to tell before is told by then."""
    state.observe({uuid_of(1): (XidSeen(48),)})
    await api.until(lambda: NEXT in api.told())


def teller(state: NodeState, api: Listener) -> EventTeller:
    """Return a teller in a hurry."""
    return EventTeller(state, api, uid_of, pause_seconds=0.0, retry_seconds=0.001, wall_clock=lambda: 1e9)


async def test_pods_of_a_broken_gpu_are_told_once(state: NodeState) -> None:
    """Each of its pods and no other, with the reason, however often the reason is seen again."""
    api = Listener()
    async with in_background(teller(state, api).run):
        state.observe({uuid_of(0): (XidSeen(79),)})
        await api.until(lambda: len(api.written) == 2)
        state.observe({uuid_of(0): (XidSeen(79), XidSeen(48))})
        state.observe({uuid_of(1): (Suspected("x"),)})
        await until_the_next_is_told(state, api)
    assert api.told() == [("a", "GPUUnhealthy"), ("b", "GPUUnhealthy"), NEXT]
    event = next(event for event in api.written if event.pod.name == "b")
    assert event.uid == "uid-32"
    assert "GPU 0 " in event.message
    assert "XID 79: the GPU fell off the PCIe bus" in event.message
    assert "left alone" in event.message


async def test_next_fault_of_a_gpu_is_told_again(state: NodeState) -> None:
    """It is another cause, since it began at another time."""
    api, now = Listener(), [1e9]
    state = NodeState(wall_clock=lambda: now[0])
    state.learn_devices(node_of(1), offer_of(node_of(1), reserve_mib=RESERVE_MIB))
    state.learn_account(account({"a": groups(0, range(32))}), asked_at=0.0)
    async with in_background(teller(state, api).run):
        state.observe({uuid_of(0): (Lost("bus"),)})
        await api.until(lambda: len(api.written) == 1)
        state.observe({uuid_of(0): (FoundAgain(), PollOk(), PollOk(), PollOk())})
        now[0] += 100
        state.observe({uuid_of(0): (Lost("bus"),)})
        await api.until(lambda: len(api.written) == 2)
    assert len({event.key for event in api.written}) == 2


async def test_pod_that_kubelet_lists_later_is_told_too(state: NodeState) -> None:
    """As one whose groups were handed out a moment before the fault."""
    api = Listener()
    async with in_background(teller(state, api).run):
        state.observe({uuid_of(1): (XidSeen(48),)})
        await api.until(lambda: len(api.written) == 1)
        state.learn_account(account({"c": groups(1, range(32)), "d": groups(1, range(32, 40))}), asked_at=state.now())
        await api.until(lambda: len(api.written) == 2)
    assert api.told() == [("c", "GPUUnhealthy"), ("d", "GPUUnhealthy")]


async def test_end_of_a_daemon_is_told_to_whom_it_hit(state: NodeState) -> None:
    """Those that held groups then; a pod that comes later has lost nothing."""
    api = Listener()
    lost = MpsState(ready=True, reason="", loss=MpsLoss(at=1e9, reason="it was killed", client_pids=(7,)))
    async with in_background(teller(state, api).run):
        state.learn_mps({uuid_of(0): lost, uuid_of(1): MpsState(ready=True, reason="")})
        await api.until(lambda: len(api.written) == 2)
        held = {"new": groups(0, range(64, 96)), "c": groups(1, range(32))}
        state.learn_account(account(held), asked_at=state.now())
        await until_the_next_is_told(state, api)
    assert api.told() == [("a", "MPSDaemonEnded"), ("b", "MPSDaemonEnded"), NEXT]
    assert "it was killed" in api.written[0].message
    assert "CUDA contexts" in api.written[0].message


async def test_who_runs_past_its_limits_is_told_once_for_each_container(state: NodeState) -> None:
    """Only the pod whose process it is, however many processes its container has; a new container is told anew."""
    api = Listener()
    first = [Unlimited(pid, "python3", pod("a"), "c1") for pid in (7, 8)]
    async with in_background(teller(state, api).run):
        state.learn_occupancy({uuid_of(0): Occupancy(unlimited=(*first, Unlimited(9, "sh", None, None)))})
        await api.until(lambda: len(api.written) == 1)
        state.learn_occupancy({uuid_of(0): Occupancy(unlimited=tuple(first))})
        state.learn_occupancy({uuid_of(0): Occupancy(unlimited=(Unlimited(70, "python3", pod("a"), "c2"),))})
        await api.until(lambda: len(api.written) == 2)
    assert api.told() == [("a", "LimitsNotInForce")] * 2
    assert "process 7 (python3) of pod team-a/a is no client of the GPU's MPS daemon" in api.written[0].message


async def test_end_of_a_daemon_long_ago_is_no_news(state: NodeState) -> None:
    """The supervisor tells its last one for ever; who runs now may not have been there."""
    api = Listener()
    old = MpsState(ready=True, reason="", loss=MpsLoss(at=1e9 - 3600, reason="killed", client_pids=(7,)))
    async with in_background(teller(state, api).run):
        state.learn_mps({uuid_of(0): old})
        state.observe({uuid_of(1): (XidSeen(48),)})
        await api.until(lambda: len(api.written) == 1)
    assert api.told() == [("c", "GPUUnhealthy")]


async def test_end_of_a_daemon_is_told_though_the_clock_was_set_back(state: NodeState) -> None:
    """By a year, between the start of this process and the end of the daemon."""
    api = Listener()
    well = MpsState(ready=True, reason="")
    lost = MpsState(ready=True, reason="", loss=MpsLoss(at=1e9 - 365 * 86400, reason="killed", client_pids=(7,)))
    async with in_background(teller(state, api).run):
        state.learn_mps({uuid_of(0): well})
        await asyncio.sleep(0)
        state.learn_mps({uuid_of(0): lost})
        await api.until(lambda: len(api.written) == 2)
    assert api.told() == [("a", "MPSDaemonEnded"), ("b", "MPSDaemonEnded")]


async def test_api_that_is_away_delays_the_news(state: NodeState) -> None:
    """Nothing is lost, and nothing is told twice."""
    api = Listener(problem=ApiUnavailable("away"))
    async with in_background(teller(state, api).run):
        state.observe({uuid_of(0): (XidSeen(79),)})
        await api.until(lambda: api.attempts > 3)
        api.problem = None
        await api.until(lambda: len(api.written) == 2)
        await until_the_next_is_told(state, api)
    assert api.told() == [("a", "GPUUnhealthy"), ("b", "GPUUnhealthy"), NEXT]


async def test_event_that_is_refused_is_given_up(state: NodeState) -> None:
    """A namespace that is going, most often; the other pods are told."""
    api = Listener(problem=ApiRefused("namespace is terminating"))
    async with in_background(teller(state, api).run):
        state.observe({uuid_of(0): (XidSeen(79),)})
        await api.until(lambda: api.attempts == 2)
        api.problem = None
        await until_the_next_is_told(state, api)
    assert api.attempts == 3
    assert api.told() == [NEXT]
