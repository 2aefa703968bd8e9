"""The node's account as CTANode shows it."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from cta_group_core.health.inputs import PollFailed, PollOk, Suspected, XidSeen
from cta_group_core.moments import rfc3339
from cta_group_plugin.inventory import offer_of
from cta_group_plugin.ledger import Holder, HolderKind
from cta_group_plugin.occupancy_view import Occupancy
from cta_group_plugin.ports import BrokenGpu, Inventory, MpsState
from cta_group_plugin.report import NodeReport
from cta_group_plugin.settings import EnforcementSettings
from cta_group_plugin.state import NodeState
from cta_group_plugin.status import status_of, with_times
from plugin_values import RESERVE_MIB, account, gpu, groups, inventory, node_of, uuid_of


def state_of(node: Inventory, clock: Callable[[], float] | None = None) -> NodeState:
    """Return the state of a node with this inventory, known to kubelet, with nothing held."""
    state = NodeState(clock or time.monotonic, wall_clock=lambda: 1e9)
    state.learn_account(account({}), asked_at=0.0)
    state.learn_devices(node, offer_of(node, reserve_mib=RESERVE_MIB))
    state.learn_registration("cta-group-1.sock")
    return state


ENFORCING = EnforcementSettings()


def status(state: NodeState, enforcement: EnforcementSettings = ENFORCING) -> NodeReport:
    """Return the status of a node."""
    return status_of(state.view, resource_name="nvidia.com/cta-group", enforcement=enforcement)


def condition(made: NodeReport, kind: str) -> tuple[str, str, str]:
    """Return status, reason and message of one condition."""
    found = next(condition for condition in made.conditions if condition.type == kind)
    return found.status, found.reason, found.message


async def test_empty_node() -> None:
    """Two H100s with nothing on them are 256 free groups."""
    state = state_of(node_of(2))
    state.learn_occupancy({uuid_of(0): Occupancy(), uuid_of(1): Occupancy()})
    made = status(state)
    assert (made.capacity, made.allocatable, made.free, made.largest_fit) == (256, 256, 256, 128)
    assert [each.status for each in made.conditions] == ["True"] * 6


async def test_nothing_is_free_before_kubelet_told_who_holds_what() -> None:
    """A plugin that was just started does not promise groups that a tenant may have."""
    state = NodeState()
    state.learn_devices(node_of(1), offer_of(node_of(1), reserve_mib=RESERVE_MIB))
    made = status(state)
    assert (made.capacity, made.allocatable, made.free, made.largest_fit) == (128, 128, 0, 0)
    state.learn_account(account({"a": groups(0, range(32))}), asked_at=0.0)
    assert status(state).free == 96


async def test_gpu_with_all_its_clients_promises_nothing() -> None:
    """Where two containers may share a GPU and do, its other groups are nobody's, and the GPU says why."""
    state = state_of(node_of(2))
    state.learn_account(account({"a": groups(0, range(8)), "b": groups(0, range(8, 16))}), asked_at=1.0)
    made = status_of(state.view, resource_name="r", enforcement=ENFORCING, max_clients=2)
    assert (made.gpus[0].free, made.gpus[0].largest_fit, made.gpus[1].free) == (0, 0, 128)
    assert made.gpus[0].notice == (
        "2 containers share it, and no more may: 112 groups stay free until one of them ends"
    )
    assert (made.free, made.allocatable) == (128, 256)
    roomy = status_of(state.view, resource_name="r", enforcement=ENFORCING, max_clients=3)
    assert (roomy.gpus[0].free, roomy.gpus[0].notice) == (112, None)


async def test_listed_container_is_an_allocation() -> None:
    """Namespace, pod, container, groups and memory of whoever kubelet lists."""
    state = state_of(node_of(1))
    state.learn_account(account({"a": groups(0, range(32))}), asked_at=1.0)
    (first,) = status(state).gpus
    (held,) = first.allocations
    assert (held.namespace, held.pod, held.container, held.groups, held.memory_mib) == (
        "team-a",
        "a",
        "main",
        32,
        19996,
    )
    assert (first.free, first.largest_fit) == (96, 96)


async def test_grant_takes_room_without_a_name() -> None:
    """Groups that were just handed out are not free, though nobody knows yet whose they are."""
    state = state_of(node_of(1))
    state.note_grant(groups(0, range(32)))
    (first,) = status(state).gpus
    assert (first.free, first.allocations) == (96, ())


