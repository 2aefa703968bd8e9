"""Examines this node and prints what is wrong, for people or for programs."""

import asyncio
import json
import time
from collections.abc import Sequence

from cta_group_core.compatibility.findings import Finding, need_a_person
from cta_group_core.nodes import NodeStatus
from cta_group_core.plurals import counted
from cta_group_plugin.doctor.findings import findings_of
from cta_group_plugin.doctor.gather import DoctorSettings, Examination, examine
from cta_group_plugin.inventory import Offer, offer_of
from cta_group_plugin.ledger import Ledger
from cta_group_plugin.ports import Inventory
from cta_group_plugin.report import as_api
from cta_group_plugin.state import NodeView
from cta_group_plugin.status import status_of

_FINE, _FINDINGS = 0, 1


def run(settings: DoctorSettings, *, as_json: bool) -> int:
    """Print what is wrong with this node; return 1 when something needs a person, else 0. Raises BadSetting."""
    found = asyncio.run(examine(settings))
    findings = findings_of(found, published(found, settings), settings)
    print(json.dumps(_facts(settings, findings)) if as_json else _text(settings, findings))
    return _FINDINGS if need_a_person(findings) else _FINE


def published(found: Examination, settings: DoctorSettings) -> NodeStatus:
    """Return the node as the plugin would publish it, from what was answered now."""
    ledger = Ledger()
    if found.account is not None:
        ledger.listed(found.account, asked_at=time.monotonic())
    inventory = found.driver.inventory
    offer = _offer(inventory, found, settings) if inventory else Offer()
    view = NodeView(
        inventory=inventory,
        driver_problem=found.driver.problem,
        offer=offer,
        holders=ledger.holders(),
        holders_are_known=found.account is not None,
        mps=dict(found.mps),
    )
    run = settings.run
    report = status_of(view, resource_name=run.resource_name, enforcement=run.enforcement, max_clients=run.max_clients)
    return NodeStatus.model_validate(as_api(report))


def _offer(inventory: Inventory, found: Examination, settings: DoctorSettings) -> Offer:
    run = settings.run
    return offer_of(
        inventory,
        reserve_mib=run.reserve_mib,
        choice=run.choice,
        owners={gpu: ", ".join(sorted(names)) for gpu, names in found.owners.items()},
        limits_memory=run.enforcement.memory,
    )


def _facts(settings: DoctorSettings, findings: Sequence[Finding]) -> dict[str, object]:
    return {"node": settings.run.node_name, "findings": [finding.as_json() for finding in findings]}


def _text(settings: DoctorSettings, findings: Sequence[Finding]) -> str:
    last = f"{counted(len(findings), 'finding')} on {settings.run.node_name}."
    told = [finding.as_text() for finding in findings]
    return "\n\n".join([*told, last if findings else f"Nothing is wrong on {settings.run.node_name}."])
