"""The annotations under ``ctagroup.dev/`` that people write at pods and workloads, and how each of them is read.

One that cannot be read decides nothing, wherever it is looked at. Its writer is told here: at the pod's admission, and
offline by ``kubectl cta align``.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Final

from cta_group_core import names
from cta_group_core.access_pattern import read_pattern
from cta_group_core.align_mode import parse_align_mode
from cta_group_core.annotated_groups import annotated_groups
from cta_group_core.budget.objectives import Budget
from cta_group_core.budget.target import metrics_port
from cta_group_core.cluster_shape import parse_shape
from cta_group_core.errors import InvalidText

_SHOWN: Final = 63
_PREFIX: Final = f"{names.API_GROUP}/"


def _switch(text: str) -> bool:
    if text not in {"true", "false"}:
        raise InvalidText(f"annotation {names.ANNOTATION_MULTI_CONTAINER}: {text[:_SHOWN]!r} is none of true, false")
    return text == "true"


OF_USERS: Final[Mapping[str, Callable[[str], object]]] = {
    names.ANNOTATION_GROUPS: annotated_groups,
    names.ANNOTATION_CONTAINER: str,  # any name; whether the pod has such a container is said where it is looked for
    names.ANNOTATION_ALIGN: parse_align_mode,
    names.ANNOTATION_BUDGET: Budget.parse,
    names.ANNOTATION_METRICS_PORT: metrics_port,
    names.ANNOTATION_ACCESS_PATTERN: read_pattern,
    names.ANNOTATION_SHAPE: parse_shape,
    names.ANNOTATION_MULTI_CONTAINER: _switch,
}
"""What people write at pods, and what reads it or raises :class:`InvalidText`."""

OF_OTHERS: Final = frozenset(
    {
        names.ANNOTATION_REPAIRED,
        names.ANNOTATION_ALIGNMENT,
        names.ANNOTATION_ALIGNMENT_ADVICE,
        names.ANNOTATION_RUNTIME_ADVICE,
        names.ANNOTATION_PLACEMENT,
        names.ANNOTATION_WITHOUT_WEBHOOK,
        names.ANNOTATION_POKED,
    }
)
"""What the operator writes, and what people write at other objects."""


def unreadable(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return those of our annotations that nobody can read, each with a sentence: what was given, what is allowed."""
    ours = sorted(name for name in annotations if name.startswith(_PREFIX) and name not in OF_OTHERS)
    return {name: wrong for name in ours if (wrong := _problem(name, annotations[name]))}


def _problem(name: str, text: str) -> str:
    read = OF_USERS.get(name)
    if read is None:
        return _unknown(name)
    try:
        read(text)
    except InvalidText as wrong:
        return str(wrong)
    return ""


def _unknown(name: str) -> str:
    near = get_close_matches(name.removeprefix(_PREFIX), [one.removeprefix(_PREFIX) for one in OF_USERS], n=1)
    if near:
        return f"annotation {name} is not known; perhaps {_PREFIX}{near[0]} is meant"
    there = ", ".join(one.removeprefix(_PREFIX) for one in OF_USERS)
    return f"annotation {name} is not known; there are {there}"
