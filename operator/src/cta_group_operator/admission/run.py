"""What the application starts: the endpoint on every replica, and on the leader the keeping of its certificates."""

import asyncio
import socket
from dataclasses import dataclass
from typing import NoReturn, Self

from aiohttp import web
from prometheus_client import CollectorRegistry

from cta_group_operator.admission.authority import BadCertificate
from cta_group_operator.admission.certificate_sources import CertificateSource, FolderSource, SecretSource
from cta_group_operator.admission.certificates import CertificateKeeper
from cta_group_operator.admission.decision import Pauses
from cta_group_operator.admission.endpoint import Endpoint
from cta_group_operator.admission.gpu_kinds import SliceFacts
from cta_group_operator.admission.metrics import AdmissionMetrics
from cta_group_operator.admission.settings import EndpointSettings, pod_rules
from cta_group_operator.admission.side_loop import SideLoop
from cta_group_operator.admission.tls import ServingContext
from cta_group_operator.errors import ApiError
from cta_group_operator.logs import EventLog
from cta_group_operator.ports import Clock, KubeApi
from cta_group_operator.settings import Settings

_log = EventLog(__name__)
_SHUTDOWN_SECONDS = 5.0
_PATIENCE_SECONDS = 8.0
"""A thread that hangs keeps no process from ending, nor its lease from others: the pod has half a minute for all."""
_FIRST_POLL_SECONDS = 0.5
"""Pods come in unfitted until there is a certificate, so it is looked for more often at first."""


@dataclass(frozen=True, slots=True)
class Admission:
    """The admission side of one replica."""

    server: "AdmissionServer"
    keeper: CertificateKeeper | None
    """None when somebody else keeps the certificates."""
    poll_seconds: float

    @classmethod
    def build(
        cls,
        settings: Settings,
        *,
        facts: SliceFacts,
        kube: KubeApi,
        registry: CollectorRegistry,
        clock: Clock,
        pauses: Pauses = lambda _: "",
    ) -> Self:
        """Wire it from the operator's settings; nothing listens yet. Metrics are in ``registry`` from now on.

        ``kube`` reads on every replica; its writes must be refused where another one leads.
        """
        endpoint_settings = EndpointSettings.of(settings)
        metrics = AdmissionMetrics(registry)
        source: CertificateSource
        keeper: CertificateKeeper | None
        if endpoint_settings.tls_dir is not None:
            source, keeper = FolderSource(endpoint_settings.tls_dir), None
        else:
            source = SecretSource(kube, endpoint_settings.namespace, endpoint_settings.secret_name)
            keeper = CertificateKeeper(kube, endpoint_settings, clock)
        endpoint = Endpoint(pod_rules(settings), facts, metrics, pauses)
        return cls(
            AdmissionServer(endpoint_settings, endpoint, source), keeper, endpoint_settings.lifetimes.poll_seconds
        )

    async def serve(self) -> NoReturn:
        """Answer the API server until cancelled; the endpoint opens when there is a certificate. On every replica."""
        await self.server.run()

    async def keep_certificates(self) -> NoReturn:
        """Make, rotate and publish certificates until cancelled, or wait when they are somebody else's. Leader only."""
        while True:
            if self.keeper is not None:
                await self._keep(self.keeper)
            await asyncio.sleep(self.poll_seconds)

    async def _keep(self, keeper: CertificateKeeper) -> None:
        try:
            await keeper.round()
        except ApiError as failed:
            _log.warning("certificates_not_kept", cause=failed, retry_seconds=self.poll_seconds)


class AdmissionServer:
    """The endpoint over TLS; its certificate changes without a restart.

    It answers in a thread of its own: pods are created while the rest of the process reads ten thousand others.
    """

    def __init__(self, settings: EndpointSettings, endpoint: Endpoint, source: CertificateSource) -> None:
        self._settings = settings
        self._endpoint = endpoint
        self._source = source
        self._tls = ServingContext()
        self._refreshing = asyncio.Lock()
        self._side: SideLoop | None = None
        self._runner: web.AppRunner | None = None
        self._listener: socket.socket | None = None

    @property
    def is_ready(self) -> bool:
        """Tell whether questions are answered; for the readiness of the process."""
        return self._runner is not None

    @property
    def port(self) -> int:
        """Return the port that is listened on; 0 before that."""
        addresses = self._runner.addresses if self._runner is not None else []
        return int(addresses[0][1]) if addresses else 0

    def idle_seconds(self) -> float:
        """Return for how long the endpoint's thread did nothing though something was due; 0 before it listens."""
        return self._side.idle_seconds() if self._side is not None else 0.0

    async def run(self) -> NoReturn:
        """Serve until cancelled, with the newest certificate."""
        try:
            while True:
                await self.refresh()
                poll_seconds = self._settings.lifetimes.poll_seconds
                await asyncio.sleep(poll_seconds if self.is_ready else min(poll_seconds, _FIRST_POLL_SECONDS))
        finally:
            await self.close()

    async def refresh(self) -> None:
        """Load the certificate if it is another one, and open the endpoint once there is one. Never raises for it.

        Of two that ask at once the second finds everything done.
        """
        async with self._refreshing:
            await self._load()
            if self._tls.is_loaded and self._runner is None:
                await self._open()

    async def _load(self) -> None:
        try:
            pair = await self._source.current()
            ends = self._tls.load(pair) if pair is not None else None
        except (BadCertificate, ApiError, OSError) as bad:
            _log.warning("certificate_not_loaded", cause=bad)
            return
        if ends is not None:
            self._endpoint.metrics.observe_certificate(ends)
            _log.info("certificate_loaded", ends_timestamp_seconds=int(ends))

    async def _open(self) -> None:
        self._side = SideLoop("admission")
        # A port that is taken raises OSError: nobody can serve here, and the process says so by ending.
        self._runner = await self._side.run(self._listen())
        _log.info("admission_listening", host=self._settings.host, port=self.port)

    async def _listen(self) -> web.AppRunner:
        listener = self._listener = socket.create_server((self._settings.host, self._settings.port))
        runner = web.AppRunner(self._endpoint.application(), access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
        await runner.setup()
        await web.SockSite(runner, listener, ssl_context=self._tls.context).start()
        return runner

    async def close(self, patience_seconds: float = _PATIENCE_SECONDS) -> None:
        """Finish the answers that are on their way and stop listening; safe to call twice.

        What hangs is waited for ``patience_seconds`` and then left alone.
        """
        runner, self._runner = self._runner, None
        listener, self._listener = self._listener, None
        side, self._side = self._side, None
        if side is None:
            return
        if runner is not None and listener is not None:
            try:
                async with asyncio.timeout(patience_seconds):
                    await side.run(_end(runner, listener))
            except TimeoutError:
                _log.warning("admission_does_not_end", seconds=patience_seconds)
        await side.stop()


async def _end(runner: web.AppRunner, listener: socket.socket) -> None:
    """Finish what is being answered, and let no connection outlive that: the loop under it is about to end."""
    asyncio.get_running_loop().remove_reader(listener)
    await asyncio.sleep(0)  # what was accepted just now becomes a connection: a server that is closed leaves it open
    connections = runner.server.connections if runner.server is not None else []
    transports = [one.transport for one in connections if one.transport is not None]
    await runner.cleanup()
    for transport in transports:
        transport.abort()  # closed already, but TLS waits for the other side to say so too
