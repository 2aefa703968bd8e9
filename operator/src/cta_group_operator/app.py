"""Wires the operator together and runs it: every replica watches and answers admission, the leader works.

When one of the tasks ends, the whole process does, with exit code 1: Kubernetes starts a fresh one. A lost lease is no
such end: the replica goes on watching and answering, and waits until it may lead again.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, NoReturn

import kopf

from cta_group_core.ids import NodeName
from cta_group_operator import __version__, pauses, stalls
from cta_group_operator.adapters.connection import Connection, load_connection
from cta_group_operator.adapters.convert import Converter
from cta_group_operator.adapters.convert_cluster import LimitConverter
from cta_group_operator.adapters.convert_load import read_load
from cta_group_operator.adapters.followed import what_to_follow
from cta_group_operator.adapters.kube import KubeClient
from cta_group_operator.adapters.lease import FencedApi, LeaderLease
from cta_group_operator.adapters.list_watch import ListWatch
from cta_group_operator.adapters.probes import serve_probes
from cta_group_operator.adapters.vllm_metrics import VllmMetrics
from cta_group_operator.admission.gpu_kinds import KnownGpus
from cta_group_operator.admission.run import Admission
from cta_group_operator.admission.settings import pod_rules
from cta_group_operator.admission.template import TemplateReader
from cta_group_operator.clock import SystemClock
from cta_group_operator.ending import exit_code, on_signals, stop_when
from cta_group_operator.errors import ApiError, NotFound
from cta_group_operator.handlers.kopf_operator import make_registry, run_kopf
from cta_group_operator.handlers.quotas import Quotas
from cta_group_operator.leading import lead, leaves, never_ending
from cta_group_operator.logs import EventLog
from cta_group_operator.metrics import Figures, Metrics
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.reconcile.work import Work
from cta_group_operator.resources import CTA_QUOTAS
from cta_group_operator.server_metrics import ServerMetrics
from cta_group_operator.settings import Settings
from cta_group_operator.stalls import Part, Stalls

_log = EventLog(__name__)

_LIST_AGAIN_SECONDS: Final = 2.0
_LOGIN_SECONDS: Final = 600
"""kopf asks for credentials again after this: a service account's token is renewed on disk within the hour."""


def run(settings: Settings) -> int:
    """Run until SIGTERM or SIGINT; return the exit code. Raises BadSetting."""
    connection = load_connection(settings.kubeconfig)
    pauses.keep_short()
    try:
        asyncio.run(_run(settings, connection))
    except BaseExceptionGroup as group:  # the way in which every part ends, a signal too: each has its exit code
        return exit_code(list(leaves(group)))
    return 1


async def _run(settings: Settings, connection: Connection) -> None:
    outside = settings.kubeconfig is not None
    async with KubeClient(connection) as client, VllmMetrics(takes_loopback=outside) as servers:
        program = Program(settings, connection, client, servers)
        try:
            async with (
                serve_probes(
                    settings.metrics_address,
                    program.metrics.registry,
                    not_ready=program.not_ready,
                    not_alive=program.stalls.words,
                ),
                asyncio.TaskGroup() as group,
            ):
                program.start(group)
        finally:
            await program.lease.release()


