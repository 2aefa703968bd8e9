"""Makes the parts of the device plugin, each with what it needs of the others."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Final, NoReturn

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
from cta_group_plugin.edges import Edges
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
"""Runs until it is cancelled, or raises when the plugin cannot go on."""


class Assembly:
    """All parts of one process over one account of the node. Raises BadSetting."""

    def __init__(self, settings: RunSettings, edges: Edges, state: NodeState, stack: AsyncExitStack) -> None:
        """``stack`` closes what the parts hold."""
        self._settings = settings
        self._edges = edges
        self._state = state
        self._rules = rules_of(settings)
        self._metrics = Metrics(__version__)
        self._accounts = AccountKeeper(state, edges.pod_resources, record=edges.record, ids=edges.ids)
        self._ceilings = CeilingKeeper(
            state,
            edges.mps,
            settings.enforcement,
            # Where the supervisor is simulated there is no daemon whose limits an incomplete account could lower.
            needs_account=settings.mps_socket is not None,
            patience_seconds=settings.start_patience_seconds,
        )
        self._specifications = self._make_specifications()
        self._asker = Asker(limit_seconds=settings.health.answer_seconds)
        self._lookout = Lookout(edges.gpus, edges.processes, edges.record, state.now)
        self._occupancy = self._make_occupancy()
        stack.callback(self._occupancy.end)
        self._charge = ChargeKeeper(state, settings.device_plugin_dir, settings.resource_name)
        self._registrar = self._make_registrar()
        self._watcher = self._make_watcher()
        self._describe(stack)

    def parts(self) -> list[Part]:
        """Return the parts in the order in which they are stopped."""
        self._charge.look()
        claims = ClaimKeeper(self._state, self._edges.pod_resources, self._watcher.look_soon)
        parts: list[Part] = [
            self._registrar.run,
            self._charge.run,
            self._watcher.run,
            partial(_restarted, "claims", claims.run),
            partial(_restarted, "accounts", self._accounts.run),
            partial(_restarted, "ceilings", self._ceilings.run),
        ]
        if self._specifications:
            parts.append(partial(_restarted, "specifications", self._specifications.run))
        return [*parts, *self._telling_parts()]

    def _telling_parts(self) -> list[Part]:
        """Return the parts that keep and tell what is known; the GPUs are served without them as well."""
        state, edges, metrics = self._state, self._edges, self._metrics
        parts: list[Part] = []
        record = None
        if edges.health_store:
            record = RecordKeeper(state, edges.health_store, host_marks, on_failure=metrics.record_failures.inc)
            record.recall()
            parts.append(partial(_restarted, "health record", record.run))
        if edges.node_api:
            # Without a record nobody knows whether a person's word is a new one.
            on_word = record.learn_word if record else None
            publisher = Publisher(state, edges.node_api, self._status_of, metrics, on_word=on_word)
            parts.append(partial(_restarted, "publisher", publisher.run))
        if edges.events:
            parts.append(partial(_restarted, "events", EventTeller(state, edges.events, edges.uid_of).run))
        return parts

    def _make_specifications(self) -> SpecificationKeeper | None:
        if self._rules.cdi is None:
            return None
        return SpecificationKeeper(self._state, CdiFiles(self._settings.cdi.folder), self._rules, self._rules.cdi)

    def _make_occupancy(self) -> OccupancyKeeper:
        settings = self._settings
        return OccupancyKeeper(
            self._state,
            self._lookout.look,
            self._asker,
            settings.enforcement,
            late_seconds=settings.health.late_memory_seconds,
            patience_seconds=settings.start_patience_seconds,
            ask_clients=self._ceilings.ask_now,
        )

    def _make_registrar(self) -> Registrar:
        settings, state = self._settings, self._state
        allocator = Allocator(
            state,
            self._ceilings,
            self._rules,
            self._metrics,
            self._accounts.ask_soon,
            ensure_devices=self._specifications.ensure if self._specifications else None,
            occupancy=self._occupancy,
            ids=self._edges.ids,
        )
        return Registrar(
            state,
            settings.device_plugin_dir,
            settings.resource_name,
            partial(DevicePluginService, state, allocator, tells_numa=settings.topology is Topology.NUMA),
            self._metrics,
            charge=self._charge,
            on_registered=self._accounts.ask_soon,
        )

    def _make_watcher(self) -> Watcher:
        settings = self._settings
        return Watcher(
            self._state,
            self._edges.gpus,
            self._asker,
            reserve_mib=settings.reserve_mib,
            choice=settings.choice,
            limits_memory=settings.enforcement.memory,
            ids=self._edges.ids,
            poll_seconds=settings.health.poll_seconds,
            on_program_fault=self._ceilings.ask_now,
            look=self._lookout.look,
            on_looks=self._occupancy.learn,
        )

    def _describe(self, stack: AsyncExitStack) -> None:
        """Add the series about the node, and serve them and the probes where that is wanted."""
        state = self._state
        self._metrics.describe_node(
            lambda: self._status_of(state.view),
            lambda: figures_of(state.view, max_clients=self._rules.max_clients),
            is_ours=lambda: not state.view.other_in_charge,
        )
        if self._settings.metrics_address:
            live = on_loop(self._registrar.liveness_problem)
            checks = ProbeChecks(self._metrics.registry, live, lambda: state.view.readiness_problem)
            stack.enter_context(ProbeServer(self._settings.metrics_address, checks))

    def _status_of(self, view: NodeView) -> NodeReport:
        settings = self._settings
        return status_of(
            view,
            resource_name=settings.resource_name,
            enforcement=settings.enforcement,
            max_clients=settings.max_clients,
        )


def rules_of(settings: RunSettings) -> Rules:
    """Return what decides about an answer to kubelet."""
    cdi = None
    if settings.device_list is DeviceList.CDI:
        cdi = CdiRules(settings.cdi.gpu_kind, is_simulated=settings.source is SourceKind.SIMULATED)
    return Rules(settings.enforcement, settings.mps_root, settings.max_clients, cdi)


async def _restarted(name: str, part: Part) -> NoReturn:
    """Run a part that others can do without; begin it anew when it fails."""
    while True:
        try:
            await part()
        except Exception as failure:  # noqa: BLE001 - kubelet is served on, whatever is wrong in this part
            _log.error("part_failed", part=name, cause=failure)
        await asyncio.sleep(_RESTART_SECONDS)
