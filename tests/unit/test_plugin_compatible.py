"""The condition ``Compatible``: driver and CUDA against what the limits of this node need, by the rules of doctor."""

from dataclasses import replace

import pytest

from cta_group_core.compatibility.findings import Severity
from cta_group_core.compatibility.host_findings import HostFacts
from cta_group_core.compatibility.node_findings import node_findings
from cta_group_core.nodes import NodeStatus
from cta_group_plugin.inventory import offer_of
from cta_group_plugin.ports import Inventory
from cta_group_plugin.report import NodeReport, as_api
from cta_group_plugin.settings import EnforcementSettings
from cta_group_plugin.state import NodeState
from cta_group_plugin.status import status_of
from plugin_values import RESERVE_MIB, node_of

BOTH = EnforcementSettings()
NO_MEMORY = EnforcementSettings(memory=False)
NOTHING = EnforcementSettings(compute=False, memory=False)


def node(driver: str, cuda: str, *, profile: str = "h100-sxm") -> Inventory:
    """Return a node with one GPU under this driver."""
    return replace(node_of(1, profile), driver_version=driver, cuda_version=cuda)


def told(inventory: Inventory, enforcement: EnforcementSettings = BOTH, *, max_clients: int = 0) -> NodeReport:
    """Return what the plugin publishes."""
    state = NodeState()
    state.learn_devices(inventory, offer_of(inventory, reserve_mib=RESERVE_MIB))
    return status_of(state.view, resource_name="nvidia.com/cta-group", enforcement=enforcement, max_clients=max_clients)


def compatible(report: NodeReport) -> tuple[str, str, str]:
    """Return status, reason and message of the condition."""
    found = next(one for one in report.conditions if one.type == "Compatible")
    return found.status, found.reason, found.message


@pytest.mark.parametrize(
    ("inventory", "words"),
    [
        (node("470.82.01", "11.4"), "R470 does not tell how much of a GPU's memory programs can use"),
        (node("525.60.13", "11.4"), "the memory of slices is not limited: that needs CUDA 11.5"),
    ],
)
def test_a_driver_that_cannot_do_what_is_asked(inventory: Inventory, words: str) -> None:
    """The condition is False and says what is missing, and what to do."""
    truth, reason, message = compatible(told(inventory))
    assert (truth, reason) == ("False", "DriverUnsuitable")
    assert words in message
    assert "To do: install" in message


@pytest.mark.parametrize("enforcement", [NO_MEMORY, NOTHING])
def test_what_is_not_limited_needs_nothing(enforcement: EnforcementSettings) -> None:
    """A CUDA without memory limits suits a node that does not limit memory."""
    assert compatible(told(node("525.60.13", "11.4"), enforcement))[:2] == ("True", "Compatible")


def test_a_setting_that_the_driver_cannot_take_is_told_with_a_good_condition() -> None:
    """More containers than the MPS server takes clients: it works until then."""
    truth, _, message = compatible(told(node("580.95.05", "13.0"), max_clients=60))
    assert truth == "True"
    assert "up to 60 containers may share a GPU, but its MPS server takes 48 clients" in message


def test_a_version_that_nobody_can_read_is_a_warning() -> None:
    """Nothing is claimed then, and what works is not called broken."""
    truth, _, message = compatible(told(node("unknown", "13.0")))
    assert truth == "True"
    assert "driver version 'unknown'" in message


def test_simulated_gpus_need_no_driver() -> None:
    """They have no versions at all."""
    simulated = replace(node_of(1), driver_version=None, cuda_version=None, simulated=True)
    assert compatible(told(simulated))[:2] == ("True", "Compatible")


@pytest.mark.parametrize("driver", ["470.82.01", "525.60.13", "535.104.05", "580.95.05", "unknown"])
@pytest.mark.parametrize("cuda", ["11.4", "11.5", "12.2", "13.0", "13.1"])
@pytest.mark.parametrize("enforcement", [BOTH, NO_MEMORY, NOTHING])
def test_condition_and_doctor_agree(driver: str, cuda: str, enforcement: EnforcementSettings) -> None:
    """Doctor finds an error of driver or limits in a CTANode exactly where its plugin says that it is unsuitable."""
    report = told(node(driver, cuda), enforcement)
    findings = node_findings(NodeStatus.model_validate(as_api(report)), HostFacts())
    errors = [one for one in findings if one.severity is Severity.ERROR]
    assert bool(errors) is (compatible(report)[1] == "DriverUnsuitable")
