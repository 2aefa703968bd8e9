"""The one place that knows how a GPU and one of its groups are written.

kubelet sees a group as the text ``GPU-<uuid>::<n>``, n from 0. The same text is what dcgm-exporter can split
at ``::``, and it stays the same over restarts and reboots, because kubelet records it for the life of a pod.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NewType, Self

from cta_group_core.errors import InvalidText

GpuUuid = NewType("GpuUuid", str)
"""Text of NVML's UUID of a whole GPU, ``GPU-`` included."""

NodeName = NewType("NodeName", str)

_SEPARATOR = "::"
_GPU_UUID = re.compile(r"GPU-[0-9A-Za-z][0-9A-Za-z-]{0,58}")
_GROUP_ID = re.compile(rf"({_GPU_UUID.pattern}){_SEPARATOR}(0|[1-9][0-9]{{0,4}})")


def parse_gpu_uuid(text: str) -> GpuUuid:
    """Return ``text`` as a GPU's UUID, or raise :class:`InvalidText`. A MIG device's UUID is refused."""
    if not _GPU_UUID.fullmatch(text):
        raise InvalidText(f"GPU UUID {text!r}: must be GPU- followed by letters, digits and dashes")
    return GpuUuid(text)


@dataclass(frozen=True, slots=True, order=True)
class GroupId:
    """One CTA group of one GPU, the thing that kubelet counts and hands out. Ordered by GPU, then number."""

    gpu: GpuUuid
    number: int
    """From 0 to the GPU's capacity less one; a negative one raises :class:`InvalidText`."""

    def __post_init__(self) -> None:
        if self.number < 0:
            raise InvalidText(f"group number {self.number} of {self.gpu}: must be 0 or more")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text form; raise :class:`InvalidText` naming the text when it has another form."""
        read = _GROUP_ID.fullmatch(text)
        if not read:
            raise InvalidText(f"device id {text!r}: must look like GPU-<uuid>{_SEPARATOR}<number>")
        return cls(gpu=GpuUuid(read[1]), number=int(read[2]))

    def __str__(self) -> str:
        return f"{self.gpu}{_SEPARATOR}{self.number}"


def by_gpu(ids: Iterable[GroupId]) -> Mapping[GpuUuid, tuple[GroupId, ...]]:
    """Sort ``ids`` into their GPUs; each GPU's ids come in ascending order."""
    sorted_ids: dict[GpuUuid, list[GroupId]] = {}
    for group_id in sorted(ids):
        sorted_ids.setdefault(group_id.gpu, []).append(group_id)
    return {gpu: tuple(members) for gpu, members in sorted_ids.items()}
