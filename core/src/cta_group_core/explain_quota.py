"""Why a CTAQuota keeps a pod from being created, in words with numbers, and what would help."""

from collections.abc import Sequence
from dataclasses import dataclass

from cta_group_core.ending_pods import EndingPod, coming_back


@dataclass(frozen=True, slots=True)
class QuotaFacts:
    """The quota that a workload's namespace belongs to, now. Numbers in groups."""

    name: str
    """Of the CTAQuota."""
    groups: int
    used: int
    """Over all its namespaces."""
    share: int
    """Limit of this namespace alone."""
    share_used: int
    namespaces: int = 1
    cohort: str = ""
    reachable: int | None = None
    """What it could hold now with its cohort: its own and what it may borrow, less what others hold of it. None: its
    own groups."""
    ending: Sequence[EndingPod] = ()
    obstacle: str = ""
    """What keeps its limits from being written, in words; empty while nothing does."""
    at_most: int | None = None
    """What it could hold if no other of its cohort held anything. None: its own groups."""

    @property
    def ever(self) -> int:
        """The most that it can hold while nobody changes a quota."""
        return self.groups if self.at_most is None else self.at_most

    @property
    def most(self) -> int:
        """What it could hold now."""
        return self.groups if self.reachable is None else self.reachable


def denied_by(quota: QuotaFacts, needs: int, *, missing: int) -> tuple[str, str]:
    """Return reason and words for a pod of ``needs`` groups. ``missing``: pods of its workload that do not exist."""
    if quota.share_used + needs <= quota.share:
        told = f"CTAQuota {quota.name} has room again ({quota.share_used} of {quota.share} used)"
        return "QuotaRetry", f"{told}; tried again in a moment"
    short = quota.used + needs - quota.most
    if short <= 0:
        left = f"needs {needs}, and CTAQuota {quota.name} has {quota.most - quota.used} of {quota.most} left"
        part = f"to this namespace (its part is {quota.share}, used {quota.share_used})"
        if quota.obstacle:
            return "QuotaNotMoved", f"{left}, which cannot be moved {part}: {quota.obstacle}"
        return "QuotaMoving", f"{left}, which are being moved {part}"
    if quota.used + needs <= quota.groups:
        return (
            "QuotaLent",
            f"{_numbers(quota, needs, short)}; what others of the cohort hold comes back as pods there end",
        )
    told = (
        f"{_numbers(quota, needs, short)}{_and_coming_back(quota)}; end or shrink something there, "
        f"or raise its spec.groups to {quota.used + needs * max(1, missing)}"
        f"{'' if missing else ', or set maxSurge: 0 when this is a rollout'}"
    )
    return "QuotaExceeded", told


def _numbers(quota: QuotaFacts, needs: int, short: int) -> str:
    over = f" over {quota.namespaces} namespaces" if quota.namespaces > 1 else ""
    lending = ""
    if quota.most > quota.groups:
        lending = f" and {quota.most - quota.groups} from cohort {quota.cohort}"
    elif quota.most < quota.groups:
        lending = f" of which {quota.groups - quota.most} are lent to cohort {quota.cohort}"
    return (
        f"needs {needs}, quota {quota.groups}{lending}, used {quota.used}, short {short} (CTAQuota {quota.name}{over})"
    )


def _and_coming_back(quota: QuotaFacts) -> str:
    told = coming_back(quota.ending)
    return f"; {told}" if told else ""
