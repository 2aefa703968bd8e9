"""Puts the device plugin together, runs it until a signal, and takes it apart in order."""

import asyncio
import gc
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Final, NoReturn

from prometheus_client import disable_created_metrics

from cta_group_plugin import __version__
from cta_group_plugin.accounts import AccountKeeper
from cta_group_plugin.adapters.cdi_files import CdiFiles
from cta_group_plugin.adapters.state_folder import host_marks
from cta_group_plugin.allocator import Allocator
from cta_group_plugin.answers import CdiRules, Rules
from cta_group_plugin.ceilings import CeilingKeeper
from cta_group_plugin.charge import ChargeKeeper
from cta_group_plugin.claims import ClaimKeeper
from cta_group_plugin.driver_threads import Asker
from cta_group_plugin.edges import Edges, edges_of
from cta_group_plugin.errors import BadSetting, PluginError
from cta_group_plugin.health_record import RecordKeeper
from cta_group_plugin.logs import EventLog
from cta_group_plugin.lookout import Lookout
from cta_group_plugin.metrics import Metrics
from cta_group_plugin.occupancy_keeper import OccupancyKeeper
from cta_group_plugin.pod_events import EventTeller
from cta_group_plugin.probes import ProbeChecks, ProbeServer, on_loop
from cta_group_plugin.publish import Publisher
from cta_group_plugin.registrar import Registrar
from cta_group_plugin.report import NodeReport
from cta_group_plugin.service import DevicePluginService
from cta_group_plugin.settings import DeviceList, RunSettings, SourceKind, Topology
from cta_group_plugin.specifications import SpecificationKeeper
from cta_group_plugin.state import NodeState, NodeView
from cta_group_plugin.status import figures_of, status_of
from cta_group_plugin.watcher import Watcher

_log = EventLog(__name__)

_RESTART_SECONDS: Final = 5.0

Part = Callable[[], Awaitable[None]]


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
        rules = rules_of(settings)
        state = NodeState(rules=settings.health.rules, waits_for_specifications=rules.cdi is not None)
        drain = partial(_drain, state, settings.drain_seconds if settings.publish else 0)
        return await _run_until(stopping, _assemble(settings, edges, state, stack), drain)


async def _drain(state: NodeState, seconds: float) -> None:
    """Say that no new pod should come, and serve those that are on their way: kubelet would fail them for good.

    Where another process has taken over, pods come to that one.
    """
    if seconds and state.view.registered_as and not state.view.other_in_charge:
        state.learn_registration("", "the plugin is stopping")
        await asyncio.sleep(seconds)