async def test_groups_that_a_gpu_no_longer_has_do_not_count() -> None:
    """Ids beyond the capacity, remembered by kubelet from another driver, take no room."""
    state = state_of(node_of(1))
    state.learn_account(account({"a": groups(0, range(120, 136))}), asked_at=0.0)
    assert status(state).gpus[0].free == 120


async def test_unhealthy_gpu_offers_nothing_and_says_since_when() -> None:
    """Its groups count as capacity, not as allocatable."""
    state = state_of(node_of(2))
    state.observe({uuid_of(1): (XidSeen(48),)})
    made = status(state)
    assert (made.capacity, made.allocatable, made.free) == (256, 128, 128)
    assert made.gpus[1].health == "Unhealthy"
    assert made.gpus[1].health_reason
    assert made.gpus[1].health_reason.startswith("XID 48: a double-bit memory error")
    assert "nvidia-smi --gpu-reset" in made.gpus[1].health_reason
    assert made.gpus[1].health_since == "2001-09-09T01:46:40Z"
    truth, reason, told = condition(made, "GPUsHealthy")
    assert (truth, reason) == ("False", "GpuUnhealthy")
    assert told.startswith(f"{uuid_of(1)}: XID 48")


async def test_gpu_in_quarantine_is_told_apart_from_a_broken_one() -> None:
    """The condition names the worst that there is; a suspect GPU offers nothing either."""
    state = state_of(node_of(3))
    state.observe({uuid_of(0): (Suspected("it holds memory of an ended process"),)})
    assert condition(status(state), "GPUsHealthy")[:2] == ("False", "GpuSuspect")
    state.observe({uuid_of(1): (PollFailed("x"), PollFailed("x"))})
    made = status(state)
    assert condition(made, "GPUsHealthy")[:2] == ("False", "GpuUnhealthy")
    assert [each.health for each in made.gpus] == ["Suspect", "Unhealthy", "Healthy"]
    assert (made.allocatable, made.largest_fit) == (128, 128)
    state.observe({uuid_of(1): (PollOk(),)})
    made = status(state)
    assert made.gpus[1].health == "Recovering"
    assert made.gpus[1].health_reason == "it does not answer: x; that is over, 1 of 3 clean polls since"
    assert condition(made, "GPUsHealthy")[:2] == ("False", "GpuSuspect")


async def test_driver_that_fails_to_list_says_nothing_of_any_gpu() -> None:
    """Nothing is withdrawn, and the condition does not claim what nobody knows; the next good poll ends it."""
    state = state_of(node_of(1))
    state.learn_driver_trouble("Unknown Error")
    made = status(state)
    assert condition(made, "GPUsHealthy") == ("Unknown", "DriverDoesNotAnswer", "Unknown Error")
    assert made.allocatable == 128
    state.learn_devices(node_of(1), state.view.offer)
    assert condition(status(state), "GPUsHealthy")[0] == "True"


async def test_withdrawn_node_offers_nothing() -> None:
    """Once the driver is gone for good, no GPU is offered and the reason is the condition's."""
    state = state_of(node_of(2))
    state.withdraw("the driver was unloaded")
    made = status(state)
    assert (made.capacity, made.allocatable, made.gpus) == (0, 0, ())
    assert condition(made, "Compatible") == ("False", "NoDriver", "the driver was unloaded")


async def test_gpu_whose_daemon_is_away_takes_no_more_shares() -> None:
    """Only after a daemon had its time to start; the GPU itself stays healthy, and all is well once it answers."""
    now = [0.0]
    state = state_of(node_of(2), lambda: now[0])
    away = {uuid_of(0): MpsState(ready=False, reason="no answer within 2 s")}
    state.learn_mps(away)
    assert status(state).allocatable == 256
    now[0] = 5.0
    state.learn_mps(away)
    made = status(state)
    assert (made.allocatable, made.gpus[0].health, made.gpus[0].largest_fit) == (128, "MPSNotReady", 0)
    assert made.gpus[0].health_reason
    assert "no answer within 2 s" in made.gpus[0].health_reason
    assert condition(made, "GPUsHealthy")[0] == "True"
    assert condition(made, "MPSReady")[0] == "False"
    state.learn_mps({uuid_of(0): MpsState(ready=True, reason="")})
    assert status(state).allocatable == 256


async def test_daemon_that_nobody_needs_is_no_trouble() -> None:
    """When the last share of a GPU ends while its daemon is away, the GPU can be handed out again."""
    now = [0.0]
    state = state_of(node_of(1), lambda: now[0])
    for now[0] in (0.0, 60.0):
        state.learn_mps({uuid_of(0): MpsState(ready=False, reason="away")})
    assert status(state).allocatable == 0
    state.learn_mps({})
    assert status(state).allocatable == 128


