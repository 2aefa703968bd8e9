"""What a CTAQuota's status says about a snapshot. Pure."""

from collections.abc import Mapping, Sequence

from cta_group_core.names import LABEL_REQUESTS
from cta_group_core.nodes import Condition, ConditionStatus
from cta_group_core.quota import (
    CONDITION_CONFLICT,
    CONDITION_FOREIGN,
    CONDITION_OVERCOMMITTED,
    CONDITION_READY,
    CONDITION_RECLAIMING,
    CONDITION_STALE,
    CONDITION_UNCHARGED,
    REASON_NO_NAMESPACE,
    REASON_WRITE_REFUSED,
    NamespaceShare,
    QuotaStatus,
    Reclaim,
    quota_key,
)
from cta_group_core.quota_plan import MemberPlan
from cta_group_operator.ports import LimitView, QuotaView
from cta_group_operator.reconcile.quota_scope import Scope
from cta_group_operator.reconcile.quota_snapshot import Snapshot
from cta_group_operator.reconcile.quota_uncharged import Holder, Uncharged

_NAMES_TOLD = 5


def quota_status(
    quota: QuotaView,
    snapshot: Snapshot,
    *,
    refused: Sequence[str],
    kept: Sequence[str] = (),
    stale: Mapping[str, int],
    uncharged: Uncharged,
    resource_name: str,
) -> QuotaStatus:
    """Return the status without transition times.

    ``refused``: writes that the API server did not take, in words; ``kept``: deletions of pods. ``stale``: groups that
    are charged to nobody, by namespace.
    """
    name = quota.ref.name
    scope, standing = snapshot.scopes[name], snapshot.standing[name]
    shares = tuple(
        NamespaceShare(name=share.namespace, hard=share.hard or 0, used=share.used, pending=sum(share.denied))
        for share in scope.shares
    )
    return QuotaStatus(
        observed_generation=quota.generation,
        groups=sum(share.hard for share in shares),
        used=sum(share.used for share in shares),
        pending=sum(share.pending for share in shares),
        uncharged=uncharged.groups,
        borrowed=max(0, standing.entitled - quota.spec.groups),
        lent=max(0, quota.spec.groups - standing.entitled),
        namespaces=shares,
        conditions=(
            _ready(scope, snapshot.plan.members[name], refused),
            _overcommitted(quota, scope, standing),
            _reclaiming(quota, snapshot, kept),
            _stale(stale),
            _uncharged(uncharged),
            _conflict(scope),
            _foreign(scope, resource_name),
        ),
    )


def _ready(scope: Scope, plan: MemberPlan, refused: Sequence[str]) -> Condition:
    obstacle = _obstacle(scope, refused) or _unfinished(scope, plan)
    if obstacle is None:
        return _condition(CONDITION_READY, "Enforced", "", holds=True)
    return _condition(CONDITION_READY, *obstacle, holds=False)


def _obstacle(scope: Scope, refused: Sequence[str]) -> tuple[str, str] | None:
    """Return reason and words of what people must mend."""
    if refused:
        more = f" (and {len(refused) - _NAMES_TOLD} more)" if len(refused) > _NAMES_TOLD else ""
        return REASON_WRITE_REFUSED, "; ".join(refused[:_NAMES_TOLD]) + more
    if scope.taken:
        told = f"a ResourceQuota that people made has the name cta-group in {_names(scope.taken)}; rename that one"
        return "NameTaken", told
    if not scope.shares:
        return REASON_NO_NAMESPACE, "no namespace that exists belongs to this quota"
    return None


def _unfinished(scope: Scope, plan: MemberPlan) -> tuple[str, str] | None:
    """Return reason and words of what is on its way."""
    if uncounted := [space for space, limit in scope.limits.items() if None in (limit.enforced, limit.used)]:
        told = (
            f"quota not initialised yet by the cluster in {_names(uncounted)}: pods that ask for groups are refused "
            "there until kube-controller-manager has counted"
        )
        return "NotInitialised", told
    if not plan.is_settled or scope.leaving:
        return "Sharing", f"moving groups; waits for room: {_names(plan.waiting)}" if plan.waiting else "moving groups"
    if behind := [space for space, limit in scope.limits.items() if limit.enforced != limit.hard]:
        return "NotEnforcedYet", f"the API server does not enforce the newest limit yet in {_names(behind)}"
    return None


def _overcommitted(quota: QuotaView, scope: Scope, standing: MemberPlan) -> Condition:
    if not standing.overcommitted:
        return _condition(CONDITION_OVERCOMMITTED, "WithinGroups", "", holds=False)
    used = sum(share.used for share in scope.shares)
    may = f"quota {quota.spec.groups}"
    if quota.spec.cohort:
        may += f", {standing.entitled} with what cohort {quota.spec.cohort} lends"
    told = f"pods hold {used} groups, {may}: no new pod is let in until they hold less"
    return _condition(CONDITION_OVERCOMMITTED, "QuotaLowered", told, holds=True)


