"""Runs the device plugin until a signal, and takes it apart in order."""

import asyncio
import gc
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial

from prometheus_client import disable_created_metrics

from cta_group_plugin.assembly import Assembly, Part
from cta_group_plugin.edges import Edges, edges_of
from cta_group_plugin.errors import BadSetting, PluginError
from cta_group_plugin.logs import EventLog
from cta_group_plugin.settings import DeviceList, RunSettings
from cta_group_plugin.state import NodeState

_log = EventLog(__name__)


def run(settings: RunSettings) -> int:
    """Serve kubelet until SIGTERM or SIGINT; return the exit code. Raises BadSetting."""
    disable_created_metrics()  # type: ignore[no-untyped-call] # a series more for each counter, and nobody asks for it
    return asyncio.run(_run_until_signal(settings))


async def _run_until_signal(settings: RunSettings) -> int:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    edges = edges_of(settings)
    # Nothing of what was imported is ever garbage, and looking through it would make kubelet wait for tens of ms.
    gc.collect()
    gc.freeze()
    return await serve(settings, edges, stopping)


async def serve(settings: RunSettings, edges: Edges, stopping: asyncio.Event) -> int:
    """Run the plugin until ``stopping``; return 0 then, and 1 when it cannot go on. Raises BadSetting."""
    async with AsyncExitStack() as stack:
        stack.push_async_callback(edges.pod_resources.close)
        stack.push_async_callback(edges.mps.close)
        has_specifications = settings.device_list is DeviceList.CDI
        state = NodeState(rules=settings.health.rules, waits_for_specifications=has_specifications)
        drain = partial(_drain, state, settings.drain_seconds if settings.publish else 0)
        return await _run_until(stopping, Assembly(settings, edges, state, stack).parts(), drain)


async def _drain(state: NodeState, seconds: float) -> None:
    """Say that no new pod should come, and serve those that are on their way: kubelet would fail them for good.

    Where another process has taken over, pods come to that one.
    """
    if seconds and state.view.registered_as and not state.view.other_in_charge:
        state.learn_registration("", "the plugin is stopping")
        await asyncio.sleep(seconds)


async def _run_until(stopping: asyncio.Event, parts: Sequence[Part], drain: Part) -> int:
    """Run all parts until ``stopping`` or until one ends; none does by itself unless it cannot go on.

    ``drain`` is what is done before the parts are stopped when they are asked to.
    """
    tasks = [asyncio.ensure_future(part()) for part in parts]
    stopped = asyncio.ensure_future(stopping.wait())
    done, _ = await asyncio.wait([stopped, *tasks], return_when=asyncio.FIRST_COMPLETED)
    failures = [task.exception() for task in done if task is not stopped]
    _log.info("stopping", reason="asked to" if stopped in done else "a part cannot go on")
    if stopped in done:
        await drain()
    for task in (*tasks, stopped):
        task.cancel()
        await asyncio.wait([task])
    for failure in failures:
        if isinstance(failure, BadSetting):
            raise failure
        _log.error("part_failed", problem=failure, cause=None if isinstance(failure, PluginError) else failure)
    return 1 if failures else 0
