"""Whether each objective of a budget was kept, and the sentence with the numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cta_group_core.budget.histogram import Estimate
from cta_group_core.budget.objectives import Budget, Objective, duration
from cta_group_core.budget.window import Observed


@dataclass(frozen=True, slots=True)
class Outcome:
    """One objective beside what was observed."""

    objective: Objective
    estimate: Estimate | None
    """None while there are too few observations, or none of that measure."""
    observations: int
    is_told: bool = True
    """False: the servers have no metric for it."""

    @property
    def is_kept(self) -> bool | None:
        """Tell whether it was kept; None where that is not known."""
        if self.estimate is None:
            return None
        if math.isinf(self.estimate.high):  # the quantile is beyond the last bound, and how far nobody knows
            return None if self.objective.limit_seconds > self.estimate.low else False
        return self.estimate.seconds <= self.objective.limit_seconds

    @property
    def ratio(self) -> float | None:
        """Return the latency as a share of its limit."""
        return None if self.estimate is None else self.estimate.seconds / self.objective.limit_seconds

    @property
    def ratio_at_most(self) -> float:
        """Return what that share cannot be above: the bound of the bucket; infinite where it is not known."""
        return math.inf if self.estimate is None else self.estimate.high / self.objective.limit_seconds

    def __str__(self) -> str:
        name, limit = self.objective.name, duration(self.objective.limit_seconds)
        if not self.is_told:
            return f"{name} is not told by these servers (limit {limit})"
        if self.estimate is None:
            return f"{name} is not known from {self.observations} observations, {self.objective.needed} are needed"
        low, high = duration(self.estimate.low), duration(self.estimate.high)
        if math.isinf(self.estimate.high):
            return f"{name} is more than {low}, where vLLM's buckets end (limit {limit})"
        return f"{name} is about {duration(self.estimate.seconds)} (between {low} and {high}; limit {limit})"


def outcomes(budget: Budget, observed: Observed) -> tuple[Outcome, ...]:
    """Return each objective with what was observed, in the order of the budget."""
    return tuple(_outcome(one, observed) for one in budget.objectives)


def kept(found: Sequence[Outcome]) -> bool | None:
    """Tell whether all were kept: False when one was not, else None when one is not known."""
    each = [one.is_kept for one in found]
    if False in each:
        return False
    return None if None in each else True


def _outcome(objective: Objective, observed: Observed) -> Outcome:
    histogram = observed.latencies.get(objective.measure)
    if histogram is None:
        return Outcome(objective, None, 0, is_told=False)
    count = int(histogram.total)
    estimate = histogram.quantile(objective.quantile) if count >= objective.needed else None
    return Outcome(objective, estimate, count)
