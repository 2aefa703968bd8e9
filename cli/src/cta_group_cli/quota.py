"""``kubectl cta quota``: what each team may hold, and holds."""

import json
import sys
from collections.abc import Iterator, Sequence

from cta_group_cli.errors import AccessDenied
from cta_group_cli.exits import Exit
from cta_group_cli.ports import ClusterReader, Part, Quota, Unreadable
from cta_group_cli.table import table
from cta_group_cli.terminal import say
from cta_group_core.nodes import ConditionStatus
from cta_group_core.quota import CONDITION_CONFLICT, CONDITION_READY, REASON_NO_NAMESPACE

_HEADER = ("NAME", "GROUPS", "USED", "PENDING", "READY", "NAMESPACES (USED OF THEIR PART)")
_COHORT_HEADER = ("COHORT", "BORROWED", "LENT")
_COHORT_COLUMNS_AT = 4
"""Behind PENDING; they are there when a quota that is shown has a cohort."""


def show_quotas(reader: ClusterReader, *, namespace: str | None, as_json: bool) -> Exit:
    """Print all quotas, or those that a namespace has a part of; its part alone to who may not read CTAQuotas."""
    try:
        found = reader.quotas()
    except AccessDenied as refused:
        return _show_part(reader, namespace or reader.namespace, refused, as_json=as_json)
    quotas = [entry for entry in found if isinstance(entry, Quota) and (namespace is None or covers(entry, namespace))]
    say(json.dumps(_facts(quotas)) if as_json else _text(quotas, namespace))
    unreadable = [entry for entry in found if isinstance(entry, Unreadable)]
    for entry in unreadable:
        say(f"CTAQuota {entry.name} cannot be read by this version: {entry.problem}", to=sys.stderr)
    trouble = any(quota.status.pending or _ready(quota) != ConditionStatus.TRUE for quota in quotas)
    return Exit.FINDINGS if trouble or unreadable else Exit.FINE


def _show_part(reader: ClusterReader, namespace: str, refused: AccessDenied, *, as_json: bool) -> Exit:
    """Print what the namespace's own ResourceQuota says; AccessDenied when that may not be read either."""
    part = reader.part(namespace)
    if as_json:
        say(json.dumps({"quotas": [] if part is None else [_part_facts(part)]}))
    elif part is None:
        say(f"No ResourceQuota of a CTAQuota limits namespace {namespace}.")
    else:
        say(f"Namespace {namespace} has {part.share.used} of {part.share.hard} groups in use (CTAQuota {part.quota}).")
    say(f"Only the part of namespace {namespace} is shown: {refused}", to=sys.stderr)
    return Exit.FINE


def _part_facts(part: Part) -> dict[str, object]:
    return {"name": part.quota, "status": {"namespaces": [part.share.as_api()]}}


def covers(quota: Quota, namespace: str) -> bool:
    """Tell whether a namespace has a part of the quota, by what the operator has written."""
    return any(share.name == namespace for share in quota.status.namespaces)


def room_words(quota: Quota | Part, namespace: str) -> str:
    """Say what is left of a quota, in all and in one of its namespaces."""
    if isinstance(quota, Part):
        left = max(0, quota.share.hard - quota.share.used)
        return f"{quota.quota} has {left} of {quota.share.hard} groups left in namespace {namespace}"
    here = next((share for share in quota.status.namespaces if share.name == namespace), None)
    part = "" if here is None else f", {max(0, here.hard - here.used)} of {here.hard} in namespace {namespace}"
    left = max(0, quota.spec.groups - quota.status.used)
    return f"{quota.name} has {left} of {quota.spec.groups} groups left{part}"


def _facts(quotas: Sequence[Quota]) -> dict[str, object]:
    facts = [{"name": one.name, "spec": one.spec.as_api(), "status": one.status.as_api()} for one in quotas]
    return {"quotas": facts}


def _text(quotas: Sequence[Quota], namespace: str | None) -> str:
    if not quotas:
        return f"No CTAQuota limits namespace {namespace}." if namespace else "There is no CTAQuota."
    rows = [_row(quota) for quota in quotas]
    header: tuple[str, ...] = _HEADER
    if any(quota.spec.cohort for quota in quotas):
        at = _COHORT_COLUMNS_AT
        header = (*_HEADER[:at], *_COHORT_HEADER, *_HEADER[at:])
        rows = [(*row[:at], *_lending(quota), *row[at:]) for row, quota in zip(rows, quotas, strict=True)]
    remarks = [f"{quota.name}: {remark}" for quota in quotas for remark in _remarks(quota)]
    return "\n\n".join(filter(None, (table(header, rows), "\n".join(remarks))))


def _row(quota: Quota) -> tuple[str | int, ...]:
    status = quota.status
    return (quota.name, quota.spec.groups, status.used, status.pending, _ready(quota), _shares(quota))


def _lending(quota: Quota) -> tuple[str | int, ...]:
    return (quota.spec.cohort or "-", quota.status.borrowed, quota.status.lent)


def _remarks(quota: Quota) -> Iterator[str]:
    """Yield what the operator says is wrong with a quota, and the namespaces that got no part of it."""
    conflict = _conflict(quota)
    for condition in quota.status.conditions:
        good = ConditionStatus.TRUE if condition.type == CONDITION_READY else ConditionStatus.FALSE
        is_told = conflict and condition.reason == REASON_NO_NAMESPACE  # it follows from the conflict
        if condition.status is not good and condition.message and not is_told:
            yield condition.message
    absent = [name for name in quota.spec.namespaces or () if not covers(quota, name) and f" {name} (" not in conflict]
    if absent and quota.status.conditions:
        yield f"no part yet for {', '.join(absent)}: no such namespace, or another CTAQuota has it"


def _conflict(quota: Quota) -> str:
    """Return which older quotas keep which namespaces, in the operator's words; empty when none does."""
    told = (one for one in quota.status.conditions if one.type == CONDITION_CONFLICT)
    return next((one.message for one in told if one.status is ConditionStatus.TRUE), "")


def _ready(quota: Quota) -> str:
    ready = (one for one in quota.status.conditions if one.type == CONDITION_READY)
    return next((one.status.value for one in ready), ConditionStatus.UNKNOWN.value)


def _shares(quota: Quota) -> str:
    return ", ".join(f"{share.name} {share.used} of {share.hard}" for share in quota.status.namespaces) or "none"
