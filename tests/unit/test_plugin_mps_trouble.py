"""What the node says of an MPS daemon that is in trouble: a fault is not told as silence."""

import pytest
from prometheus_client import CollectorRegistry

from cta_group_core.names import CONDITION_MPS_READY
from cta_group_plugin.conditions import conditions_of
from cta_group_plugin.mps_trouble import MpsTrouble
from cta_group_plugin.node_metrics import NodeCollector
from cta_group_plugin.ports import MpsState
from cta_group_plugin.settings import EnforcementSettings
from cta_group_plugin.state import NodeState
from cta_group_plugin.status import figures_of, status_of
from plugin_values import account, node_of, offer, uuid_of

FAULT = MpsState(ready=False, reason="MPS server 7 is in state FAULT", trouble=MpsTrouble.FAULT)
SILENT = MpsState(ready=False, reason="not answered in 2 s", trouble=MpsTrouble.SILENT)
STARTING = MpsState(ready=False, reason="its MPS daemon is starting")
READY = MpsState(ready=True, reason="")


@pytest.fixture
def state() -> NodeState:
    """Return a node with two GPUs of which nothing is held."""
    made = NodeState()
    made.learn_account(account({}), asked_at=0.0)
    made.learn_devices(node_of(2), offer(2), {})
    return made


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (SILENT, FAULT, "Fault"),
        (STARTING, SILENT, "Silent"),
        (READY, STARTING, "NotReady"),
        (READY, READY, "Ready"),
    ],
)
async def test_the_condition_names_the_worst_trouble(
    state: NodeState, first: MpsState, second: MpsState, reason: str
) -> None:
    """One word for the node, and the reason of each GPU in the message."""
    state.learn_mps({uuid_of(0): first, uuid_of(1): second})
    (told,) = [each for each in conditions_of(state.view, EnforcementSettings()) if each.type == CONDITION_MPS_READY]
    assert told.reason == reason
    assert all(each.reason in told.message for each in (first, second))


async def test_a_fault_takes_the_gpu_at_once_and_silence_after_a_moment(state: NodeState) -> None:
    """A fault has cost clients already; a daemon that has just been asked for may still be starting."""
    state.learn_mps({uuid_of(0): FAULT, uuid_of(1): SILENT})
    assert list(state.view.faults) == [uuid_of(0)]
    fault = state.view.faults[uuid_of(0)]
    assert "state FAULT" in fault.reason
    assert "restart those that did not end" in fault.advice
    state.learn_mps({uuid_of(0): READY, uuid_of(1): READY})
    assert not state.view.faults


async def test_each_trouble_is_a_series(state: NodeState) -> None:
    """Both are there for a GPU that is shared, and go with its last tenant."""
    registry = CollectorRegistry()
    registry.register(
        NodeCollector(
            lambda: status_of(state.view, resource_name="nvidia.com/cta-group", enforcement=EnforcementSettings()),
            lambda: figures_of(state.view, max_clients=0),
        )
    )

    def values(gpu: int) -> list[float | None]:
        return [
            registry.get_sample_value("cta_group_mps_trouble", {"gpu_uuid": uuid_of(gpu), "trouble": trouble})
            for trouble in ("silent", "fault")
        ]

    state.learn_mps({uuid_of(0): FAULT, uuid_of(1): SILENT})
    assert (values(0), values(1)) == ([0, 1], [1, 0])
    state.learn_mps({uuid_of(0): READY})
    assert (values(0), values(1)) == ([0, 0], [None, None])