def _reclaiming(quota: QuotaView, snapshot: Snapshot, kept: Sequence[str]) -> Condition:
    owed = snapshot.standing[quota.ref.name].owed
    if not owed:
        return _condition(CONDITION_RECLAIMING, "NothingOwed", "", holds=False)
    borrowers = {
        one.ref.name: snapshot.standing[one.ref.name].entitled - one.spec.groups
        for one in snapshot.quotas
        if snapshot.standing[one.ref.name].entitled > one.spec.groups
    }
    told = ", ".join(f"{amount} to {name}" for name, amount in sorted(borrowers.items())[:_NAMES_TOLD])
    told = f"denied pods need {owed} groups of this quota that are lent ({told}); they come back as pods there end"
    if quota.spec.reclaim is Reclaim.DELETE and kept:
        told = f"{told}; the API server does not let the operator delete pods for them: {kept[0]}"
        return _condition(CONDITION_RECLAIMING, "DeletionRefused", told, holds=True)
    if quota.spec.reclaim is Reclaim.DELETE:
        return _condition(CONDITION_RECLAIMING, "Deleting", f"{told}, and pods are deleted for them", holds=True)
    return _condition(CONDITION_RECLAIMING, "Waiting", told, holds=True)


def _stale(stale: Mapping[str, int]) -> Condition:
    if not stale:
        return _condition(CONDITION_STALE, "Counted", "", holds=False)
    told = ", ".join(f"{groups} in {space}" for space, groups in sorted(stale.items())[:_NAMES_TOLD])
    told = (
        f"groups are charged to no pod that is known ({told}) and count as used: kube-controller-manager has not "
        f"counted since their pods ended, or pods that hold them lack the label {LABEL_REQUESTS}"
    )
    return _condition(CONDITION_STALE, "ChargedToNobody", told, holds=True)


def _uncharged(uncharged: Uncharged) -> Condition:
    if not uncharged.groups:
        return _condition(CONDITION_UNCHARGED, "AllCharged", "", holds=False)
    told = "; ".join(map(_holder_words, uncharged.holders[:_NAMES_TOLD]))
    more = f" and {len(uncharged.holders) - _NAMES_TOLD} more" if len(uncharged.holders) > _NAMES_TOLD else ""
    told = (
        f"GPUs hold {uncharged.groups} groups that used leaves out ({told}{more}): Kubernetes charges nobody for a pod "
        "that should be gone; placement counts them until the node says that they are free"
    )
    return _condition(CONDITION_UNCHARGED, "HeldByGonePods", told, holds=True)


def _holder_words(holder: Holder) -> str:
    lost = ", which is not heard of" if holder.node_lost else ""
    return f"{holder.groups} by pod {holder.pod} of {holder.namespace} on {holder.node}{lost}"


def _conflict(scope: Scope) -> Condition:
    if not scope.lost:
        return _condition(CONDITION_CONFLICT, "NoConflict", "", holds=False)
    told = ", ".join(f"{space} (CTAQuota {keeper})" for space, keeper in sorted(scope.lost.items())[:_NAMES_TOLD])
    who = "1 namespace belongs" if len(scope.lost) == 1 else f"{len(scope.lost)} namespaces belong"
    told = f"{who} to an older CTAQuota: {told}"
    return _condition(CONDITION_CONFLICT, "KeptByOlder", told, holds=True)


def _foreign(scope: Scope, resource_name: str) -> Condition:
    if not scope.foreign:
        return _condition(CONDITION_FOREIGN, "NoneFound", "", holds=False)
    first = min(scope.foreign, key=lambda limit: (limit.ref.namespace, limit.ref.name))
    more = f" (and {len(scope.foreign) - 1} more)" if len(scope.foreign) > 1 else ""
    reason, told = _about_foreign(first, resource_name)
    return _condition(CONDITION_FOREIGN, reason, f"{told}{more}", holds=True)


def _about_foreign(limit: LimitView, resource_name: str) -> tuple[str, str]:
    where = f"ResourceQuota {limit.ref.name} in namespace {limit.ref.namespace}"
    if limit.ignored_keys:
        enforced = quota_key(resource_name)
        return "KeyNotEnforced", f"{where}: Kubernetes never enforces {limit.ignored_keys[0]}; write {enforced}"
    return "AlsoLimits", f"{where} limits the same groups to {limit.hard}; the smaller limit counts"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_TOLD} more" if len(names) > _NAMES_TOLD else ""
    return ", ".join(sorted(names)[:_NAMES_TOLD]) + more


def _condition(kind: str, reason: str, message: str, *, holds: bool) -> Condition:
    status = ConditionStatus.TRUE if holds else ConditionStatus.FALSE
    return Condition(type=kind, status=status, reason=reason, message=message)
