"""The account of who is on the GPUs of a node: whose process, which pod by name, and what is dropped."""

import asyncio
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from cluster_harness.waiting import PATIENCE_SECONDS
from cta_group_core.ids import GpuUuid
from cta_group_plugin.driver_threads import Asker
from cta_group_plugin.errors import DriverError
from cta_group_plugin.inventory import offer_of
from cta_group_plugin.mps_trouble import MpsLoss
from cta_group_plugin.occupancy_keeper import OccupancyKeeper
from cta_group_plugin.occupancy_view import Occupancy
from cta_group_plugin.occupants import GpuLook
from cta_group_plugin.ports import MpsState, PodDevices
from cta_group_plugin.settings import EnforcementSettings
from cta_group_plugin.state import NodeState
from gpu_looks import Program, held, look
from plugin_values import RESERVE_MIB, account, groups, node_of, pod, uuid_of
from virtual_time import run_in_virtual_time

GPU, OTHER_GPU = uuid_of(0), uuid_of(1)
POD = "11111111-1111-4111-8111-111111111111"
RECORD = (held(POD, groups(0, range(32))),)
STRAY = Program(8, 900, pod_uid=POD)
READY = MpsState(ready=True, reason="")


def nobody_asks(_gpu: GpuUuid) -> GpuLook:
    """Stand for a driver that these tests never ask."""
    raise DriverError("not asked")


def keeper_of(state: NodeState) -> OccupancyKeeper:
    """Return the keeper of a node with two H100s, on the first of which pod a has a quarter."""
    node = node_of(2)
    state.learn_devices(node, offer_of(node, reserve_mib=RESERVE_MIB))
    state.learn_account(account({"a": groups(0, range(32))}), asked_at=0.0)
    state.learn_mps({GPU: READY}, asked_at=1e9)
    return OccupancyKeeper(state, nobody_asks, Asker(), EnforcementSettings(), late_seconds=60, patience_seconds=0)


def after(*looks: Mapping[GpuUuid, GpuLook], mps: MpsState = READY) -> Occupancy:
    """Return what is told of the first GPU after these looks."""
    state = NodeState()
    keeper = keeper_of(state)
    state.learn_mps({GPU: mps}, asked_at=1e9)
    for each in looks:
        keeper.learn(each)
    return state.view.occupancy[GPU]


def twice(*programs: Program, pods: tuple[PodDevices, ...] | None = RECORD) -> list[Mapping[GpuUuid, GpuLook]]:
    """Return two looks at the first GPU, far enough from each other."""
    return [{GPU: look(at, *programs, pods=pods)} for at in (0.0, 10.0)]


async def test_a_process_is_told_with_the_name_of_its_pod() -> None:
    """Kubelet's record has the UID and its List the name; the groups are what they have in common."""
    (told,) = after(*twice(STRAY)).unlimited
    assert (told.pid, told.pod, told.container_id) == (8, pod("a"), "c" * 64)


async def test_a_pod_whose_name_nobody_knows_is_told_without_one() -> None:
    """As one that only the record still has."""
    (told,) = after(*twice(STRAY, pods=(held(POD, groups(0, range(64, 96))),))).unlimited
    assert told.pod is None
    assert "of a pod that holds groups" in told.words


async def test_who_died_with_its_daemon_is_not_accused() -> None:
    """Its pod was told of that, and the process may take a while to end."""
    lost = MpsState(ready=True, reason="", loss=MpsLoss(at=1.0, reason="killed", client_pids=(8,)))
    assert after(*twice(STRAY), mps=lost).unlimited == ()


async def test_a_daemon_that_names_clients_by_other_ids_accuses_nobody() -> None:
    """An id of 0 is of a process that the daemon cannot see, so its list tells nothing of those that are seen here."""
    blind = MpsState(ready=True, reason="", client_pids=(0,))
    told = after(*twice(Program(8, 900, pod_uid=POD, in_mps=True)), mps=blind)
    assert told.unlimited == ()
    assert told.problem


