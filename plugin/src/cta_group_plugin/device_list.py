"""The devices as kubelet is told of them, and when they may be others.

kubelet gives out only healthy ids, leaves running pods alone, and after its own restart fails every waiting or crashing
pod whose ids are not healthy. So there are two ways to take a GPU out:

* one that is known to be broken has no healthy id;
* one that is held back until more is known (suspect, recovering, its MPS daemon away) keeps the ids healthy that
  somebody holds, and none else. Its pods are admitted again and wait before they start; nothing new comes.

A GPU that is not offered any more (left out, claimed by another plugin) is listed by what its pods still hold, for the
same reason.

While kubelet admits its pods again, right after a registration, nobody may know yet who holds what: GPUs that are only
held back are shown healthy then, and still neither chosen nor started on.
"""

import asyncio
from collections.abc import Container, Mapping
from contextlib import suppress
from typing import Final

from cta_group_core.ids import GpuUuid, GroupId
from cta_group_plugin.health import is_out
from cta_group_plugin.state import NodeState, NodeView

HEALTHY: Final = "Healthy"
UNHEALTHY: Final = "Unhealthy"


def device_list(view: NodeView, *, is_readmitting: bool) -> Mapping[str, str]:
    """Return the health of every group by its text, in a stable order."""
    kept = groups_that_wait(view)
    shows_all = is_readmitting or not view.holders_are_known
    offered = {
        text: HEALTHY if _is_healthy(view, group_id, kept, shows_all=shows_all) else UNHEALTHY
        for text, group_id in view.offer.ids.items()
    }
    withheld = map(view.offer.texts.text_of, sorted(groups_of_withheld(view)))
    return offered | dict.fromkeys(withheld, HEALTHY)


def groups_that_wait(view: NodeView) -> frozenset[GroupId]:
    """Return the groups that somebody holds of GPUs that are only held back."""
    held_back = {uuid for uuid, fault in view.faults.items() if not is_out(fault)}
    if not held_back:
        return frozenset()
    return _held_on(view, held_back)


def groups_of_withheld(view: NodeView) -> frozenset[GroupId]:
    """Return the groups that somebody still holds of GPUs that are not offered any more."""
    withheld = view.offer.withheld_by_uuid
    if not withheld:
        return frozenset()
    return _held_on(view, withheld)


def _held_on(view: NodeView, gpus: Container[GpuUuid]) -> frozenset[GroupId]:
    holders = (*view.holders, *view.unlisted)
    return frozenset(group_id for holder in holders for group_id in holder.ids if group_id.gpu in gpus)


async def devices_after(state: NodeState, seen: NodeView, limit_seconds: float | None) -> NodeView:
    """Wait for a view in which the devices may be others, at most for the limit."""
    view = seen
    with suppress(TimeoutError):
        async with asyncio.timeout(limit_seconds):
            while _decides(view) == _decides(seen):
                view = await state.change_after(view)
    return view


def _decides(view: NodeView) -> tuple[object, ...]:
    """Return what of a view decides about the devices."""
    out = {uuid: is_out(fault) for uuid, fault in view.faults.items()}
    kept = groups_that_wait(view), groups_of_withheld(view)
    return view.offer, out, kept, view.holders_are_known, view.other_in_charge


def _is_healthy(view: NodeView, group_id: GroupId, kept: frozenset[GroupId], *, shows_all: bool) -> bool:
    fault = view.faults.get(group_id.gpu)
    if fault is None:
        return True
    return not is_out(fault) and (shows_all or group_id in kept)
