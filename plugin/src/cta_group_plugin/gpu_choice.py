"""Which GPUs are ours, and what people know of them better than the driver: settings, and how they name a GPU. Pure."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from cta_group_core.errors import InvalidText
from cta_group_core.ids import parse_gpu_uuid
from cta_group_core.units import Granularity
from cta_group_plugin.ports import GpuFacts

_MOST_SMS: Final = 1024
_MOST_MIB: Final = 1 << 24
_MOST_DIGITS: Final = 9
_WORD_ENDS: Final = r"(?<![A-Za-z0-9]){}(?![A-Za-z0-9])"


@dataclass(frozen=True, slots=True)
class GpuName:
    """How a setting names GPUs: one by its UUID, one by its index, or all of a product."""

    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Check the form: ``GPU-...``, a whole number, or words of a product's name. Raises InvalidText."""
        text = text.strip()
        if not text or text.startswith("MIG-"):
            raise InvalidText(f"GPU {text!r}: must be a UUID (GPU-...), an index, or a product such as 'H100'")
        if text.startswith("GPU-"):
            parse_gpu_uuid(text)
        if text.isdecimal() and len(text) > _MOST_DIGITS:
            raise InvalidText(f"GPU {text[:_MOST_DIGITS]}...: an index has {_MOST_DIGITS} digits at most")
        return cls(text)

    def means(self, gpu: GpuFacts) -> bool:
        """Tell whether a GPU is meant. A product is meant by words of its name: ``T400`` means ``NVIDIA T400 4GB``."""
        if self.text.startswith("GPU-"):
            return gpu.uuid == self.text
        if self.text.isdecimal():
            return gpu.index == int(self.text)
        return bool(re.search(_WORD_ENDS.format(re.escape(self.text)), gpu.product, re.IGNORECASE))

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class GpuOverride:
    """What is so about some GPUs, whatever the driver says. ``None``: what it says."""

    gpu: GpuName
    sm_count: int | None = None
    memory_mib: int | None = None
    """As CUDA would report it."""
    granularity: Granularity | None = None
    """Needed for a compute capability that this release does not know."""


@dataclass(frozen=True, slots=True)
class GpuChoice:
    """All that settings say about which GPUs are served, and as what."""

    include: tuple[GpuName, ...] = ()
    """Only these are ours, whoever else claims them. Empty: all that nobody else claims."""
    exclude: tuple[GpuName, ...] = ()
    overrides: tuple[GpuOverride, ...] = ()

    def claims(self, gpu: GpuFacts) -> bool:
        """Tell whether somebody said that this GPU is ours, by its name."""
        return any(name.means(gpu) for name in self.include)

    def leaves_out(self, gpu: GpuFacts) -> str:
        """Return why a GPU is not ours, in words; empty when it is."""
        for name in self.exclude:
            if name.means(gpu):
                return f"left out by the setting gpus.exclude ({name})"
        return "left out because gpus.include does not name it" if self.include and not self.claims(gpu) else ""

    def override_of(self, gpu: GpuFacts) -> GpuOverride | None:
        """Return what is said of a GPU; the first that means it counts."""
        return next((override for override in self.overrides if override.gpu.means(gpu)), None)


EVERY_GPU: Final = GpuChoice()


def parse_names(text: str) -> tuple[GpuName, ...]:
    """Read names separated by commas; empty text is none. Raises InvalidText."""
    return tuple(GpuName.parse(name) for name in text.split(",")) if text.strip() else ()


def parse_overrides(text: str) -> tuple[GpuOverride, ...]:
    """Read JSON such as ``[{"gpu": "GB10", "memoryMiBOverride": 98304}]``; empty text is none. Raises InvalidText."""
    if not text.strip():
        return ()
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidText(f"GPU overrides: not JSON ({error}); expected {_EXPECTED}") from error
    if not isinstance(document, list):
        raise InvalidText(f"GPU overrides: expected {_EXPECTED}")
    return tuple(_override(entry) for entry in document)


_EXPECTED: Final = (
    '[{"gpu": NAME, "smCountOverride": N, "memoryMiBOverride": N, "alignment": N, "minimum": N, "step": N}]'
)
_SIZES: Final = ("alignment", "minimum", "step")
_NUMBERS: Final[Mapping[str, int]] = {
    "smCountOverride": _MOST_SMS,
    "memoryMiBOverride": _MOST_MIB,
    **dict.fromkeys(_SIZES, _MOST_SMS),
}


def _override(entry: object) -> GpuOverride:
    if not isinstance(entry, dict) or not isinstance(entry.get("gpu"), str):
        raise InvalidText(f"GPU overrides: each entry names a GPU; expected {_EXPECTED}")
    unknown = entry.keys() - {"gpu", *_NUMBERS}
    if unknown:
        raise InvalidText(f"GPU overrides: {min(unknown)!r} is no key; expected {_EXPECTED}")
    numbers = {key: _number(key, entry[key]) for key in _NUMBERS if key in entry}
    if not numbers:
        raise InvalidText(f"GPU overrides: nothing is said of {entry['gpu']!r}; expected {_EXPECTED}")
    return GpuOverride(
        GpuName.parse(entry["gpu"]),
        sm_count=numbers.get("smCountOverride"),
        memory_mib=numbers.get("memoryMiBOverride"),
        granularity=_granularity([numbers.get(size) for size in _SIZES]),
    )


def _number(key: str, given: object) -> int:
    # bool is an int to Python, and nobody means one SM by true.
    if not isinstance(given, int) or isinstance(given, bool) or not 0 < given <= _NUMBERS[key]:
        raise InvalidText(f"GPU overrides: {key} is {given!r}; it must be a whole number from 1 to {_NUMBERS[key]}")
    return given


def _granularity(sizes: Iterable[int | None]) -> Granularity | None:
    alignment, minimum, step = sizes
    if alignment is None and minimum is None and step is None:
        return None
    if alignment is None or minimum is None or step is None:
        raise InvalidText("GPU overrides: alignment, minimum and step go together: give all three or none")
    return Granularity(alignment, minimum, step)
