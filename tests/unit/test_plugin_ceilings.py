"""What is asked of the MPS supervisor, and when a container must wait."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from background import in_background, until_view
from cta_group_core.ids import GpuUuid
from cta_group_plugin.ceilings import CeilingKeeper, demands_of
from cta_group_plugin.errors import MpsUnavailable
from cta_group_plugin.ledger import Holder, HolderKind
from cta_group_plugin.ports import MpsDemand, MpsState, whole_demand
from cta_group_plugin.settings import EnforcementSettings
from cta_group_plugin.state import NodeState
from cta_group_plugin.testing import FakeMpsControl
from plugin_values import account, groups, node_of, offer, uuid_of


def node_with(count: int = 2) -> NodeState:
    """Return the state of a node with H100s and nothing held."""
    state = NodeState()
    state.learn_devices(node_of(count), offer(count), {})
    return state


def keeper(state: NodeState, control: FakeMpsControl, *, needs_account: bool = False) -> CeilingKeeper:
    """Return a keeper that does not wait."""
    return CeilingKeeper(state, control, EnforcementSettings(), needs_account=needs_account, patience_seconds=0.0)


@pytest.mark.parametrize(
    ("enforcement", "percent", "memory_mib"),
    [
        (EnforcementSettings(), 25, 19996),
        (EnforcementSettings(compute=False), 100, 19996),
        (EnforcementSettings(memory=False), 25, 0),
    ],
)
async def test_demand_is_the_largest_share(enforcement: EnforcementSettings, percent: int, memory_mib: int) -> None:
    """Of 8 and 32 groups on a GPU, 32 are demanded; a limit that is off is demanded as no limit."""
    state = node_with()
    state.learn_account(account({"a": groups(0, range(8)), "b": groups(0, range(32, 64))}), asked_at=0.0)
    assert demands_of(state.view, enforcement) == (MpsDemand(uuid_of(0), percent, memory_mib),)


async def test_nothing_is_demanded_without_enforcement() -> None:
    """With both limits off no daemon is wanted."""
    state = node_with()
    state.note_grant(groups(0, range(8)))
    assert demands_of(state.view, EnforcementSettings(compute=False, memory=False)) == ()


async def test_container_starts_once_its_limits_are_in_force() -> None:
    """The demand that the supervisor gets includes the share that is about to start."""
    state, control = node_with(), FakeMpsControl()
    state.note_start(groups(0, range(32)))
    gpu = state.view.offer.served[0]
    await keeper(state, control).prepare(gpu, gpu.slice_of(32))
    assert control.demanded == [(MpsDemand(uuid_of(0), 25, 19996),)]


async def test_container_waits_with_the_reason_of_the_daemon() -> None:
    """What the supervisor says of this GPU reaches the pod, with the GPU's index."""
    state, control = node_with(), FakeMpsControl()
    control.not_ready[uuid_of(0)] = "the daemon is starting"
    state.note_start(groups(0, range(8)))
    gpu = state.view.offer.served[0]
    with pytest.raises(MpsUnavailable, match=r"GPU 0 .*: the daemon is starting"):
        await keeper(state, control).prepare(gpu, gpu.slice_of(8))


async def test_container_waits_until_kubelet_told_who_holds_what() -> None:
    """The supervisor is not asked with an account that may leave a tenant out."""
    state, control = node_with(), FakeMpsControl()
    state.note_start(groups(0, range(8)))
    gpu = state.view.offer.served[0]
    with pytest.raises(MpsUnavailable, match=r"kubelet has not told yet"):
        await keeper(state, control, needs_account=True).prepare(gpu, gpu.slice_of(8))
    state.learn_account_problem("there is no /run/pod-resources/kubelet.sock")
    with pytest.raises(MpsUnavailable, match=r"kubelet has not told yet .*: there is no /run/pod-resources"):
        await keeper(state, control, needs_account=True).prepare(gpu, gpu.slice_of(8))
    assert control.demanded == []