async def test_groups_of_another_gpu_do_not_make_a_tenant() -> None:
    """A pod that holds a part of one GPU is foreign on the next."""
    told = after(*twice(STRAY, pods=(held(POD, groups(1, range(32))),)))
    assert ([one.pid for one in told.foreign], told.foreign_mib) == ([8], 960)


async def test_ids_that_nobody_understands_are_of_nobody() -> None:
    """Another plugin gave them out under our name before."""
    assert after(*twice(STRAY, pods=(held(POD, ["nonsense"]),))).unlimited == ()


async def test_an_older_look_changes_nothing() -> None:
    """One that a container start asked for may come back after that of a poll which began later."""
    newer, older = {GPU: look(10, STRAY, pods=RECORD)}, {GPU: look(0, pods=RECORD)}
    told = after({GPU: look(0, STRAY, pods=RECORD)}, newer, older)
    assert [one.pid for one in told.unlimited] == [8]


async def test_a_gpu_that_is_gone_is_told_of_no_more() -> None:
    """So its series end with it; nothing of it is remembered when it comes back."""
    state = NodeState()
    keeper = keeper_of(state)
    for each in twice(STRAY):
        keeper.learn({**each, OTHER_GPU: look(each[GPU].at, Program(9, 600))})
    assert [len(state.view.occupancy[gpu].foreign) for gpu in (GPU, OTHER_GPU)] == [0, 1]
    one = node_of(1)
    state.learn_devices(one, offer_of(one, reserve_mib=RESERVE_MIB))
    keeper.learn({GPU: look(20, STRAY, pods=RECORD)})
    assert set(state.view.occupancy) == {GPU}
    both = node_of(2)
    state.learn_devices(both, offer_of(both, reserve_mib=RESERVE_MIB))
    keeper.learn({OTHER_GPU: look(30, Program(9, 600))})
    assert state.view.occupancy[OTHER_GPU].foreign == ()


async def test_a_gpu_is_looked_at_a_moment_after_a_start() -> None:
    """So that it is known of an engine that ends before the next poll; starts of one moment need one look."""
    state = NodeState()
    keeper_of(state)
    asked: list[GpuUuid] = []
    seen = asyncio.Event()

    def look_at(gpu: GpuUuid) -> GpuLook:
        asked.append(gpu)
        if len(asked) == 4:
            loop.call_soon_threadsafe(seen.set)
        return look(len(asked), pods=RECORD)

    loop, asker = asyncio.get_running_loop(), Asker()
    limits = EnforcementSettings()
    keeper = OccupancyKeeper(state, look_at, asker, limits, late_seconds=60, patience_seconds=0, see_start_seconds=0.2)
    gpus = state.view.offer.served
    for _ in range(3):
        await keeper.until_memory_is_back(gpus[:1], since=0.0)
    assert asked == [GPU] * 3
    async with asyncio.timeout(PATIENCE_SECONDS):
        await seen.wait()
    keeper.end()
    asker.end()


async def test_without_a_look_nothing_is_late() -> None:
    """A container may start on a GPU that was never looked at, and on one whose driver does not answer."""
    state = NodeState()
    keeper = keeper_of(state)
    gpus = state.view.offer.served
    assert keeper.problem_of(gpus[0]) == ""
    await keeper.until_memory_is_back(gpus, since=0.0)


class HangingAsker(Asker):
    """Asks a driver that never answers."""

    async def ask(self, about: Hashable, call: Callable[[], Any]) -> Any:
        """Wait for ever."""
        del about, call
        await asyncio.Event().wait()


def test_a_driver_that_hangs_holds_a_start_on_eight_gpus_up_once() -> None:
    """Not once for each GPU: kubelet gives a start up after half a minute, and the daemon's part comes before this."""

    async def start() -> float:
        state, node = NodeState(), node_of(8)
        state.learn_devices(node, offer_of(node, reserve_mib=RESERVE_MIB))
        limits = EnforcementSettings()
        keeper = OccupancyKeeper(state, nobody_asks, HangingAsker(), limits, late_seconds=60, patience_seconds=0)
        await keeper.until_memory_is_back(state.view.offer.served, since=0.0)
        keeper.end()
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(start()) == 2.0
