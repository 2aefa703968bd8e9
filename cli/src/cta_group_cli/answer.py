"""What ``kubectl cta explain`` answers, as a value and in its two printed forms."""

from collections.abc import Sequence
from dataclasses import dataclass

from cta_group_cli.kinds import Reference
from cta_group_cli.ports import Part, Quota
from cta_group_cli.table import table
from cta_group_cli.workload_words import facts_of
from cta_group_core.nodes import Condition
from cta_group_core.quota import NamespaceShare
from cta_group_core.workload import WorkloadStatus

_FACTS = {"budget", "ceiling", "rollout", "server"}


@dataclass(frozen=True, slots=True)
class Answer:
    """Why an object does not run, and the facts below."""

    reference: Reference
    message: str
    """One sentence."""
    blocked: bool
    """Whether something is in the way that does not go away by waiting a moment for a container to start."""
    source: str
    """Who says so: the operator, or the objects themselves."""
    groups_per_pod: int = 0
    wanted: int = 0
    running: int = 0
    conditions: Sequence[Condition] = ()
    quotas: Sequence[Quota | Part] = ()
    remarks: Sequence[str] = ()
    """Further sentences, such as what the pod's workload says."""
    told: WorkloadStatus | None = None
    """What the operator wrote, where it did."""

    def as_json(self) -> dict[str, object]:
        """Return the facts for programs."""
        return {
            "kind": self.reference.kind.name,
            "namespace": self.reference.namespace,
            "name": self.reference.name,
            "message": self.message,
            "blocked": self.blocked,
            "source": self.source,
            "groupsPerPod": self.groups_per_pod,
            "replicasWanted": self.wanted,
            "replicasRunning": self.running,
            "conditions": [condition.as_api() for condition in self.conditions],
            "quotas": [_quota_facts(quota, self.reference.namespace) for quota in self.quotas],
            "remarks": list(self.remarks),
            **(
                {} if self.told is None else {name: fact for name, fact in self.told.as_api().items() if name in _FACTS}
            ),
        }

    def as_text(self) -> str:
        """Return the sentence, then the facts, for people."""
        parts = [f"{self.reference}: {self.message}", *self.remarks]
        if self.groups_per_pod:
            parts.append(self._numbers())
        if self.conditions:
            parts.append(
                table(("CONDITION", "STATUS", "REASON", "SINCE"), [_condition(one) for one in self.conditions])
            )
        return "\n\n".join(parts)

    def _numbers(self) -> str:
        facts = {"groups per pod": f"{self.groups_per_pod}", "pods": f"{self.running} of {self.wanted} running"}
        facts |= dict(_quota_words(quota, self.reference.namespace) for quota in self.quotas)
        facts |= {} if self.told is None else facts_of(self.told)
        facts |= {"told by": self.source}
        width = max(map(len, facts)) + 1
        return "\n".join(f"{name + ':':<{width}} {fact}" for name, fact in facts.items())


def _condition(condition: Condition) -> tuple[str, str, str, str]:
    return (condition.type, condition.status.value, condition.reason, condition.last_transition_time or "-")


def _quota_facts(quota: Quota | Part, namespace: str) -> dict[str, object]:
    if isinstance(quota, Part):
        return {"name": quota.quota, "namespace": quota.share.as_api()}
    return {
        "name": quota.name,
        "groups": quota.spec.groups,
        "used": quota.status.used,
        "pending": quota.status.pending,
        "namespace": _share(quota, namespace).as_api(),
    }


def _quota_words(quota: Quota | Part, namespace: str) -> tuple[str, str]:
    """Return the name of the fact and the fact."""
    if isinstance(quota, Part):
        return f"quota {quota.quota}", _share_words(quota.share)
    whole = f"{quota.status.used} of {quota.spec.groups} groups used, {quota.status.pending} pending"
    return f"quota {quota.name}", f"{whole}; {_share_words(_share(quota, namespace))}"


def _share(quota: Quota, namespace: str) -> NamespaceShare:
    return next(share for share in quota.status.namespaces if share.name == namespace)


def _share_words(share: NamespaceShare) -> str:
    return f"namespace {share.name}: {share.used} of {share.hard}"