async def test_daemon_that_is_no_longer_wanted_is_said_so() -> None:
    """When the last share of a GPU goes, the supervisor hears of it without another container starting."""
    state, control = node_with(), FakeMpsControl()
    state.learn_account(account({"a": groups(0, range(8))}), asked_at=0.0)
    async with in_background(keeper(state, control).run):
        await until_view(state, lambda view: view.mps)
        state.learn_account(account({}), asked_at=1.0)
        await until_view(state, lambda view: not view.mps)
    assert control.demanded[-1] == ()


class SlowControl(FakeMpsControl):
    """A supervisor whose every answer is let go by the test."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = asyncio.Event()
        self.asked = asyncio.Event()

    async def sync(self, demands: Sequence[MpsDemand], *, generation: int = 0) -> Mapping[GpuUuid, MpsState]:
        """Answer when the test says so."""
        answer = await super().sync(demands, generation=generation)
        self.asked.set()
        await self.let_go.wait()
        return answer


async def test_containers_that_wait_for_one_gpu_do_not_queue_before_those_of_another() -> None:
    """Twenty containers wait for a silent daemon: all of them, and one for the other GPU, share two questions."""
    state, control = node_with(), SlowControl()
    control.not_ready[uuid_of(1)] = "it does not answer"
    first, second = state.view.offer.served
    one = keeper(state, control)
    for number in range(16):
        state.note_start(groups(1, range(number * 8, number * 8 + 8)))
    waiting = [asyncio.create_task(one.prepare(second, second.slice_of(8))) for _ in range(16)]
    await control.asked.wait()
    state.note_start(groups(0, range(32)))
    ready = asyncio.create_task(one.prepare(first, first.slice_of(32)))
    await asyncio.sleep(0)
    control.let_go.set()
    await ready
    assert len(control.demanded) == 2
    assert uuid_of(0) in {demand.gpu for demand in control.demanded[-1]}
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(result, MpsUnavailable) for result in results)


async def test_who_gives_up_does_not_take_the_answer_from_the_others() -> None:
    """A start that kubelet cancels leaves the question to those who share it."""
    state, control = node_with(), SlowControl()
    (gpu, _) = state.view.offer.served
    state.note_start(groups(0, range(8)))
    one = keeper(state, control)
    cancelled, other = (asyncio.create_task(one.prepare(gpu, gpu.slice_of(8))) for _ in range(2))
    await control.asked.wait()
    cancelled.cancel()
    control.let_go.set()
    await other
    assert len(control.demanded) == 1


async def test_pod_with_a_part_and_the_whole_of_a_gpu_gets_what_its_turn_needs() -> None:
    """Its init container has 64 groups, its main container all 128: the daemon is there for the first one only."""
    state = node_with(1)
    init, main = groups(0, range(64)), groups(0, range(128))
    state.note_grant(init)
    state.note_grant(main)
    state.note_start(init)
    assert demands_of(state.view, EnforcementSettings()) == (MpsDemand(uuid_of(0), 49, 39992),)
    state.note_start(main)
    assert demands_of(state.view, EnforcementSettings()) == (whole_demand(uuid_of(0)),)


async def test_pod_with_the_whole_and_a_part_of_a_gpu_gets_what_its_turn_needs() -> None:
    """The other way round: no daemon is in the way of an init container that has the whole GPU."""
    state = node_with(1)
    init, main = groups(0, range(128)), groups(0, range(64))
    state.note_grant(init)
    state.note_grant(main)
    state.note_start(init)
    assert demands_of(state.view, EnforcementSettings()) == (whole_demand(uuid_of(0)),)
    state.note_start(main)
    assert demands_of(state.view, EnforcementSettings()) == (MpsDemand(uuid_of(0), 49, 39992),)


async def test_whole_gpu_is_whole_at_once_though_a_smaller_tenant_is_still_listed() -> None:
    """The pod with 8 groups has gone when kubelet gives all of its GPU away, and the next list is seconds off."""
    state = node_with(1)
    gone = Holder(HolderKind.DOUBTFUL, groups(0, range(64, 96)), frozenset({uuid_of(0)}))
    state.learn_account(account({"small": groups(0, range(8))}), asked_at=0.0, unlisted=[gone])
    state.note_grant(groups(0, range(128)))
    assert demands_of(state.view, EnforcementSettings()) == (whole_demand(uuid_of(0)),)
