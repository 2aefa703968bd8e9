"""What the plugin writes is what everybody else reads."""

import json
import subprocess
import sys
from dataclasses import fields, replace

import pytest
from pydantic import BaseModel

from cta_group_core import nodes
from cta_group_core.health.inputs import XidSeen
from cta_group_core.ids import GroupId
from cta_group_core.profiles import PROFILES
from cta_group_plugin import report
from cta_group_plugin.adapters.simulated import SimulatedSource
from cta_group_plugin.inventory import offer_of
from cta_group_plugin.settings import EnforcementSettings
from cta_group_plugin.state import NodeState
from cta_group_plugin.status import status_of, with_times
from plugin_values import RESERVE_MIB, account


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (report.NodeReport, nodes.NodeStatus),
        (report.GpuReport, nodes.GpuStatus),
        (report.PcieLink, nodes.PcieLink),
        (report.AllocationReport, nodes.Allocation),
        (report.ConditionReport, nodes.Condition),
        (report.EnforcementReport, nodes.Enforcement),
    ],
)
def test_every_field_that_is_written_is_read(written: type, read: type[BaseModel]) -> None:
    """A field of the writer that the reader does not have would be lost without a word; the CRDs equal the readers."""
    assert {field.name for field in fields(written)} <= set(read.model_fields)
    assert {report.api_name(field.name) for field in fields(written)} == {
        nodes.api_name(field.name) for field in fields(written)
    }


async def test_reader_gets_the_node_that_was_written() -> None:
    """A node with tenants, a fault, a withheld and a broken GPU reads back equal, totals included."""
    inventory = SimulatedSource(PROFILES["h200"], 4, "node-a").inventory()
    gpus = (*inventory.gpus[:3], replace(inventory.gpus[3], mig_enabled=True))
    inventory = replace(inventory, gpus=gpus, driver_version="580.95.05", cuda_version="13.0")
    state = NodeState()
    state.learn_devices(inventory, offer_of(inventory, reserve_mib=RESERVE_MIB), {gpus[1].uuid: (XidSeen(79),)})
    state.learn_account(account({"a": frozenset(GroupId(gpus[0].uuid, n) for n in range(32))}), asked_at=0.0)
    made = with_times(
        status_of(state.view, resource_name="nvidia.com/cta-group", enforcement=EnforcementSettings()), None, now=2e9
    )
    written = json.loads(json.dumps(report.as_api(made)))
    read = nodes.NodeStatus.model_validate(written)
    assert read.as_api() == written
    assert read.with_totals() == read
    assert (read.capacity, read.allocatable, read.free) == (384, 256, 224)


def test_node_process_loads_nothing_heavy() -> None:
    """Libraries of the other parts would cost every node of a cluster tens of MiB."""
    code = "import sys, cta_group_plugin.cli, cta_group_plugin.app; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"pydantic", "kubernetes", "aiohttp", "kopf", "yaml", "pynvml"} & set(loaded)
