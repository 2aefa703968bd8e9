"""The condition ``WithinBudget`` of a workload and the numbers beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cta_group_core.bounded import shortened
from cta_group_core.budget.advice import Advice
from cta_group_core.budget.objectives import Budget
from cta_group_core.budget.outcome import Outcome, kept
from cta_group_core.budget.window import Observed
from cta_group_core.nodes import Condition, ConditionStatus
from cta_group_core.plurals import counted
from cta_group_core.workload import CONDITION_WITHIN_BUDGET, BudgetMeasured, BudgetStatus

MEASURING: Final = "Measuring"
"""Reason while the servers were not looked at twice yet."""
NOT_SERVING: Final = "NotServing"
"""Reason while no pod runs."""
_MOVED: Final = 0.2
_LONGEST_TEXT: Final = 600


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """What is told of one workload."""

    condition: Condition
    status: BudgetStatus


def judged(budget: Budget, found: Sequence[Outcome], observed: Observed, advice: Advice, note: str) -> BudgetReport:
    """Return the report of latencies that were read; ``note``: what was not, empty when nothing."""
    answer = kept(found)
    status, reason = {
        True: (ConditionStatus.TRUE, "BudgetKept"),
        False: (ConditionStatus.FALSE, "BudgetExceeded"),
        None: (ConditionStatus.UNKNOWN, "TooFewRequests" if _waits(found) else "NotMeasured"),
    }[answer]
    pods = counted(observed.pods, "pod")
    message = f"{'; '.join(map(str, found))}; over {_minutes(observed.seconds)} of {pods}{note and f' ({note})'}"
    measured = tuple(_measured(one) for one in found)
    numbers = BudgetStatus(wanted=str(budget), measured=measured, recommended_groups=advice.groups, advice=advice.text)
    return BudgetReport(_condition(status, reason, message), numbers)


def unknown(wanted: str, reason: str, message: str) -> BudgetReport:
    """Return the report where nothing could be judged."""
    return BudgetReport(
        _condition(ConditionStatus.UNKNOWN, reason, message), BudgetStatus(wanted=wanted[:_LONGEST_TEXT])
    )


def worth_telling(told: BudgetReport | None, now: BudgetReport, *, is_fresh: bool) -> bool:
    """Tell whether a report is written: at once for another budget and the first numbers, else not while it is fresh.

    Latencies move at each look, and one near its limit is now above and now below it; writing each of them would write
    every workload for ever. What was not told moves by a fifth before it is told.
    """
    if told is None:
        return True
    is_first = told.condition.reason in {MEASURING, NOT_SERVING} or (now.status.measured and not told.status.measured)
    if is_first or told.status.wanted != now.status.wanted:
        return _answer(told) != _answer(now)
    return not is_fresh and (_answer(told) != _answer(now) or _moved(told.status.measured, now.status.measured))


def _answer(report: BudgetReport) -> tuple[object, ...]:
    numbers = report.status
    known = tuple((one.name, one.observed_microseconds is None) for one in numbers.measured)
    words = "" if numbers.measured else report.condition.message
    return (report.condition.status, report.condition.reason, words, numbers.wanted, numbers.recommended_groups, known)


def _moved(before: Sequence[BudgetMeasured], now: Sequence[BudgetMeasured]) -> bool:
    pairs = [
        (one.observed_microseconds or 0, two.observed_microseconds or 0) for one, two in zip(before, now, strict=True)
    ]
    return any(abs(one - two) > _MOVED * max(one, two) for one, two in pairs)


def _waits(found: Sequence[Outcome]) -> bool:
    return any(one.is_told and one.estimate is None for one in found)


def _measured(one: Outcome) -> BudgetMeasured:
    seconds = None if one.estimate is None else one.estimate.seconds
    return BudgetMeasured(
        name=one.objective.name,
        limit_microseconds=round(one.objective.limit_seconds * 1e6),
        observed_microseconds=None if seconds is None else round(seconds * 1e6),
        observations=min(one.observations, 2**53),
    )


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"  # noqa: PLR2004 - one and a half


def _condition(status: ConditionStatus, reason: str, message: str) -> Condition:
    told = shortened(message, _LONGEST_TEXT)
    return Condition(type=CONDITION_WITHIN_BUDGET, status=status, reason=reason, message=told)