def _assemble(settings: RunSettings, edges: Edges, state: NodeState, stack: AsyncExitStack) -> list[Part]:
    """Return the parts in the order in which they are stopped; ``stack`` closes what they hold."""
    rules = rules_of(settings)
    metrics = Metrics(__version__)
    status = partial(
        status_of,
        resource_name=settings.resource_name,
        enforcement=settings.enforcement,
        max_clients=settings.max_clients,
    )
    accounts = AccountKeeper(state, edges.pod_resources, record=edges.record, ids=edges.ids)
    ceilings = CeilingKeeper(
        state,
        edges.mps,
        settings.enforcement,
        # Where the supervisor is simulated there is no daemon whose limits an incomplete account could lower.
        needs_account=settings.mps_socket is not None,
        patience_seconds=settings.start_patience_seconds,
    )
    specifications = _specification_keeper(settings, state, rules)
    ensure_devices = specifications.ensure if specifications else None
    asker = Asker(limit_seconds=settings.health.answer_seconds)
    lookout = Lookout(edges.gpus, edges.processes, edges.record, state.now)
    occupancy = OccupancyKeeper(
        state,
        lookout.look,
        asker,
        settings.enforcement,
        late_seconds=settings.health.late_memory_seconds,
        patience_seconds=settings.start_patience_seconds,
        ask_clients=ceilings.ask_now,
    )
    stack.callback(occupancy.end)
    allocator = Allocator(
        state,
        ceilings,
        rules,
        metrics,
        accounts.ask_soon,
        ensure_devices=ensure_devices,
        occupancy=occupancy,
        ids=edges.ids,
    )
    service = partial(DevicePluginService, state, allocator, tells_numa=settings.topology is Topology.NUMA)
    charge = ChargeKeeper(state, settings.device_plugin_dir, settings.resource_name)
    registrar = Registrar(
        state,
        settings.device_plugin_dir,
        settings.resource_name,
        service,
        metrics,
        charge=charge,
        on_registered=accounts.ask_soon,
    )
    metrics.describe_node(
        lambda: status(state.view),
        lambda: figures_of(state.view, max_clients=rules.max_clients),
        is_ours=lambda: not state.view.other_in_charge,
    )
    if settings.metrics_address:
        live = on_loop(registrar.liveness_problem)
        checks = ProbeChecks(metrics.registry, live, lambda: state.view.readiness_problem)
        stack.enter_context(ProbeServer(settings.metrics_address, checks))
    watcher = Watcher(
        state,
        edges.gpus,
        asker,
        reserve_mib=settings.reserve_mib,
        choice=settings.choice,
        limits_memory=settings.enforcement.memory,
        ids=edges.ids,
        poll_seconds=settings.health.poll_seconds,
        on_program_fault=ceilings.ask_now,
        look=lookout.look,
        on_looks=occupancy.learn,
    )
    claims = ClaimKeeper(state, edges.pod_resources, watcher.look_soon)
    charge.look()
    parts: list[Part] = [
        registrar.run,
        charge.run,
        watcher.run,
        partial(_restarted, "claims", claims.run),
        partial(_restarted, "accounts", accounts.run),
        partial(_restarted, "ceilings", ceilings.run),
    ]
    if specifications:
        parts.append(partial(_restarted, "specifications", specifications.run))
    return [*parts, *_telling_parts(edges, state, metrics, status)]


def _telling_parts(
    edges: Edges, state: NodeState, metrics: Metrics, status: Callable[[NodeView], NodeReport]
) -> list[Part]:
    """Return the parts that keep and tell what is known; the GPUs are served without them as well."""
    parts: list[Part] = []
    record = None
    if edges.health_store:
        record = RecordKeeper(state, edges.health_store, host_marks, on_failure=metrics.record_failures.inc)
        record.recall()
        parts.append(partial(_restarted, "health record", record.run))
    if edges.node_api:
        # Without a record nobody knows whether a person's word is a new one.
        on_word = record.learn_word if record else None
        publisher = Publisher(state, edges.node_api, status, metrics, on_word=on_word)
        parts.append(partial(_restarted, "publisher", publisher.run))
    if edges.events:
        parts.append(partial(_restarted, "events", EventTeller(state, edges.events, edges.uid_of).run))
    return parts


def rules_of(settings: RunSettings) -> Rules:
    """Return what decides about an answer to kubelet."""
    cdi = None
    if settings.device_list is DeviceList.CDI:
        cdi = CdiRules(settings.cdi.gpu_kind, is_simulated=settings.source is SourceKind.SIMULATED)
    return Rules(settings.enforcement, settings.mps_root, settings.max_clients, cdi)


def _specification_keeper(settings: RunSettings, state: NodeState, rules: Rules) -> SpecificationKeeper | None:
    return SpecificationKeeper(state, CdiFiles(settings.cdi.folder), rules, rules.cdi) if rules.cdi else None


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


async def _restarted(name: str, part: Part) -> NoReturn:
    """Run a part that others can do without; begin it anew when it fails."""
    while True:
        try:
            await part()
        except Exception as failure:  # noqa: BLE001 - kubelet is served on, whatever is wrong in this part
            _log.error("part_failed", part=name, cause=failure)
        await asyncio.sleep(_RESTART_SECONDS)
