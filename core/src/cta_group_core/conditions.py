"""Conditions over time: what is told now, with the moment since when it is so."""

from collections.abc import Iterable

from cta_group_core.nodes import Condition


def merge_conditions(before: Iterable[Condition], now: Iterable[Condition], moment: str) -> tuple[Condition, ...]:
    """Return ``now`` with transition times: the old one where the status is the same, else ``moment`` (RFC 3339)."""
    known = {condition.type: condition for condition in before}
    return tuple(_since(known.get(condition.type), condition, moment) for condition in now)


def _since(before: Condition | None, now: Condition, moment: str) -> Condition:
    same = before is not None and before.status is now.status and before.last_transition_time
    return now.model_copy(update={"last_transition_time": same or moment})
