"""The metrics that describe the node."""

from dataclasses import replace

from prometheus_client import CollectorRegistry

from cta_group_core.health.inputs import Suspected, XidSeen
from cta_group_core.ids import GpuUuid
from cta_group_plugin.gpu_choice import GpuChoice, parse_names
from cta_group_plugin.inventory import offer_of
from cta_group_plugin.node_metrics import NodeCollector
from cta_group_plugin.occupancy_view import Foreign, Occupancy, Unlimited
from cta_group_plugin.ports import Inventory
from cta_group_plugin.settings import EnforcementSettings
from cta_group_plugin.state import NodeState
from cta_group_plugin.status import figures_of, status_of
from plugin_values import RESERVE_MIB, account, gpu, inventory, node_of, uuid_of


def state_of(node: Inventory, choice: GpuChoice | None = None) -> NodeState:
    """Return the state of a node on which nothing is held."""
    state = NodeState()
    state.learn_account(account({}), asked_at=0.0)
    state.learn_devices(node, offer_of(node, reserve_mib=RESERVE_MIB, choice=choice or GpuChoice()))
    return state


def registry_of(state: NodeState) -> CollectorRegistry:
    """Return a registry with the series of a node."""
    registry = CollectorRegistry()
    enforcement = EnforcementSettings()
    registry.register(
        NodeCollector(
            lambda: status_of(state.view, resource_name="nvidia.com/cta-group", enforcement=enforcement),
            lambda: figures_of(state.view, max_clients=0),
            lambda: not state.view.other_in_charge,
        )
    )
    return registry


def value(registry: CollectorRegistry, name: str, uuid: GpuUuid, **labels: str) -> float | None:
    """Return one figure of a GPU; None when there is no such series."""
    return registry.get_sample_value(f"cta_group_{name}", {"gpu_uuid": uuid, **labels})


async def test_each_gpu_is_in_one_state_of_health() -> None:
    """All states have a series from the start, so that an alert on one of them is never silent."""
    state = state_of(node_of(2))
    state.observe({uuid_of(1): (Suspected("x"),)})
    registry = registry_of(state)
    phases = ("Healthy", "Suspect", "Unhealthy", "Recovering", "MPSNotReady")
    assert [value(registry, "gpu_health", uuid_of(0), phase=phase) for phase in phases] == [1, 0, 0, 0, 0]
    assert [value(registry, "gpu_health", uuid_of(1), phase=phase) for phase in phases] == [0, 1, 0, 0, 0]


async def test_node_is_described_by_one_process_only() -> None:
    """While one process takes over from another, sums over all series count each GPU once."""
    state = state_of(node_of(1))
    registry = registry_of(state)
    state.learn_charge(other_in_charge=True)
    assert list(registry.collect()) == []
    state.learn_charge(other_in_charge=False)
    assert list(registry.collect()) != []


async def test_xids_are_counted_by_class_and_gpu() -> None:
    """Zero before the first; the classes are few, whatever number a driver makes up."""
    state = state_of(node_of(1))
    registry = registry_of(state)
    classes = ("application", "report", "suspect", "fatal")
    assert [value(registry, "xid_total", uuid_of(0), **{"class": each}) for each in classes] == [0, 0, 0, 0]
    state.observe({uuid_of(0): (XidSeen(13), XidSeen(31), XidSeen(79), XidSeen(123456), XidSeen(123457))})
    assert [value(registry, "xid_total", uuid_of(0), **{"class": each}) for each in classes] == [2, 0, 2, 1]


async def test_gpu_that_is_gone_has_no_series() -> None:
    """Neither its health nor its XIDs stay for the life of the process."""
    state = state_of(node_of(2))
    state.observe({uuid_of(1): (XidSeen(79),)})
    state.learn_devices(node_of(1), offer_of(node_of(1), reserve_mib=RESERVE_MIB))
    registry = registry_of(state)
    assert value(registry, "gpu_health", uuid_of(1), phase="Healthy") is None
    assert value(registry, "xid_total", uuid_of(1), **{"class": "fatal"}) is None


async def test_reason_for_offering_nothing_is_one_of_a_few() -> None:
    """MIG here; all reasons have a series."""
    registry = registry_of(state_of(inventory(gpu(0), replace(gpu(1), mig_enabled=True))))
    causes = ("excluded", "other-plugin", "mig", "unsupported")
    assert [value(registry, "withheld", uuid_of(1), cause=cause) for cause in causes] == [0, 0, 1, 0]
    assert [value(registry, "withheld", uuid_of(0), cause=cause) for cause in causes] == [0, 0, 0, 0]


async def test_gpus_that_are_left_out_on_purpose_make_no_node_look_empty() -> None:
    """They have no capacity of 0 that an alert could take for a fault; others that offer nothing have."""
    node = inventory(gpu(0), replace(gpu(1), mig_enabled=True))
    registry = registry_of(state_of(node, GpuChoice(exclude=parse_names("0"))))
    labels = {"product": "NVIDIA H100 80GB HBM3"}
    assert value(registry, "capacity", uuid_of(0), gpu="0", **labels) is None
    assert value(registry, "withheld", uuid_of(0), cause="excluded") == 1
    assert value(registry, "capacity", uuid_of(1), gpu="1", **labels) == 0


async def test_who_is_on_a_gpu_beside_tenants_within_their_limits() -> None:
    """Figures of every GPU that was looked at; what could not be told there has no series rather than a zero."""
    state = state_of(node_of(3))
    stray = Unlimited(8, "python3", None, None)
    seen = Occupancy(unlimited=(stray,), foreign=(Foreign(9, "Xorg", 640), Foreign(10, "gdm", 64)), late_mib=2)
    blind = Occupancy(problem="not seen", lists_foreign=False)
    state.learn_occupancy({uuid_of(0): seen, uuid_of(1): blind})
    registry = registry_of(state)
    names = ("processes_seen", "unlimited_processes", "foreign_processes", "foreign_memory_bytes", "late_memory_bytes")
    told = [[value(registry, name, uuid_of(index)) for name in names] for index in range(3)]
    assert told == [[1, 1, 2, 704 << 20, 2 << 20], [0, None, None, None, 0], [None] * 5]


async def test_memory_that_the_driver_does_not_tell_is_not_added_up() -> None:
    """The processes are there all the same."""
    state = state_of(node_of(1))
    state.learn_occupancy({uuid_of(0): Occupancy(foreign=(Foreign(9, "Xorg", None), Foreign(10, "gdm", 64)))})
    registry = registry_of(state)
    assert value(registry, "foreign_processes", uuid_of(0)) == 2
    assert value(registry, "foreign_memory_bytes", uuid_of(0)) is None
