"""Whether a parsed YAML document is larger than it looks: aliases that hold aliases, or themselves.

Go through such a document once and it takes hours; print it and it fills the memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

_MOST_REPEATED: Final = 100_000
"""Values that aliases may add to a document; Kubernetes' own parser stops in this order of size too."""
_TEXT_UNIT: Final = 64


def is_boundless(value: Any) -> bool:
    """Tell whether aliases make more of a document than anybody means, or a value holds itself."""
    counted = _Counted()
    try:
        return counted.size_of(value) - counted.written > _MOST_REPEATED
    except RecursionError:
        return True


@dataclass(slots=True)
class _Counted:
    sizes: dict[int, int] = field(default_factory=dict)
    """By identity: a value that several aliases name is one object. One that is open holds itself."""
    written: int = 0
    """Values as they are written, each alias once."""

    def size_of(self, value: Any) -> int:
        """Return how many values it is when every alias is followed; a value that holds itself is too many."""
        if id(value) in self.sizes:
            self.written += 1
            return self.sizes[id(value)]
        own = 1 + len(value) // _TEXT_UNIT if isinstance(value, str) else 1
        self.written += own
        if isinstance(value, dict | list | tuple | set):
            self.sizes[id(value)] = _MOST_REPEATED * 1000
            own += sum(map(self.size_of, _parts(value)))
        if isinstance(value, str | dict | list | tuple | set):
            self.sizes[id(value)] = own
        return own


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.keys()
        yield from value.values()
    else:
        yield from value
