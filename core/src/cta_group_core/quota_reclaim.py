"""Which pods are deleted so that a quota gets back what it owns and has lent.

Only pods of quotas that hold more than they own, the lowest priority first, the newest first among equals, and none
when all of them together would not let a single pod in: a deletion that helps nobody is never made.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pod that could be deleted. ``groups``: what it is charged for."""

    uid: str
    quota: str
    groups: int
    priority: int = 0
    created: str = ""
    """RFC 3339; texts of one format compare as their moments do."""


def victims(candidates: Iterable[Candidate], borrowed: Mapping[str, int], owed: int, least: int) -> list[Candidate]:
    """Choose pods whose groups together are ``owed``, or as many of them as there are.

    ``borrowed``: what each quota holds above its own; a quota gives no more pods once it has given that much. Groups of
    pods that end already are no part of ``owed``. ``least``: the part of it that would let a pod in.
    """
    left = dict(borrowed)
    chosen: list[Candidate] = []
    found = 0
    for pod in sorted(candidates, key=_order):
        if found >= owed:
            break
        if left.get(pod.quota, 0) > 0:
            left[pod.quota] -= pod.groups
            found += pod.groups
            chosen.append(pod)
    if found < least:
        return []
    return _without_needless(chosen, found - owed)


def _order(pod: Candidate) -> tuple[int, list[int], str]:
    newest_first = [-ord(letter) for letter in pod.created]
    return (pod.priority, newest_first, pod.uid)


def _without_needless(chosen: list[Candidate], spare: int) -> list[Candidate]:
    """Let those live that are not needed after all, the highest priority and the oldest first."""
    needed: list[Candidate] = []
    for pod in reversed(chosen):
        if pod.groups <= spare:
            spare -= pod.groups
        else:
            needed.append(pod)
    return needed[::-1]
