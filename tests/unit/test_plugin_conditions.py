"""What the plugin says of kubelet's account, and of who is on its GPUs, as conditions of its node."""

from dataclasses import replace

import pytest

from cta_group_core.names import CONDITION_CLIENTS_LIMITED, CONDITION_HOLDERS_KNOWN
from cta_group_plugin.conditions import conditions_of
from cta_group_plugin.inventory import offer_of
from cta_group_plugin.occupancy_view import Occupancy, Unlimited
from cta_group_plugin.settings import EnforcementSettings
from cta_group_plugin.state import NodeState
from plugin_values import RESERVE_MIB, account, node_of, pod, uuid_of

STRAY = Occupancy(unlimited=(Unlimited(8, "python3", pod("a"), "c1"),))
BLIND = Occupancy(problem="nobody can see it")


def condition(state: NodeState, kind: str = CONDITION_HOLDERS_KNOWN, *, limited: bool = True) -> tuple[str, str, str]:
    """Return status, reason and message."""
    enforcement = EnforcementSettings(compute=limited, memory=limited)
    found = next(one for one in conditions_of(state.view, enforcement) if one.type == kind)
    return found.status, found.reason, found.message


async def test_an_account_that_kubelet_does_not_give_is_a_condition() -> None:
    """The path that was looked for and the value to set are in it; it goes when kubelet answers."""
    state = NodeState()
    assert condition(state)[:2] == ("Unknown", "NotAsked")
    state.learn_account_problem("/var/lib/kubelet/pod-resources/kubelet.sock: List failed: UNAVAILABLE")
    truth, _, told = condition(state)
    assert truth == "False"
    assert "/var/lib/kubelet/pod-resources/kubelet.sock" in told
    assert "kubelet.rootDir" in told
    state.learn_account(account({}), asked_at=0.0)
    assert condition(state)[0] == "True"


@pytest.mark.parametrize(
    ("first", "second", "truth", "reason"),
    [
        (Occupancy(), Occupancy(), "True", "Limited"),
        (Occupancy(), STRAY, "False", "UnlimitedProcess"),
        (BLIND, STRAY, "False", "UnlimitedProcess"),
        (Occupancy(), BLIND, "Unknown", "NotSeen"),
    ],
)
async def test_who_is_on_the_gpus_is_a_condition(first: Occupancy, second: Occupancy, truth: str, reason: str) -> None:
    """The worst of all GPUs counts: somebody without limits, then one that cannot be seen."""
    state = NodeState()
    state.learn_devices(node_of(2), offer_of(node_of(2), reserve_mib=RESERVE_MIB))
    assert condition(state, CONDITION_CLIENTS_LIMITED)[:2] == ("Unknown", "NotAsked")
    state.learn_occupancy({uuid_of(0): first, uuid_of(1): second})
    assert condition(state, CONDITION_CLIENTS_LIMITED)[:2] == (truth, reason)
    assert condition(state, CONDITION_CLIENTS_LIMITED, limited=False)[:2] == ("Unknown", "NotUsed")


async def test_a_crowd_without_limits_is_not_named_one_by_one() -> None:
    """A message has an end, and the kind refuses a longer one with everything else that the node has to say."""
    state = NodeState()
    state.learn_devices(node_of(1), offer_of(node_of(1), reserve_mib=RESERVE_MIB))
    crowd = tuple(Unlimited(pid, "python3", pod("a"), "c1") for pid in range(1, 2001))
    state.learn_occupancy({uuid_of(0): Occupancy(unlimited=crowd)})
    message = condition(state, CONDITION_CLIENTS_LIMITED)[2]
    assert message.endswith("1980 more processes")
    assert len(message) < 4096


async def test_nobody_runs_on_simulated_gpus() -> None:
    """So nothing is claimed of them."""
    simulated = replace(node_of(1), simulated=True)
    state = NodeState()
    state.learn_devices(simulated, offer_of(simulated, reserve_mib=RESERVE_MIB))
    assert condition(state, CONDITION_CLIENTS_LIMITED)[:2] == ("Unknown", "Simulated")
