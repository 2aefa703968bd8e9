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
MEASURED_SEQUENCES = 1024
"""``--max-num-seqs`` of the servers that were measured."""
PROFILED_MIB = 1178
"""What vLLM's profile finds beside weights and KV cache: 0.95 GiB peak activation, 0.2 GiB that is not torch's."""
_LEAST_MIB = 512
"""No model fits into less: what is not torch's and a step's activations take that alone."""
_VOCABULARY = 151936
"""Of the models that were measured; the sampler's warm-up took sequences x vocabulary x 4 bytes (594 MiB)."""
_GRAPH_MIB_A_LAYER = 40
"""4B took 1.0 GiB of graphs for its 36 layers; what a deeper model takes more is reckoned at this."""
_MEASURED_LAYERS = 36
# Fewer sequences are seen to save nothing where a slice is large; in a small one they decide whether it starts at all.
_SAVES_ALL_BELOW_MIB, _SAVES_NOTHING_FROM_MIB = 8192, 16384


@dataclass(frozen=True, slots=True)
class Load:
    """What of a server decides how much it takes beyond its share."""

    eager: bool = False
    sequences: int = MEASURED_SEQUENCES
    layers: int | None = None
    vocabulary: int | None = None


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


def reserve_mib(share: SliceMemory, load: Load) -> int:
    """Return the memory to leave for graphs and warm-up in a slice."""
    base = RESERVE_EAGER_MIB if load.eager else RESERVE_MIB
    if load.layers is not None and not load.eager:
        base += _GRAPH_MIB_A_LAYER * max(0, load.layers - _MEASURED_LAYERS)
    sampler = _sampler_mib(load.sequences, load.vocabulary or _VOCABULARY)
    more = sampler - _sampler_mib(MEASURED_SEQUENCES, _VOCABULARY)
    if more > 0:
        return base + more
    span = _SAVES_NOTHING_FROM_MIB - _SAVES_ALL_BELOW_MIB
    part = min(span, max(0, _SAVES_NOTHING_FROM_MIB - share.limit_mib))
    return base + -(-more * part // span)


def _sampler_mib(sequences: int, vocabulary: int) -> int:
    return sequences * vocabulary * 4 // 2**20


def largest_utilization(share: SliceMemory, load: Load) -> Utilization:
    """Return the largest ``--gpu-memory-utilization`` that starts in the slice, or raise :class:`SliceTooSmall`."""
    reserve = reserve_mib(share, load)
    left_tenths = 10 * (share.limit_mib - reserve) - _CONTEXT_TENTHS - _CONTEXT_TENTHS_PER_GROUP * share.groups
    found = Utilization.at_most(left_tenths, 10 * share.total_mib)
    if found.of(share.total_mib) < _LEAST_MIB:
        raise SliceTooSmall(
            f"{share}: vLLM needs {context_mib(share.groups)} MiB for its context and {reserve} MiB for graphs and "
            f"warm-up, and {_LEAST_MIB} MiB at least for everything else; ask for more groups"
        )
    return found


def for_weights_and_cache_mib(share: SliceMemory, load: Load) -> int:
    """Return what the slice has for weights and KV cache at that utilization; raise :class:`SliceTooSmall`."""
    return largest_utilization(share, load).of(share.total_mib) - PROFILED_MIB
