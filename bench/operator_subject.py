"""The operator under measurement: processes of it, and what is asked of them."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from admission_endpoint import webhook_of
from admission_running import local_certificate, write_pair
from http_probe import fetch, free_address
from operator_cluster import Cluster
from operator_process import OperatorProcess
from process import Exposition
from subjects import ROOT

BENCH = ROOT / "bench"
_DEADLINE_SECONDS = 900.0
_CALM_LOOKS = 10
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


@dataclass
class Operators:
    """Starts replicas of the operator; one of them serves admission at a port that is known beforehand."""

    cluster: Cluster
    port: int = field(default_factory=lambda: int(free_address().rpartition(":")[2]))
    bundle: bytes = b""

    def __post_init__(self) -> None:
        """Make a certificate that the processes find in a folder."""
        self.bundle, pair = local_certificate(hours=8)
        write_pair(self.cluster.folder, pair)
        self.authority_file.write_bytes(self.bundle)

    @property
    def url(self) -> str:
        """Where admission is asked."""
        return f"https://127.0.0.1:{self.port}/mutate"

    @property
    def authority_file(self) -> Path:
        """Whom to trust there."""
        return self.cluster.folder / "authority.pem"

    def start(self, *, serves_admission: bool = True) -> "Operator":
        """Start a replica and do not wait."""
        port = self.port if serves_admission else 0
        flags = (f"--webhook-port={port}", f"--webhook-tls-dir={self.cluster.folder}", "--log-level=warning")
        kubeconfig = self.cluster.plane.admin_kubeconfig
        return Operator(OperatorProcess(kubeconfig, "cta-group", self.cluster.folder, *flags), time.monotonic())

    def register(self, namespace: str) -> None:
        """Let the API server ask about the pods of a namespace."""
        self.cluster.plane.api.create(WEBHOOKS, webhook_of("bench", self.url, self.bundle, namespace))

    @contextmanager
    def asked(self, per_second: float) -> Iterator["Asked"]:
        """Ask the admission endpoint, and the floor, until the block ends."""
        asked = Asked(*(self.cluster.folder / f"{what}-{time.monotonic_ns()}" for what in ("asked", "floor")))
        port = int(free_address().rpartition(":")[2])
        floor = [sys.executable, str(BENCH / "floor_endpoint.py"), str(port), str(self.cluster.folder)]
        with (
            _running(floor),
            self._asking(self.url, per_second, asked.operator),
            self._asking(f"https://127.0.0.1:{port}/mutate", per_second, asked.floor),
        ):
            yield asked

    @contextmanager
    def _asking(self, url: str, per_second: float, file: Path) -> Iterator[None]:
        with file.open("w") as out:
            command = [sys.executable, str(BENCH / "asker.py"), url, str(self.authority_file), str(per_second)]
            with _running(command, stdout=out):
                yield


@dataclass(frozen=True, slots=True)
class Asked:
    """Files with what :mod:`asker` prints."""

    operator: Path
    floor: Path


@contextmanager
def _running(command: Sequence[str], stdout: IO[str] | None = None) -> Iterator[None]:
    with subprocess.Popen(command, stdout=stdout) as process:
        try:
            yield
        finally:
            process.kill()


@dataclass
class Operator:
    """One replica. Times are those of the monotonic clock."""

    process: OperatorProcess
    started: float

    @property
    def pid(self) -> int:
        """Its process."""
        return self.process.process.pid

    async def ready(self) -> float:
        """Wait until it is ready; return when it was."""
        return await self._until(self.process.ready)

    async def leads(self) -> float:
        """Wait until it leads; return when it did."""
        return await self._until(lambda: self.process.leads)

    async def calm(self) -> float:
        """Wait until its queues have been empty for some looks; return when they became so."""
        began = 0.0
        calm = 0
        while calm < _CALM_LOOKS:
            now = time.monotonic()
            if now - self.started > _DEADLINE_SECONDS:
                raise TimeoutError("the operator's queues never become empty")
            scraped = await self.scrape()
            calm = 0 if scraped.total("cta_group_queue_depth") else calm + 1
            began = now if calm == 1 else began
            await asyncio.sleep(0.2)
        return began

    async def scrape(self) -> Exposition:
        """Return its metrics."""
        return Exposition.of(await asyncio.to_thread(fetch, self.process.metrics_url))

    async def _until(self, is_true: Callable[[], bool]) -> float:
        async with asyncio.timeout(_DEADLINE_SECONDS):
            while not await asyncio.to_thread(is_true):
                if self.process.process.poll() is not None:
                    raise AssertionError(self.process.log)
                await asyncio.sleep(0.02)
        return time.monotonic()
