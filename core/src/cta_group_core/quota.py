"""CTAQuota: how many groups a team may hold. The schema is ``crds/``; these are its types.

It is enforced by ordinary ResourceQuota objects, one in each namespace; how the groups are shared between them is in
:mod:`cta_group_core.quota_split`.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from cta_group_core.bounded import Count
from cta_group_core.nodes import ApiModel, Condition
from cta_group_core.selectors import LabelSelector

CONDITION_READY = "Ready"
"""True while every namespace of the quota is limited as its status says."""
REASON_NO_NAMESPACE = "NoNamespace"
"""Of ``Ready`` while no namespace that exists has a part of the quota."""
REASON_WRITE_REFUSED = "WriteRefused"
"""Of ``Ready``, while the API server does not take what the operator writes."""
CONDITION_OVERCOMMITTED = "Overcommitted"
"""True while pods hold more than ``groups``, because the quota came after them or was lowered."""
CONDITION_CONFLICT = "NamespaceConflict"
"""True while another, older CTAQuota selects a namespace of this one too and keeps it."""
CONDITION_RECLAIMING = "Reclaiming"
"""True while pods wait for groups that the quota owns and has lent to others of its cohort."""
CONDITION_STALE = "UsageStale"
"""True while the cluster charges groups to no pod that is known: its count is behind, or pods lack our label."""
CONDITION_UNCHARGED = "HeldUncharged"
"""True while GPUs hold groups for pods that Kubernetes charges no longer, as on a node that is lost."""
CONDITION_FOREIGN = "ForeignResourceQuota"
"""True while a ResourceQuota that people made limits, or pretends to limit, the same resource."""


class Reclaim(StrEnum):
    """How a quota gets back what it owns and has lent, when its own pods need it."""

    WAIT = "wait"
    """It comes back as pods of the borrowers end."""
    DELETE = "delete"
    """Pods of the borrowers are deleted: the lowest priority first, the newest first among equals."""


class PerPod(ApiModel):
    """Bounds of a single pod, enforced by an admission policy of the chart."""

    max: int = Field(ge=1)


class QuotaSpec(ApiModel):
    """What a person wants: ``groups`` over the namespaces named, or over those that the selector matches."""

    groups: int = Field(ge=0)
    namespaces: tuple[str, ...] | None = None
    namespace_selector: LabelSelector | None = None
    per_pod: PerPod | None = None
    cohort: str | None = None
    """Quotas of one cohort lend each other what they do not need."""
    borrowing_limit: int | None = Field(default=None, ge=0)
    """Most groups above its own; None: whatever the cohort has. Without a cohort nothing is borrowed."""
    reclaim: Reclaim | None = None
    """None: wait."""

    @property
    def most_borrowed(self) -> int | None:
        """Groups that it may hold above its own; None: no bound but what the cohort has."""
        return self.borrowing_limit if self.cohort else 0

    def allows_pod(self, groups: int) -> bool:
        """Tell whether a single pod may ask for so many groups."""
        return self.per_pod is None or groups <= self.per_pod.max

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Tell whether a namespace belongs to this quota. Neither list nor selector: no namespace does."""
        if self.namespaces is not None:
            return namespace in self.namespaces
        return self.namespace_selector is not None and self.namespace_selector.matches(labels)


SHARES_MOST: Final = 5000
"""``maxItems`` of ``crds/``. Groups, use and limits of a quota are over all its namespaces all the same."""


class NamespaceShare(ApiModel):
    """The part of a quota that one namespace has."""

    name: str
    hard: Count
    used: Count
    pending: Count = 0
    """Groups of pods that this share keeps from being created."""


def _first_shares(shares: tuple[NamespaceShare, ...]) -> tuple[NamespaceShare, ...]:
    return shares[:SHARES_MOST]


class QuotaStatus(ApiModel):
    """What the operator observes; written by it alone."""

    observed_generation: int | None = None
    groups: Count = 0
    used: Count = 0
    pending: Count = 0
    uncharged: Count = 0
    """Groups that GPUs hold for its pods and ``used`` leaves out: these pods should be gone, and are not."""
    borrowed: Count = 0
    """Groups above its own that it may give its namespaces now."""
    lent: Count = 0
    """Groups of its own that others of the cohort may give theirs now."""
    namespaces: Annotated[tuple[NamespaceShare, ...], AfterValidator(_first_shares)] = ()
    """The first :data:`SHARES_MOST` by name."""
    conditions: tuple[Condition, ...] = ()


def quota_key(resource_name: str) -> str:
    """Return the key of a ResourceQuota that the API server enforces for an extended resource.

    Only the ``requests.`` form is: it accepts ``limits.`` and the bare name too, and never enforces them (Kubernetes
    1.37, quota evaluator of pods).
    """
    return f"requests.{resource_name}"


def unenforced_keys(resource_name: str) -> tuple[str, ...]:
    """Return the spellings that the API server accepts in a ResourceQuota and silently ignores."""
    return (f"limits.{resource_name}", resource_name)
