"""How much of a GPU's memory vLLM may ask for in a slice.

Measured with vLLM 0.25.0 on an H200 (143155 MiB): MPS lowers only the *free* memory that a process sees, while vLLM
multiplies ``--gpu-memory-utilization`` with the *total* of the card, and takes more than that in the end::

    used = utilization x total  +  context (about 29 MiB + 3.7 MiB a group)  +  extra

``extra`` is CUDA graphs and the sampler's warm-up, which vLLM's own profile does not see: 1325 to 1376 MiB for a
0.6B model, 1977 MiB for 4B, 793 to 844 MiB for 0.6B without graphs. So a slice's share is what is left of its limit
after context and a reserve for ``extra``, an amount and not a percentage.
"""

from dataclasses import dataclass

from cta_group_core.errors import SliceTooSmall
from cta_group_core.vllm.values import Utilization

# Tenths of MiB, so that 3.7 stays an integer.
_CONTEXT_TENTHS = 290
_CONTEXT_TENTHS_PER_GROUP = 37

RESERVE_MIB = 3072
"""Left for what vLLM allocates beyond its share, with CUDA graphs: 1095 MiB above the largest that was measured."""
RESERVE_EAGER_MIB = 2816
"""The same with ``--enforce-eager``: the smallest that never gives more than was seen to start that way."""


@dataclass(frozen=True, slots=True)
class SliceMemory:
    """The memory of one slice of one kind of GPU. All in MiB."""

    groups: int
    limit_mib: int
    """What the slice may use (CUDA_MPS_PINNED_DEVICE_MEM_LIMIT)."""
    total_mib: int
    """The whole GPU's memory as CUDA reports it."""
    product: str = "GPU"

    def __str__(self) -> str:
        return f"{self.groups} groups of {self.product} ({self.limit_mib} of {self.total_mib} MiB)"


def context_mib(groups: int) -> int:
    """Return what a CUDA context takes in a slice of that many groups, rounded up."""
    return -(-(_CONTEXT_TENTHS + _CONTEXT_TENTHS_PER_GROUP * groups) // 10)


def reserve_mib(*, eager: bool) -> int:
    """Return the memory to leave for graphs and warm-up."""
    return RESERVE_EAGER_MIB if eager else RESERVE_MIB


def largest_utilization(share: SliceMemory, *, eager: bool) -> Utilization:
    """Return the largest ``--gpu-memory-utilization`` that starts in the slice, or raise :class:`SliceTooSmall`."""
    reserve = reserve_mib(eager=eager)
    left_tenths = 10 * (share.limit_mib - reserve) - _CONTEXT_TENTHS - _CONTEXT_TENTHS_PER_GROUP * share.groups
    found = Utilization.at_most(left_tenths, 10 * share.total_mib)
    if found.ten_thousandths <= 0:
        raise SliceTooSmall(
            f"{share}: vLLM needs {context_mib(share.groups)} MiB for its context and {reserve} MiB for graphs and "
            "warm-up before any weights; ask for more groups"
        )
    return found
