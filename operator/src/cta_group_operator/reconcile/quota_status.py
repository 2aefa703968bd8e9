"""What a CTAQuota's status says about a snapshot. Pure."""

from collections.abc import Sequence

from cta_group_core.nodes import Condition, ConditionStatus
from cta_group_core.quota import (
    CONDITION_CONFLICT,
    CONDITION_FOREIGN,
    CONDITION_OVERCOMMITTED,
    CONDITION_READY,
    NamespaceShare,
    QuotaStatus,
    quota_key,
)
from cta_group_core.quota_split import Split
from cta_group_operator.ports import LimitView, QuotaView
from cta_group_operator.reconcile.quota_scope import Scope

_NAMES_TOLD = 5


def quota_status(
    quota: QuotaView, scope: Scope, plan: Split, refused: Sequence[str], resource_name: str
) -> QuotaStatus:
    """Return the status without transition times. ``refused``: writes that the API server did not take, in words."""
    shares = tuple(
        NamespaceShare(name=share.namespace, hard=share.hard or 0, used=share.used, pending=sum(share.denied))
        for share in scope.shares
    )
    return QuotaStatus(
        observed_generation=quota.generation,
        groups=sum(share.hard for share in shares),
        used=sum(share.used for share in shares),
        pending=sum(share.pending for share in shares),
        namespaces=shares,
        conditions=(
            _ready(scope, plan, refused),
            _overcommitted(quota, scope, plan),
            _conflict(scope),
            _foreign(scope, resource_name),
        ),
    )


def _ready(scope: Scope, plan: Split, refused: Sequence[str]) -> Condition:
    if refused:
        return _condition(CONDITION_READY, "WriteRefused", "; ".join(refused), holds=False)
    if scope.taken:
        told = f"a ResourceQuota that people made has the name cta-group in {_names(scope.taken)}; rename that one"
        return _condition(CONDITION_READY, "NameTaken", told, holds=False)
    if not scope.shares:
        return _condition(CONDITION_READY, "NoNamespace", "no namespace that exists belongs to this quota", holds=False)
    if not plan.is_settled or scope.leaving:
        told = f"moving groups; waits for room: {_names(plan.waiting)}" if plan.waiting else "moving groups"
        return _condition(CONDITION_READY, "Sharing", told, holds=False)
    behind = [space for space, limit in scope.limits.items() if limit.enforced != limit.hard or limit.used is None]
    if behind:
        told = f"the API server does not enforce the newest limit yet in {_names(behind)}"
        return _condition(CONDITION_READY, "NotEnforcedYet", told, holds=False)
    return _condition(CONDITION_READY, "Enforced", "", holds=True)


def _overcommitted(quota: QuotaView, scope: Scope, plan: Split) -> Condition:
    if not plan.overcommitted:
        return _condition(CONDITION_OVERCOMMITTED, "WithinGroups", "", holds=False)
    used = sum(share.used for share in scope.shares)
    told = f"pods hold {used} groups, quota {quota.spec.groups}: no new pod is let in until they hold less"
    return _condition(CONDITION_OVERCOMMITTED, "QuotaLowered", told, holds=True)


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
