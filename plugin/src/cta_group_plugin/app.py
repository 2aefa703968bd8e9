"""Puts the device plugin together, runs it until a signal, and takes it apart in order."""

import asyncio
import gc
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final, NoReturn

from prometheus_client import disable_created_metrics

from cta_group_core.profiles import profile_named
from cta_group_plugin import __version__
from cta_group_plugin.accounts import AccountKeeper
from cta_group_plugin.adapters.cdi_files import CdiFiles
from cta_group_plugin.adapters.driver_root import preload
from cta_group_plugin.adapters.kube_api import ApiServer, KubeNodeApi
from cta_group_plugin.adapters.pod_resources import KubeletPodResources
from cta_group_plugin.adapters.simulated import SimulatedSource
from cta_group_plugin.adapters.simulated_mps import SimulatedMpsControl
from cta_group_plugin.adapters.state_folder import StateFolder, host_marks
from cta_group_plugin.adapters.supervisor_client import SupervisorClient
from cta_group_plugin.answers import CdiRules, Rules
from cta_group_plugin.ceilings import CeilingKeeper
from cta_group_plugin.driver_threads import Asker
from cta_group_plugin.errors import BadSetting, PluginError
from cta_group_plugin.gpu_source import GpuSource
from cta_group_plugin.health_record import HealthStore, RecordKeeper
from cta_group_plugin.logs import EventLog
from cta_group_plugin.metrics import Metrics
from cta_group_plugin.ports import MpsControl, NodeApi, PodResources
from cta_group_plugin.probes import ProbeChecks, ProbeServer, on_loop
from cta_group_plugin.publish import Publisher
from cta_group_plugin.registrar import Registrar
from cta_group_plugin.service import Allocator, DevicePluginService
from cta_group_plugin.settings import DeviceList, RunSettings, SourceKind
from cta_group_plugin.specifications import SpecificationKeeper
from cta_group_plugin.state import NodeState
from cta_group_plugin.status import figures_of, status_of
from cta_group_plugin.watcher import Watcher

_log = EventLog(__name__)

_RESTART_SECONDS: Final = 5.0

Part = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Edges:
    """The world outside, behind its ports."""

    gpus: GpuSource
    mps: MpsControl
    pod_resources: PodResources
    node_api: NodeApi | None
    """``None``: nothing is published."""
    health_store: HealthStore | None = None
    """``None``: nothing outlives this process."""


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
        return await _run_until(stopping, _assemble(settings, edges, stack))


def _assemble(settings: RunSettings, edges: Edges, stack: AsyncExitStack) -> list[Part]:
    """Return the parts in the order in which they are stopped; ``stack`` closes what they hold."""
    rules = rules_of(settings)
    state = NodeState(rules=settings.health.rules, waits_for_specifications=rules.cdi is not None)
    metrics = Metrics(__version__)
    status = partial(status_of, resource_name=settings.resource_name, enforcement=settings.enforcement)
    accounts = AccountKeeper(state, edges.pod_resources)
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
    allocator = Allocator(state, ceilings, rules, metrics, accounts.ask_soon, ensure_devices=ensure_devices)
    service = partial(DevicePluginService, state, allocator)
    registrar = Registrar(state, settings.device_plugin_dir, settings.resource_name, service, metrics)
    watcher = Watcher(
        state,
        edges.gpus,
        Asker(limit_seconds=settings.health.answer_seconds),
        reserve_mib=settings.reserve_mib,
        choice=settings.choice,
        poll_seconds=settings.health.poll_seconds,
        on_program_fault=ceilings.ask_now,
    )
    metrics.describe_node(lambda: status(state.view), lambda: figures_of(state.view))
    if settings.metrics_address:
        live = on_loop(registrar.liveness_problem)
        checks = ProbeChecks(metrics.registry, live, lambda: state.view.readiness_problem)
        stack.enter_context(ProbeServer(settings.metrics_address, checks))
    parts: list[Part] = [
        registrar.run,
        watcher.run,
        partial(_restarted, "accounts", accounts.run),
        partial(_restarted, "ceilings", ceilings.run),
    ]
    if specifications:
        parts.append(partial(_restarted, "specifications", specifications.run))
    if edges.health_store:
        record = RecordKeeper(state, edges.health_store, host_marks, on_failure=metrics.record_failures.inc)
        record.recall()
        parts.append(partial(_restarted, "health record", record.run))
    if edges.node_api:
        parts.append(partial(_restarted, "publisher", Publisher(state, edges.node_api, status, metrics).run))
    return parts


def rules_of(settings: RunSettings) -> Rules:
    """Return what decides about an answer to kubelet."""
    cdi = None
    if settings.device_list is DeviceList.CDI:
        cdi = CdiRules(settings.cdi.gpu_kind, is_simulated=settings.source is SourceKind.SIMULATED)
    return Rules(settings.enforcement, settings.mps_root, settings.max_clients, cdi)


def _specification_keeper(settings: RunSettings, state: NodeState, rules: Rules) -> SpecificationKeeper | None:
    return SpecificationKeeper(state, CdiFiles(settings.cdi.folder), rules, rules.cdi) if rules.cdi else None


def edges_of(settings: RunSettings) -> Edges:
    """Return the real world, or its simulation where the settings say so. Raises BadSetting."""
    return Edges(
        gpus=_gpu_source(settings),
        mps=SupervisorClient(settings.mps_socket) if settings.mps_socket else SimulatedMpsControl(),
        pod_resources=KubeletPodResources(settings.pod_resources_socket, settings.resource_name),
        node_api=_node_api(settings) if settings.publish else None,
        health_store=StateFolder(settings.health.state_dir) if settings.health.state_dir else None,
    )


def _gpu_source(settings: RunSettings) -> GpuSource:
    if settings.source is SourceKind.SIMULATED:
        return SimulatedSource(profile_named(settings.profile), settings.count, settings.node_name)
    from cta_group_plugin.adapters.nvml import NvmlSource  # noqa: PLC0415 - a simulated node needs no NVML

    if settings.driver_root is not None:
        preload(settings.driver_root)
    return NvmlSource()


def _node_api(settings: RunSettings) -> NodeApi:
    if not settings.api_server:
        raise BadSetting("--publish: no API server is known outside a pod; give --api-server, or --no-publish")
    return KubeNodeApi(ApiServer(settings.api_server, settings.service_account_dir), settings.node_name)


async def _run_until(stopping: asyncio.Event, parts: Sequence[Part]) -> int:
    """Run all parts until ``stopping`` or until one ends; none does by itself unless it cannot go on."""
    tasks = [asyncio.ensure_future(part()) for part in parts]
    stopped = asyncio.ensure_future(stopping.wait())
    done, _ = await asyncio.wait([stopped, *tasks], return_when=asyncio.FIRST_COMPLETED)
    failures = [task.exception() for task in done if task is not stopped]
    _log.info("stopping", reason="asked to" if stopped in done else "a part cannot go on")
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
