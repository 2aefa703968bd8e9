"""A node with one H200 as it was measured, all in order, and ways to change one fact of it."""

from collections.abc import Iterable

from cta_group_core.compatibility.findings import Finding
from cta_group_core.compatibility.versions import CudaVersion, DriverVersion
from cta_group_core.nodes import Allocation, GpuStatus, NodeStatus, PcieLink
from gpu_strategies import uuid_of

R580, CUDA_13 = DriverVersion.parse("580.159.04"), CudaVersion.parse("13.0")
GOOD = GpuStatus(
    uuid=uuid_of(0),
    index=0,
    product="NVIDIA H200",
    compute_capability="9.0",
    sm_count=132,
    capacity=128,
    minimum=8,
    step=8,
    memory_mib=143155,
    reserve_mib=1024,
    link=PcieLink(width=16, width_max=16, generation=5, generation_max=5),
    mig_mode="Disabled",
    compute_mode="Default",
    persistence_mode=True,
    foreign_memory_mib=0,
    free=128,
    largest_fit=128,
)
NODE = NodeStatus(resource_name="nvidia.com/cta-group", driver_version="580.159.04", cuda_version="13.0", gpus=(GOOD,))


def gpu(**facts: object) -> GpuStatus:
    """Return the good GPU with other facts."""
    return GOOD.model_copy(update=facts)


def held(groups: int) -> dict[str, object]:
    """Return the facts of a GPU of which one container has that many groups."""
    return {"allocations": (Allocation(namespace="a", pod="p", container="c", groups=groups, memory_mib=1),)}


def only(findings: Iterable[Finding]) -> Finding:
    """Return the one finding that there is."""
    (finding,) = findings
    assert finding.remedy
    return finding
