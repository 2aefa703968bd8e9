"""Values of the plugin as tests build them: GPUs of a product, inventories, groups, holdings."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from cta_group_core.health.inputs import Seen
from cta_group_core.ids import GpuUuid, GroupId
from cta_group_core.profiles import profile_named
from cta_group_core.units import SmCountSources
from cta_group_plugin.answers import Rules
from cta_group_plugin.health import Faults, Health
from cta_group_plugin.inventory import Offer, offer_of
from cta_group_plugin.ports import Account, GpuFacts, Holding, Inventory, PodName
from cta_group_plugin.report import EnforcementReport, NodeReport
from cta_group_plugin.settings import EnforcementSettings

RESERVE_MIB = 1024
IDLE_REPORT = NodeReport(
    resource_name="nvidia.com/cta-group",
    driver_version=None,
    cuda_version=None,
    simulated=False,
    enforcement=EnforcementReport(compute=True, memory=True),
    conditions=(),
    gpus=(),
)
"""What a node without a GPU says of itself."""
RULES = Rules(EnforcementSettings(), Path("/run/cta-group/mps"), max_clients=48)


def uuid_of(index: int) -> GpuUuid:
    """Return the UUID of a test's GPU."""
    return GpuUuid(f"GPU-{index:08d}-0000-0000-0000-000000000000")


def gpu(index: int = 0, profile: str = "h100-sxm") -> GpuFacts:
    """Return the facts of one GPU; change others with ``dataclasses.replace``."""
    product = profile_named(profile)
    return GpuFacts(
        uuid=uuid_of(index),
        index=index,
        product=product.product,
        capability=product.capability,
        sm_sources=SmCountSources(profile_sms=None, cuda_cores=product.cuda_cores),
        memory_total_mib=product.memory_total_mib,
        mig_enabled=False,
        mig_pending=False,
    )


def inventory(*gpus: GpuFacts) -> Inventory:
    """Return a node with these GPUs."""
    return Inventory(driver_version="580.95.05", cuda_version="13.0", gpus=gpus)


def node_of(count: int, profile: str = "h100-sxm") -> Inventory:
    """Return a node with ``count`` equal GPUs."""
    return inventory(*(gpu(index, profile) for index in range(count)))


def offer(count: int, profile: str = "h100-sxm") -> Offer:
    """Return what a node with ``count`` equal GPUs offers."""
    return offer_of(node_of(count, profile), reserve_mib=RESERVE_MIB)


def groups(index: int, numbers: Iterable[int]) -> frozenset[GroupId]:
    """Return groups of the GPU with ``index``."""
    return frozenset(GroupId(uuid_of(index), number) for number in numbers)


def pod(name: str) -> PodName:
    """Return a pod of the tests' namespace."""
    return PodName("team-a", name)


def account(held: dict[str, frozenset[GroupId]], *, others: Iterable[str] = ()) -> Account:
    """Return kubelet's account of pods with one container each, and of ``others`` without groups."""
    holdings = tuple(Holding(pod(name), "main", ids) for name, ids in held.items())
    return Account(holdings, frozenset(map(pod, [*held, *others])))


def without_memory(facts: GpuFacts) -> GpuFacts:
    """Return the GPU as a unified-memory part shows itself."""
    return replace(facts, memory_total_mib=None)


def faults(index: int, *seen: Seen, now: float = 1e9) -> Faults:
    """Return the faults of a node after this was seen of one of its GPUs."""
    return Health().after({uuid_of(index): seen}, now=now).faults
