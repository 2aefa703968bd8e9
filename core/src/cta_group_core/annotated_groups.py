"""The annotation by which a pod template asks for groups that cannot name the resource: for admission and offline."""

from collections.abc import Collection, Sequence
from typing import Final

from cta_group_core.errors import InvalidText
from cta_group_core.names import ANNOTATION_CONTAINER, ANNOTATION_GROUPS

_MOST_DIGITS: Final = 9


def annotated_groups(text: str) -> int:
    """Return how many groups the annotation asks for; raises InvalidText unless it is a whole number above 0."""
    if not (len(text) <= _MOST_DIGITS and text.isascii() and text.isdecimal() and int(text) > 0):
        raise InvalidText(f"annotation {ANNOTATION_GROUPS}: {text!r} is not a whole number above 0")
    return int(text)


def annotated_container(names: Sequence[str], named: str | None, with_gpus: Collection[int]) -> int:
    """Return the index of the container that the groups are for: the named one, the one with GPUs, the only one.

    ``names`` are those of the regular containers in order, ``named`` is what the annotation about the container says,
    and ``with_gpus`` are the indexes of those that ask for whole GPUs. Raises InvalidText where it is not one.
    """
    if named is not None:
        found = [index for index, name in enumerate(names) if name == named]
    else:
        found = sorted(with_gpus) or list(range(len(names)))
    if len(found) != 1:
        told = ", ".join(names)
        raise InvalidText(
            f"annotation {ANNOTATION_GROUPS}: which of {told} gets the groups? Say {ANNOTATION_CONTAINER}"
        )
    return found[0]
