"""The one place that knows how a GPU and one of its groups are written.

kubelet sees a group as the text ``GPU-<uuid>::<n>``, n from 0. The same text is what dcgm-exporter can split
at ``::``, and it stays the same over restarts and reboots, because kubelet records it for the life of a pod.

A node may write ids in short instead: ``g3-017`` is group 17 of the GPU that has the number 3 on this node. From
Kubernetes 1.36 on every id is in the status of its pod, which such ids halve. A number stays with its GPU.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NewType, Self

from cta_group_core.errors import InvalidText

GpuUuid = NewType("GpuUuid", str)
"""Text of NVML's UUID of a whole GPU, ``GPU-`` included."""

NodeName = NewType("NodeName", str)

_SEPARATOR = "::"
_GPU_UUID = re.compile(r"GPU-[0-9A-Za-z][0-9A-Za-z-]{0,58}")
_GROUP_ID = re.compile(rf"({_GPU_UUID.pattern}){_SEPARATOR}(0|[1-9][0-9]{{0,4}})")
LARGEST_GPU_NUMBER: Final = 9999
"""An id in short form has room for four digits."""
_SHORT_ID = re.compile(r"g(0|[1-9][0-9]{0,3})-([0-9]{3}|[1-9][0-9]{3})")


@lru_cache(maxsize=16_384)  # of a large cluster's GPUs, each told again with everything that changes on its node
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


class IdForm(StrEnum):
    """How ids are written for kubelet."""

    UUID = "uuid"
    """``GPU-<uuid>::<n>``, which says by itself what it means, and which monitoring knows."""
    SHORT = "short"
    """``g3-017``."""


@dataclass(frozen=True, slots=True)
class ShortId:
    """An id in short form; what it means depends on the node."""

    gpu_number: int
    """The node's own number of the GPU, from 0 to 9999."""
    number: int
    """The group's, from 0 to 9999."""

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read the text form; None for a text of another form."""
        read = _SHORT_ID.fullmatch(text)
        return cls(int(read[1]), int(read[2])) if read else None

    def __str__(self) -> str:
        return _short_text(self.gpu_number, self.number)


def _short_text(gpu_number: int, number: int) -> str:
    return f"g{gpu_number}-{number:03d}"


@dataclass(frozen=True, slots=True)
class IdTexts:
    """How the groups of one node are written, and what the ids mean that kubelet writes: both forms, always."""

    form: IdForm = IdForm.UUID
    """The form of a group that kubelet does not know yet."""
    numbers: Mapping[GpuUuid, int] = field(default_factory=dict)
    """The number of each GPU that ever had one here. No two GPUs have the same."""
    kept: Mapping[GroupId, str] = field(default_factory=dict)
    """Groups that kubelet knows by a text of the other form. It would hand such a group out twice by two texts."""

    def is_usual(self, text: str) -> bool:
        """Tell whether an id has the form in which new ones are written, as far as its first letters say."""
        return text.startswith("g") is (self.form is IdForm.SHORT)

    def text_of(self, group: GroupId) -> str:
        """Return the one text by which kubelet is told of a group."""
        # Asked for each group of an answer while kubelet waits.
        if self.kept and (kept := self.kept.get(group)):
            return kept
        number = self.numbers.get(group.gpu) if self.form is IdForm.SHORT else None
        return str(group) if number is None else _short_text(number, group.number)

    def parse(self, text: str) -> GroupId:
        """Return the group that an id means; raises InvalidText for a text of no form, or a number of no GPU."""
        short = ShortId.parse(text)
        if short is None:
            return GroupId.parse(text)
        for gpu, number in self.numbers.items():
            if number == short.gpu_number:
                return GroupId(gpu, short.number)
        raise InvalidText(f"device id {text!r}: no GPU of this node has the number {short.gpu_number}")


UUID_TEXTS: Final = IdTexts(numbers=MappingProxyType({}), kept=MappingProxyType({}))
"""Every group by its GPU's UUID."""


def numbers_with(
    known: Mapping[GpuUuid, int], gpus: Iterable[tuple[int, GpuUuid]], *, taken: Iterable[int] = ()
) -> Mapping[GpuUuid, int]:
    """Return ``known`` with a number for each of ``gpus``, given by index and UUID.

    A GPU keeps the number that it has. A new one gets its index when nothing else ever had that number, and otherwise
    the lowest free one: a number is never given to a second GPU, since a pod may hold ids of the first. ``taken`` are
    numbers that are in use although nobody knows of which GPU.
    """
    numbers, used = dict(known), {*known.values(), *taken}
    left: list[GpuUuid] = []
    for index, gpu in sorted(gpus):
        if gpu in numbers:
            continue
        if index in used:
            left.append(gpu)
        else:
            numbers[gpu] = index
            used.add(index)
    for gpu in left:
        numbers[gpu] = next(number for number in range(len(used) + 1) if number not in used)
        used.add(numbers[gpu])
    return numbers
