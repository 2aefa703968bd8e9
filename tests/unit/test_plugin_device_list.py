"""What kubelet is told of GPUs that are out, and of those that are only held back."""

import asyncio
from collections import Counter

import pytest

from cta_group_core.health.inputs import PollOk, Suspected, XidSeen
from cta_group_core.ids import GroupId
from cta_group_plugin.device_list import device_list, devices_after
from cta_group_plugin.inventory import offer_of
from cta_group_plugin.ports import MpsState
from cta_group_plugin.state import NodeState
from plugin_values import RESERVE_MIB, account, groups, node_of, uuid_of


@pytest.fixture
async def state() -> NodeState:
    """Return a node with two H100s; a pod has 32 groups of the first."""
    state = NodeState(clock=lambda: 0.0, wall_clock=lambda: 1e9)
    state.learn_devices(node_of(2), offer_of(node_of(2), reserve_mib=RESERVE_MIB))
    state.learn_account(account({"a": groups(0, range(32))}), asked_at=0.0)
    return state


def healthy(state: NodeState, *, is_readmitting: bool = False) -> Counter[int]:
    """Return how many groups of each GPU kubelet may give out or keep, by the GPU's index."""
    told = device_list(state.view, is_readmitting=is_readmitting)
    assert told.keys() == state.view.offer.ids.keys()
    ids = [GroupId.parse(text) for text, health in told.items() if health == "Healthy"]
    return Counter({uuid_of(0): 0, uuid_of(1): 1}[group.gpu] for group in ids)


async def test_all_groups_of_healthy_gpus_are_healthy(state: NodeState) -> None:
    """Whether held or not."""
    assert healthy(state) == {0: 128, 1: 128}


async def test_broken_gpu_has_no_healthy_group(state: NodeState) -> None:
    """Every group of it, held ones too, and none of its neighbour; kubelet's re-admission changes nothing."""
    state.observe({uuid_of(0): (XidSeen(79),)})
    assert healthy(state) == {1: 128}
    assert healthy(state, is_readmitting=True) == {1: 128}


async def test_gpu_that_is_held_back_keeps_what_its_pods_hold(state: NodeState) -> None:
    """A kubelet that restarts would fail its waiting and crashing pods otherwise; nothing new can come."""
    state.observe({uuid_of(0): (Suspected("x"),), uuid_of(1): (Suspected("x"),)})
    assert healthy(state) == {0: 32}


async def test_gpu_without_its_daemon_keeps_what_its_pods_hold() -> None:
    """The same when only MPS is away."""
    now = [0.0]
    state = NodeState(clock=lambda: now[0])
    state.learn_devices(node_of(1), offer_of(node_of(1), reserve_mib=RESERVE_MIB))
    state.learn_account(account({"a": groups(0, range(32))}), asked_at=0.0)
    for now[0] in (0.0, 60.0):
        state.learn_mps({uuid_of(0): MpsState(ready=False, reason="away")})
    assert healthy(state) == {0: 32}


async def test_while_kubelet_admits_its_pods_again_nothing_held_back_is_shown(state: NodeState) -> None:
    """Nobody may know yet who holds what then, and what holds new work back is no reason to fail old work."""
    state.observe({uuid_of(1): (Suspected("x"),)})
    assert healthy(state, is_readmitting=True) == {0: 128, 1: 128}


async def test_before_anybody_told_who_holds_what_nothing_held_back_is_shown() -> None:
    """A process that was just started does not know whose pods it would fail."""
    state = NodeState()
    state.learn_devices(node_of(1), offer_of(node_of(1), reserve_mib=RESERVE_MIB))
    state.observe({uuid_of(0): (Suspected("x"),)})
    assert healthy(state) == {0: 128}
    state.learn_account(account({}), asked_at=state.now())
    assert healthy(state) == {}


async def test_waiting_for_other_devices_ends_with_a_change_of_them(state: NodeState) -> None:
    """What changes no device wakes nobody: the reason of a fault, a tenant of a healthy GPU."""
    waiting = asyncio.create_task(devices_after(state, state.view, None))
    await asyncio.sleep(0)
    state.learn_account(account({"a": groups(0, range(64))}), asked_at=1.0)
    state.observe({uuid_of(1): (PollOk(),)})
    await asyncio.sleep(0)
    assert not waiting.done()
    state.observe({uuid_of(1): (XidSeen(79),)})
    assert (await waiting).faults.keys() == {uuid_of(1)}


async def test_waiting_for_other_devices_has_a_limit(state: NodeState) -> None:
    """The devices of a new registration are looked at again once kubelet's pods are back."""
    assert await devices_after(state, state.view, 0.01) is state.view
