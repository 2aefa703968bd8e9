"""What a container's command line is read against: its variables, and files that are known."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

LONGEST_TEXT = 16_384
"""A longer value counts as unknown: variables that hold each other twice would fill the memory."""
_NAME = re.compile(r"\$(?:\$|\(([^)]*)\))")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Everything outside ``command`` and ``args`` that decides what they mean."""

    variables: Mapping[str, str | None] = field(default_factory=dict)
    """The container's environment; None where a variable is set to something that is not known here (a Secret)."""
    more_variables: bool = False
    """True: there are variables whose names are not known (``envFrom`` of something that is not at hand)."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Text of files in the container, by absolute path: scripts of mounted ConfigMaps."""
    configs: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Those of the files that hold a YAML mapping, parsed."""


NOTHING = Surroundings()


@dataclass(frozen=True, slots=True)
class Expanded:
    """A text after variables were put in."""

    text: str
    unresolved: tuple[str, ...] = ()
    """References that stayed as they were written, because their value is not known."""


def expand_references(text: str, variables: Mapping[str, str | None]) -> Expanded:
    """Replace ``$(NAME)`` as kubelet does; ``$$`` is a dollar sign.

    Kubelet leaves the reference to a variable that does not exist as it is. Here it counts as unresolved, since an
    image, a service or another webhook may bring the variable.
    """
    unresolved: list[str] = []
    room = LONGEST_TEXT

    def replaced(match: re.Match[str]) -> str:
        nonlocal room
        name = match.group(1)
        if name is None:
            return "$"
        value = variables.get(name)
        room -= len(value or "")
        if value is None or room < 0:
            unresolved.append(match.group(0))
            return match.group(0)
        return value

    # Without a ")" behind it a "$(" is none; looking for one from each of many would take hours.
    end = text.rfind(")") + 1
    return Expanded(_NAME.sub(replaced, text[:end]) + text[end:].replace("$$", "$"), tuple(unresolved))


def resolve_variables(given: Iterable[tuple[str, str | None]]) -> dict[str, str | None]:
    """Return a container's variables in the order given, with references to earlier ones put in; the last wins."""
    found: dict[str, str | None] = {}
    for name, text in given:
        if text is None:
            found[name] = None
            continue
        expanded = expand_references(text, found)
        known = not expanded.unresolved and len(expanded.text) <= LONGEST_TEXT
        found[name] = expanded.text if known else None
    return found
