"""The node's account as CTANode shows it. Pure: a view in, a status out."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from cta_group_core.health.verdict import Verdict
from cta_group_core.ids import GpuUuid, GroupId
from cta_group_core.moments import rfc3339
from cta_group_core.rooms import GpuRoom, SharePolicy, largest_fit
from cta_group_plugin.allocation import Shares, clients_allowed, clients_on, shares_held
from cta_group_plugin.conditions import conditions_of, health_word, notices_of
from cta_group_plugin.inventory import ServedGpu, WithheldGpu
from cta_group_plugin.ledger import Holder, HolderKind
from cta_group_plugin.node_metrics import NodeFigures
from cta_group_plugin.ports import BrokenGpu, GpuFacts
from cta_group_plugin.report import (
    UNHEALTHY,
    AllocationReport,
    ConditionReport,
    EnforcementReport,
    GpuReport,
    NodeReport,
    unknown_uuid,
)
from cta_group_plugin.settings import EnforcementSettings
from cta_group_plugin.state import NodeView

CONFIRM_SECONDS: Final = 300.0
"""An account that does not change is confirmed so often. The operator takes one for stale after three times as long."""


def status_of(
    view: NodeView, *, resource_name: str, enforcement: EnforcementSettings, max_clients: int = 0
) -> NodeReport:
    """Return the status for ``view``; its conditions have no times yet (:func:`with_times`).

    ``max_clients`` is the setting: 0 for what the driver's MPS server takes.
    """
    inventory = view.inventory
    strict = enforcement.mode is SharePolicy.STRICT_UNIFORM
    shares = shares_held(view.holders) if strict else None
    most = clients_allowed(max_clients, inventory)
    served = [_served(gpu, view, shares, most) for gpu in view.offer.served]
    withheld = [_unserved(gpu) for gpu in view.offer.withheld]
    broken = _broken(inventory.broken if inventory else (), {gpu.facts.uuid for gpu in view.offer.served})
    gpus = tuple(sorted([*served, *withheld, *broken], key=lambda gpu: (gpu.index, gpu.uuid)))
    return NodeReport(
        resource_name=resource_name,
        driver_version=inventory.driver_version if inventory else None,
        cuda_version=inventory.cuda_version if inventory else None,
        simulated=bool(inventory and inventory.simulated),
        enforcement=EnforcementReport(enforcement.compute, enforcement.memory, mode=enforcement.mode.value),
        conditions=conditions_of(view, enforcement, gpus, max_clients=max_clients),
        gpus=gpus,
    )


def _served(gpu: ServedGpu, view: NodeView, shares: Shares | None, most_clients: int) -> GpuReport:
    uuid = gpu.facts.uuid
    holders = [holder for holder in view.holders if uuid in holder.gpus]
    # A doubtful one counts as gone: kubelet rewrites its record when a pod comes, and nobody sends one to a full GPU.
    unlisted = [holder for holder in view.unlisted if holder.kind is not HolderKind.DOUBTFUL]
    held = {group_id for holder in (*holders, *unlisted) for group_id in _on(gpu, holder)}
    left = gpu.units.capacity - len(held)
    crowd = _crowd(clients_on(uuid, holders), most_clients, left)
    # Nothing can be promised as free on a GPU that takes nobody any more, or before it was told who holds what.
    free = left if view.holders_are_known and not crowd else 0
    fault = view.faults.get(uuid)
    occupancy = view.occupancy.get(uuid)
    here = None if shares is None else shares.get(uuid, frozenset())
    room = GpuRoom(uuid=uuid, index=gpu.facts.index, units=gpu.units, free=free, shares=here)
    return replace(
        _facts(gpu.facts),
        sm_count=gpu.units.sm_count,
        capacity=gpu.units.capacity,
        minimum=gpu.units.minimum,
        step=gpu.units.step,
        memory_mib=gpu.memory_total_mib,
        reserve_mib=gpu.reserve_mib,
        health=health_word(fault),
        health_reason=_with_advice(fault) if fault else None,
        health_since=rfc3339(fault.since) if fault and fault.since else None,
        foreign_memory_mib=occupancy.foreign_mib if occupancy else None,
        notice="; ".join([*notices_of(gpu, view), *crowd]) or None,
        free=free,
        largest_fit=0 if fault else largest_fit([room]),
        allocations=tuple(_allocations(gpu, holders)),
    )


def _crowd(clients: int, most: int, left: int) -> list[str]:
    """Say that a GPU has all the containers that it may have, if it has."""
    if clients < most:
        return []
    return [f"{clients} containers share it, and no more may: {left} groups stay free until one of them ends"]


def _with_advice(fault: Verdict) -> str:
    return f"{fault.reason}. To do: {fault.advice}" if fault.advice else fault.reason


def _on(gpu: ServedGpu, holder: Holder) -> list[GroupId]:
    """Return the groups of ``gpu`` that a holder has; kubelet may remember ids that this GPU no longer offers."""
    return [
        group_id for group_id in holder.ids if group_id.gpu == gpu.facts.uuid and group_id.number < gpu.units.capacity
    ]


def _allocations(gpu: ServedGpu, holders: Iterable[Holder]) -> Iterable[AllocationReport]:
    named = [(holder.container, len(_on(gpu, holder))) for holder in holders if holder.container]
    for container, groups in sorted(named, key=lambda pair: (pair[0].pod, pair[0].container)):
        usable = (gpu.memory_total_mib - gpu.reserve_mib) * groups // gpu.units.capacity
        yield AllocationReport(
            namespace=container.pod.namespace,
            pod=container.pod.name,
            container=container.container,
            groups=groups,
            memory_mib=usable,
        )


def _facts(facts: GpuFacts) -> GpuReport:
    return GpuReport(
        uuid=facts.uuid,
        index=facts.index,
        product=facts.product,
        compute_capability=str(facts.capability),
        memory_mib=facts.memory_total_mib or 0,
        driver_reserved_mib=facts.driver_reserved_mib,
        minor=facts.minor,
        pci_bus_id=facts.pci_bus_id,
        link=facts.link,
        numa_node=facts.numa_node,
        copy_engines=facts.copy_engines,
        mig_mode="Enabled" if facts.mig_enabled else "Disabled",
        compute_mode=facts.compute_mode,
        persistence_mode=facts.persistence_mode,
    )


def _unserved(gpu: WithheldGpu) -> GpuReport:
    return replace(_facts(gpu.facts), sm_count=gpu.sm_count, withheld=gpu.reason)


def _broken(broken: Sequence[BrokenGpu], served: set[GpuUuid]) -> list[GpuReport]:
    """Return GPUs that never answered; one that did is shown as served and unhealthy."""
    return [
        GpuReport(
            uuid=gpu.uuid or unknown_uuid(gpu.index),
            index=gpu.index,
            product="unknown",
            compute_capability="unknown",
            health=UNHEALTHY,
            health_reason=gpu.reason,
            withheld=f"the driver lists this GPU, but it does not answer: {gpu.reason}",
        )
        for gpu in broken
        if gpu.uuid not in served
    ]


def figures_of(view: NodeView, *, max_clients: int) -> NodeFigures:
    """Return what metrics tell beside the status; ``max_clients`` is the setting."""
    return NodeFigures(
        mps=view.mps,
        xids=view.health.xids,
        occupancy=view.occupancy,
        withheld={gpu.facts.uuid: gpu.cause for gpu in view.offer.withheld},
        most_clients=clients_allowed(max_clients, view.inventory),
    )


def with_times(status: NodeReport, before: NodeReport | None, *, now: float) -> NodeReport:
    """Give each condition the time of its last transition: as before when its status is as before, else ``now``.

    The whole is confirmed ``now``; one that is as before only where that was confirmed long ago, so that the API server
    has nothing to write for what does not change.
    """
    known = {condition.type: condition for condition in before.conditions} if before else {}
    conditions = tuple(_timed(condition, known.get(condition.type), now) for condition in status.conditions)
    timed = replace(status, conditions=conditions, confirmed_at=rfc3339(now))
    if before is None or before.confirmed_at is None:
        return timed
    as_before = replace(timed, confirmed_at=before.confirmed_at)
    is_recent = abs(now - datetime.fromisoformat(before.confirmed_at).timestamp()) < CONFIRM_SECONDS
    return as_before if as_before == before and is_recent else timed


def _timed(condition: ConditionReport, before: ConditionReport | None, now: float) -> ConditionReport:
    same = before is not None and before.status == condition.status
    moment = before.last_transition_time if before and same else rfc3339(now)
    return replace(condition, last_transition_time=moment)