async def test_notices_stand_on_the_gpu_and_in_the_condition() -> None:
    """MIG that waits for a reset and an XID worth telling take nothing out of service."""
    state = state_of(inventory(replace(gpu(0), mig_pending=True), gpu(1)))
    state.observe({uuid_of(1): (XidSeen(63),)})
    made = status(state)
    assert made.allocatable == 256
    assert made.gpus[0].notice
    assert made.gpus[0].notice.startswith("MIG will be on")
    assert made.gpus[1].notice == "XID 63: rows of memory are set aside at the next reset of the GPU"
    truth, _, told = condition(made, "Compatible")
    assert truth == "True"
    assert "GPU 0: MIG will be on" in told


async def test_withheld_gpu_says_why() -> None:
    """A GPU in MIG mode is listed without capacity, and the node says that it is not fully usable."""
    made = status(state_of(inventory(gpu(0), replace(gpu(1), mig_enabled=True))))
    assert made.capacity == 128
    assert made.gpus[1].withheld
    assert "MIG" in made.gpus[1].withheld
    assert condition(made, "Compatible")[:2] == ("False", "GpuWithheld")


async def test_gpu_that_never_answered_is_listed() -> None:
    """A GPU whose UUID nobody knows is shown by its index, with the driver's words."""
    made = status(state_of(replace(node_of(1), broken=(BrokenGpu(1, None, "GPU requires reset"),))))
    assert [each.index for each in made.gpus] == [0, 1]
    assert made.gpus[1].withheld
    assert "GPU requires reset" in made.gpus[1].withheld


async def test_node_without_gpu() -> None:
    """It is compatible, has nothing to register, and says both."""
    made = status(state_of(inventory()))
    assert condition(made, "Compatible")[:2] == ("True", "NoGpu")
    assert made.capacity == 0


async def test_node_without_driver() -> None:
    """The sentence of the driver's absence is the condition's."""
    state = NodeState()
    state.learn_driver_problem("libnvidia-ml.so.1 is not here")
    assert condition(status(state), "Compatible") == ("False", "NoDriver", "libnvidia-ml.so.1 is not here")
    assert condition(status(state), "Registered")[:2] == ("False", "NothingToOffer")


async def test_daemon_that_is_not_ready() -> None:
    """The condition names the GPU and the daemon's reason; without enforcement nothing is claimed."""
    state = state_of(node_of(1))
    state.learn_mps({uuid_of(0): MpsState(ready=False, reason="no answer within 2 s")})
    assert condition(status(state), "MPSReady") == ("False", "NotReady", f"{uuid_of(0)}: no answer within 2 s")
    off = EnforcementSettings(compute=False, memory=False)
    assert condition(status(state, off), "MPSReady")[0] == "Unknown"


@pytest.mark.parametrize("simulated", [True, False])
async def test_simulated_gpus_say_so(simulated: bool) -> None:  # noqa: FBT001 - a table
    """The status carries what the source said of itself."""
    assert status(state_of(replace(node_of(1), simulated=simulated))).simulated is simulated


async def test_condition_keeps_its_time_until_its_status_changes() -> None:
    """A new message does not move the time; a new status does."""
    state = state_of(node_of(1))
    first = with_times(status(state), None, now=1e9)
    state.learn_account(account({"a": groups(0, range(8))}), asked_at=0.0)
    second = with_times(status(state), first, now=2e9)
    assert {each.last_transition_time for each in second.conditions} == {rfc3339(1e9)}
    state.learn_registration("", "kubelet.sock was removed")
    third = with_times(status(state), second, now=3e9)
    moved = {each.type for each in third.conditions if each.last_transition_time == rfc3339(3e9)}
    assert moved == {"Registered"}
    assert next(each for each in third.conditions if each.type == "Registered").status == "False"


async def test_groups_of_an_init_container_that_is_not_listed_are_not_free() -> None:
    """The kubelet's record has 64 groups for a pod of which 8 are listed; one of a pod that may be gone is free."""
    state = state_of(node_of(1))
    rest = Holder(HolderKind.REST, groups(0, range(64)), frozenset({uuid_of(0)}))
    doubtful = Holder(HolderKind.DOUBTFUL, groups(0, range(96, 128)), frozenset({uuid_of(0)}))
    state.learn_account(account({"a": groups(0, range(8))}), asked_at=1.0, unlisted=[rest, doubtful])
    assert [(gpu.free, gpu.largest_fit) for gpu in status(state).gpus] == [(64, 64)]
