"""The thread-block cluster that a tenant's kernels need, as its pod says, and whether its request and GPU suit it.

What is promised is a multiple: a slice holds whole clusters by its number of SMs. It is not promised that these SMs are
in one GPC, which a cluster needs: MPS chooses them, and CUDA tells how many clusters fit
(cudaOccupancyMaxActiveClusters).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Final

from cta_group_core.errors import InvalidText
from cta_group_core.names import ANNOTATION_SHAPE
from cta_group_core.nodes import GpuStatus
from cta_group_core.units import ComputeCapability

# Source: CUDA programming guide, "Thread Block Clusters": from compute capability 9.0 on; 8 blocks are portable, more
# needs cudaFuncAttributeNonPortableClusterSizeAllowed, and 16 are the most that a GPU takes.
CLUSTERS_FROM: Final = ComputeCapability(9, 0)
_PORTABLE: Final = 8
_MOST: Final = 16
_NON_PORTABLE: Final = "non-portable"
_DIMENSIONS: Final = 3
_MOST_DIGITS: Final = 3
_TEXT_MOST: Final = 63
_ALLOWED: Final = f'write one to three whole numbers above 0, such as "4,2,1"; above 8 in all also ",{_NON_PORTABLE}"'


@dataclass(frozen=True, slots=True)
class ClusterShape:
    """Thread blocks of one cluster along x, y and z. Build it with :func:`parse_shape`."""

    blocks: tuple[int, ...]

    @property
    def size(self) -> int:
        """Blocks of a cluster, 1 to 16; 1 needs no clusters."""
        return prod(self.blocks)

    def __str__(self) -> str:
        return ",".join(map(str, self.blocks))


def parse_shape(text: str) -> ClusterShape:
    """Read the annotation ``ctagroup.dev/shape``; raise :class:`InvalidText` that says what to write."""
    words = [word.strip() for word in text.split(",")]
    said = words[-1] == _NON_PORTABLE
    numbers = words[:-1] if said else words
    if len(text) > _TEXT_MOST or not 0 < len(numbers) <= _DIMENSIONS or not all(map(_is_positive, numbers)):
        raise InvalidText(f"{_named(text)} is no cluster shape: {_ALLOWED}")
    shape = ClusterShape(tuple(map(int, numbers)))
    if shape.size > _MOST:
        raise InvalidText(f"{_named(text)} is a cluster of {shape.size} thread blocks; CUDA takes {_MOST} at most")
    if shape.size > _PORTABLE and not said:
        raise InvalidText(
            f"{_named(text)} is a cluster of {shape.size} thread blocks, and above {_PORTABLE} not every GPU with "
            f'clusters takes it: write "{shape},{_NON_PORTABLE}" if the kernels ask CUDA for it'
        )
    return shape


def _is_positive(word: str) -> bool:
    return len(word) <= _MOST_DIGITS and word.isascii() and word.isdecimal() and int(word) > 0


def _named(text: str) -> str:
    return f"annotation {ANNOTATION_SHAPE}: {text[:_TEXT_MOST]!r}"


def shape_problem(text: str | None, requests: Sequence[int]) -> str | None:
    """Return why a pod's shape and requests do not go together, in a sentence; None when they do.

    The chart's policy ``shape`` says the same, in the same words.

    ``text``: the annotation, None without one. ``requests``: groups of each container that asks.
    """
    if text is None or not requests:
        return None
    try:
        size = parse_shape(text).size
    except InvalidText as wrong:
        return str(wrong)
    for groups in requests:
        if groups % size:
            below = groups - groups % size
            nearest = f"{below} or {below + size}" if below else f"{size}"
            return (
                f"{_named(text)} is a cluster of {size} thread blocks, and {groups} groups are no multiple of {size}: "
                f"the nearest are {nearest}"
            )
    return None


def needs_clusters(text: str) -> bool:
    """Tell whether kernels need clusters at all; a text that nobody understands decides nothing."""
    try:
        return parse_shape(text).size > 1
    except InvalidText:
        return False


@lru_cache(maxsize=64)
def has_clusters(capability: str) -> bool | None:
    """Tell whether a GPU of a compute capability, such as ``9.0``, has clusters; None where it is not known."""
    try:
        return ComputeCapability.parse(capability) >= CLUSTERS_FROM
    except InvalidText:
        return None


def degradation(product: str, capability: str) -> str | None:
    """Return what is to be said to a pod that needs clusters on such a GPU; None where nothing is."""
    if has_clusters(capability) is not False:
        return None
    return (
        f"{product} (compute capability {capability}) has no thread-block clusters, which start at {CLUSTERS_FROM}: "
        f"kernels must do without those that {ANNOTATION_SHAPE} names"
    )


def all_have_clusters(gpus: Iterable[GpuStatus]) -> bool:
    """Tell whether placement takes a node's GPUs for ones with clusters: it is not known of any that it has none."""
    return all(has_clusters(one.compute_capability) is not False for one in gpus if one.capacity)