class Program:
    """Everything of one replica."""

    def __init__(self, settings: Settings, connection: Connection, client: KubeClient, servers: ServerMetrics) -> None:
        clock = SystemClock()
        self._settings = settings
        self._connection = connection
        self.metrics = Metrics(__version__)
        self.lease = LeaderLease(
            client, clock, namespace=settings.namespace, name=settings.lease_name, identity=settings.identity
        )
        view = ClusterView()
        self._quotas = Quotas(view.quotas, client, clock, self.metrics)
        followed = what_to_follow(view, settings.resource_name, settings.watch_seconds)
        self._watches = [ListWatch(client, what, clock, self.metrics) for what in followed]
        api = FencedApi(client, self.lease, self.metrics.api_writes.inc)
        gpus = KnownGpus(partial(_labels_of, view))
        view.cta_nodes.subscribe(gpus.follow)
        self._work = Work(
            settings,
            view,
            api,
            clock,
            metrics=self.metrics,
            read_limit=LimitConverter(settings.resource_name).read,
            read_pod=Converter(settings.resource_name).read_pod,
            read_load=read_load,
            servers=TemplateReader(pod_rules(settings), gpus),
            server_metrics=servers,
        )
        self._admission = (
            Admission.build(
                settings,
                facts=gpus,
                kube=api,
                registry=self.metrics.registry,
                clock=clock,
                pauses=self._work.lookouts.refused.words_of,
            )
            if settings.webhook_port
            else None
        )
        self._listed = asyncio.Event()
        self._no_list = ""
        self.stalls = Stalls(self._parts(), self._work.stalled_seconds)
        self.metrics.follow(self._figures)

    def start(self, group: asyncio.TaskGroup) -> None:
        """Start all tasks in ``group``; whichever ends, by an error or without, ends the group."""
        stop = asyncio.Event()
        on_signals(stop)
        tasks: dict[str, Coroutine[Any, Any, Any]] = {
            "stop": stop_when(stop),
            "lead": self._lead(),
            **{f"watch {watch.kind}": watch.run() for watch in self._watches},
            **({"admission": self._admission.serve()} if self._admission else {}),
            "quotas": self._follow_quotas(stop),
        }
        for name, task in tasks.items():
            group.create_task(never_ending(name, task), name=name)

    def not_ready(self) -> str:
        """Return what is still to come before this replica can answer; empty when nothing is."""
        if not self._listed.is_set():
            return f"CTAQuotas are not listed yet{self._no_list and f': {self._no_list}'}"
        behind = [watch.kind for watch in self._watches if not watch.synced.is_set()]
        if behind:
            return f"not listed yet: {', '.join(behind)}"
        if self._admission is not None and not self._admission.server.is_ready:
            return "the admission endpoint has no certificate yet"
        return ""

    def _parts(self) -> list[Part]:
        watches = [Part(f"the watch of {one.kind}", one.idle_seconds, stalls.WATCH_SECONDS) for one in self._watches]
        quotas = Part("the list of CTAQuotas", self._quotas.idle_seconds, stalls.QUOTAS_SECONDS)
        lease = Part("the lease", self._lease_idle_seconds, stalls.LEASE_SECONDS)
        parts = [*watches, quotas, lease]
        if self._admission is not None:
            parts.append(Part("the admission endpoint", self._admission.server.idle_seconds, stalls.ADMISSION_SECONDS))
        return parts

    def _lease_idle_seconds(self) -> float:
        return 0.0 if self.not_ready() else self.lease.idle_seconds()

    async def _follow_quotas(self, stop: asyncio.Event) -> None:
        while not await self._has_listed_quotas():  # noqa: ASYNC110 - only asking tells whether the API is there
            await asyncio.sleep(_LIST_AGAIN_SECONDS)
        self._listed.set()
        registry = make_registry(lambda: _kopf_connection(self._connection))
        self._quotas.register(registry)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._quotas.list_again(), name="list quotas")
            watching = run_kopf(registry, lambda: on_signals(stop), watch_seconds=self._settings.watch_seconds)
            group.create_task(never_ending("kopf", watching), name="kopf")

    async def _has_listed_quotas(self) -> bool:
        try:
            await self._quotas.list_all()
        except NotFound as absent:
            self._no_list = f"the kinds of ctagroup.dev are not installed in this cluster: {absent}"
        except ApiError as away:
            self._no_list = str(away)
        else:
            return True
        _log.warning("list_failed", cause=self._no_list, retry_seconds=_LIST_AGAIN_SECONDS)
        return False

    async def _lead(self) -> NoReturn:
        await self._listed.wait()
        for watch in self._watches:
            await watch.synced.wait()
        pauses.spare_what_is_there()
        await lead(self.lease, self._work, self._leading)

    def _leading(self) -> dict[str, Callable[[], Coroutine[Any, Any, Any]]]:
        """Return what only the leader runs. All of it ends when the lease is lost, and starts afresh with the next."""
        loops: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {"lease": self.lease.hold}
        loops |= self._work.loops()
        if self._admission is not None:
            loops["certificates"] = self._admission.keep_certificates
        return loops

    def _figures(self) -> Figures:
        ages = {watch.kind: watch.event_age_seconds() for watch in self._watches}
        ages[CTA_QUOTAS.kind] = self._quotas.event_age_seconds()
        figures = self._work.figures() if self.lease.is_held else Figures()
        return replace(figures, event_ages=tuple(ages.items()))


def _labels_of(view: ClusterView, name: NodeName) -> Mapping[str, str] | None:
    node = view.nodes.get(name)
    return node.facts.labels if node is not None else None


def _kopf_connection(connection: Connection) -> kopf.ConnectionInfo:
    scheme, _, token = (connection.authorization() or "").partition(" ")
    certificate, key = connection.certificate_files
    return kopf.ConnectionInfo(
        server=connection.server,
        ca_path=connection.authority_file,
        insecure=not connection.verifies,
        scheme=scheme or None,
        token=token or None,
        certificate_path=certificate,
        private_key_path=key,
        expiration=datetime.now(UTC) + timedelta(seconds=_LOGIN_SECONDS),
    )
