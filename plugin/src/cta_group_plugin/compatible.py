"""Whether driver, CUDA and GPUs of a node suit what it is asked to do, as its condition ``Compatible``. Pure.

The rules are those of ``doctor`` (:mod:`cta_group_core.compatibility`), so the two can never disagree.
"""

from collections.abc import Iterable, Sequence

from cta_group_core.compatibility.driver_findings import LimitedGpu, Limits, driver_findings, enforcement_findings
from cta_group_core.compatibility.findings import Finding, Severity
from cta_group_core.compatibility.versions import CudaVersion, DriverVersion, parsed_or_none
from cta_group_core.names import CONDITION_COMPATIBLE
from cta_group_plugin.ports import Inventory
from cta_group_plugin.report import ConditionReport, Truth, WithheldCause
from cta_group_plugin.state import NodeView


def compatible(
    view: NodeView, limits: Limits, gpus: Sequence[LimitedGpu], *, max_clients: int, notices: Iterable[str]
) -> ConditionReport:
    """Return the condition. ``max_clients`` is the setting, 0 for what the driver takes; ``notices`` end a good one."""
    if view.driver_problem:
        return _condition("False", "NoDriver", view.driver_problem)
    if view.inventory is None:
        return _condition("Unknown", "NotAnswered", "the driver has not answered yet")
    if not view.inventory.gpus and not view.inventory.broken:
        return _condition("True", "NoGpu", "this node has no GPU")
    found = findings_of(view.inventory, limits, gpus, max_clients=max_clients)
    if errors := [one for one in found if one.severity is Severity.ERROR]:
        told = "; ".join(f"{one.subject}: {one.sentence}. To do: {one.remedy}" for one in errors)
        return _condition("False", "DriverUnsuitable", told)
    return _of_gpus(view) or _condition("True", "Compatible", _told(view, found, notices))


def findings_of(
    inventory: Inventory, limits: Limits, gpus: Sequence[LimitedGpu], *, max_clients: int
) -> tuple[Finding, ...]:
    """Return what is wrong with a driver for these limits. Of a simulated one nothing is."""
    if inventory.simulated:
        return ()
    of_limits = enforcement_findings(
        limits,
        driver=parsed_or_none(DriverVersion.parse, inventory.driver_version),
        cuda=parsed_or_none(CudaVersion.parse, inventory.cuda_version),
        gpus=gpus,
        max_clients=max_clients or None,
    )
    return (*driver_findings(inventory.driver_version), *of_limits)


def _of_gpus(view: NodeView) -> ConditionReport | None:
    """Return what keeps some GPU from being shared; None when nothing does."""
    if view.specification_problems:
        told = "; ".join(f"{uuid}: {problem}" for uuid, problem in sorted(view.specification_problems.items()))
        return _condition("False", "CdiSpecificationMissing", told)
    withheld = [gpu for gpu in view.offer.withheld if gpu.cause is not WithheldCause.EXCLUDED]
    if not withheld:
        return None
    told = "; ".join(f"GPU {gpu.facts.index}: {gpu.reason}" for gpu in withheld)
    claimed = any(gpu.cause is WithheldCause.OTHER_PLUGIN for gpu in withheld)
    return _condition("False", "ClaimedTwice" if claimed else "GpuWithheld", told)


def _told(view: NodeView, found: Iterable[Finding], notices: Iterable[str]) -> str:
    all_of_them = "every GPU of this node" if not view.offer.withheld else "every GPU that is not left out"
    warnings = [f"{one.subject}: {one.sentence}" for one in found if one.severity is Severity.WARNING]
    return "; ".join([f"{all_of_them} can be shared", *warnings, *notices])


def _condition(status: Truth, reason: str, message: str) -> ConditionReport:
    return ConditionReport(type=CONDITION_COMPATIBLE, status=status, reason=reason, message=message)
