"""Kinds of GPU that a server can land on, and the memory of its slice there."""

from collections.abc import Iterator
from dataclasses import dataclass

from cta_group_core.nodes import NodeStatus
from cta_group_core.slices import memory_share_mib
from cta_group_core.units import GpuUnits
from cta_group_core.vllm.memory import SliceMemory


@dataclass(frozen=True, slots=True)
class GpuKind:
    """GPUs on which a request means the same slice."""

    product: str
    memory_mib: int
    """The whole GPU's memory as CUDA reports it; 0 where nobody knows it."""
    reserve_mib: int
    """Memory of the GPU that is never given out."""
    units: GpuUnits
    limits_memory: bool
    """Whether slices have a memory limit there."""

    def takes(self, groups: int) -> bool:
        """Tell whether a request of that size is allowed on such GPUs."""
        return self.units.allows(groups)

    def share(self, groups: int) -> SliceMemory | None:
        """Return the memory of a slice; None for whole GPUs, which have all of it, and where it is not known."""
        if groups >= self.units.capacity or not self.memory_mib:
            return None
        limit = memory_share_mib(groups, self.units.capacity, self.memory_mib, self.reserve_mib)
        return SliceMemory(groups=groups, limit_mib=limit, total_mib=self.memory_mib, product=self.product)

    def slices(self) -> Iterator[SliceMemory]:
        """Return the slices of every size below a whole GPU, the smallest first."""
        for groups in range(self.units.minimum, self.units.capacity, self.units.step):
            share = self.share(groups)
            if share is not None:
                yield share


def kinds_of(status: NodeStatus) -> frozenset[GpuKind]:
    """Return the kinds of GPU that a node serves. Unhealthy ones count: they come back."""
    return frozenset(
        GpuKind(
            product=gpu.product,
            memory_mib=gpu.memory_mib,
            reserve_mib=gpu.reserve_mib,
            units=GpuUnits(sm_count=gpu.sm_count, capacity=gpu.capacity, minimum=gpu.minimum, step=gpu.step),
            limits_memory=status.enforcement.memory,
        )
        for gpu in status.gpus
        if gpu.capacity > 0 and gpu.withheld is None
    )
