"""``kubectl cta top``: nodes, GPUs, and who holds what, as the nodes' plugins publish it."""

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from cta_group_cli.errors import NotFound
from cta_group_cli.exits import Exit
from cta_group_cli.ports import ClusterReader, Node, Unreadable
from cta_group_cli.table import Cell, table
from cta_group_cli.terminal import say
from cta_group_core.moments import seconds_between
from cta_group_core.nodes import GpuHealth, GpuStatus
from cta_group_core.plurals import counted

_GPU_HEADER = ("NODE", "GPU", "PRODUCT", "FREE", "CAPACITY", "LARGEST", "HEALTH")
_HOLDER_HEADER = ("NODE", "GPU", "NAMESPACE", "POD", "CONTAINER", "GROUPS", "MEMORY MiB")
_SILENT_MINUTES: Final = 15
"""Three times as long as a plugin takes to confirm what it said; the operator's default for a stale node too."""


def show_top(reader: ClusterReader, name: str | None, *, now: str, as_json: bool) -> Exit:
    """Print all nodes, or the one of that name; NotFound when there is no such node. ``now``: RFC 3339."""
    found = reader.nodes()
    told = [entry for entry in found if name in {None, entry.name}]
    if name is not None and not told:
        known = ", ".join(entry.name for entry in found) or "none"
        raise NotFound(f"no CTANode {name!r}; nodes whose plugin has published: {known}")
    nodes = [entry for entry in told if isinstance(entry, Node)]
    unreadable = [entry for entry in told if isinstance(entry, Unreadable)]
    silent = [node for node in nodes if _is_silent(node, now)]
    say(json.dumps(_facts(nodes)) if as_json else _text(nodes, silent))
    for entry in unreadable:
        say(f"CTANode {entry.name} cannot be read by this version: {entry.problem}", to=sys.stderr)
    unhealthy = any(gpu.health is not GpuHealth.HEALTHY for node in nodes for gpu in node.status.gpus)
    return Exit.FINDINGS if unhealthy or unreadable or silent or not nodes else Exit.FINE


def _facts(nodes: Sequence[Node]) -> dict[str, object]:
    return {"nodes": [{"name": node.name, **node.status.as_api()} for node in nodes]}


def _text(nodes: Sequence[Node], silent: Sequence[Node]) -> str:
    if not nodes:
        return "No node has published its GPUs: is the plugin's DaemonSet running?"
    parts = [
        _headline(nodes) + _silence(silent),
        table(_GPU_HEADER, [row for node in nodes for row in _gpu_rows(node)]),
    ]
    if holders := [row for node in nodes for row in _holder_rows(node)]:
        parts.append(table(_HOLDER_HEADER, holders))
    else:
        parts.append("Nobody holds any groups.")
    return "\n\n".join(parts)


def _headline(nodes: Sequence[Node]) -> str:
    """Say how much is free, which nodes offer nothing now, and which only pretend to have GPUs."""
    gpus = sum(len(node.status.gpus) for node in nodes)
    status = [node.status.with_totals() for node in nodes if not _offers_nothing(node)]
    free, offered = sum(one.free for one in status), sum(one.allocatable for one in status)
    largest = max((one.largest_fit for one in status), default=0)
    told = (
        f"{counted(len(nodes), 'node')}, {counted(gpus, 'GPU')}: {free} of {offered} groups free; "
        f"the largest request on one GPU that fits now is {largest}."
    )
    if away := [f"{node.name} ({why})" for node in nodes if (why := _offers_nothing(node))]:
        told = f"{told} Nothing is offered by {', '.join(away)}."
    simulated = [node.name for node in nodes if node.status.simulated]
    return f"{told} Simulated, not real GPUs: {', '.join(simulated)}." if simulated else told


def _is_silent(node: Node, now: str) -> bool:
    """Tell whether a plugin that should has not confirmed what it said; one that stopped has said so itself."""
    confirmed = node.status.confirmed_at or now
    return seconds_between(confirmed, now) >= 60 * _SILENT_MINUTES and not _offers_nothing(node)


def _silence(silent: Sequence[Node]) -> str:
    if not silent:
        return ""
    told = ", ".join(f"{node.name} (since {node.status.confirmed_at})" for node in silent)
    return f" Not heard of for {_SILENT_MINUTES} minutes or more, so what stands here is old: {told}."


def _offers_nothing(node: Node) -> str:
    """Return why kubelet takes no pods with groups of a node that has some, such as that its plugin is gone."""
    return node.status.registration_problem if any(gpu.capacity for gpu in node.status.gpus) else ""


def _gpu_rows(node: Node) -> Iterator[tuple[Cell, ...]]:
    name = f"{node.name} (simulated)" if node.status.simulated else node.name
    if not node.status.gpus:
        yield (name, "-", "no GPU", 0, 0, 0, "-")
    for gpu in sorted(node.status.gpus, key=lambda gpu: (gpu.index, gpu.uuid)):
        is_offered = gpu.is_placeable and not _offers_nothing(node)
        largest = gpu.room(node.status.enforcement.policy).largest if is_offered else 0
        yield (name, str(gpu.index), gpu.product, gpu.free, gpu.capacity, largest, _health(gpu))


def _health(gpu: GpuStatus) -> str:
    if gpu.withheld:
        return f"withheld: {gpu.withheld}"
    if gpu.health is not GpuHealth.HEALTHY:
        return f"{gpu.health.value}: {gpu.health_reason}" if gpu.health_reason else gpu.health.value
    return gpu.health.value


def _holder_rows(node: Node) -> Iterator[tuple[Cell, ...]]:
    for gpu in sorted(node.status.gpus, key=lambda gpu: (gpu.index, gpu.uuid)):
        for held in sorted(gpu.allocations, key=lambda held: (held.namespace, held.pod, held.container)):
            yield (node.name, str(gpu.index), held.namespace, held.pod, held.container, held.groups, held.memory_mib)
