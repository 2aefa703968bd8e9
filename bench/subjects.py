"""The processes that are measured, each with a fake kubelet: the plugin, and the floor of bare grpcio."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from cta_group_plugin.testing import FakeKubelet

ROOT = Path(__file__).resolve().parents[1]
GPUS, GROUPS_PER_GPU = 8, 128
IDS = GPUS * GROUPS_PER_GPU

Command = Callable[[Path], list[str]]


@dataclass(frozen=True, slots=True)
class Subject:
    """A process that is registered with a kubelet."""

    kubelet: FakeKubelet
    pid: int
    started_ms: float
    """From the start of the process until kubelet has all devices."""

    @property
    def socket(self) -> Path:
        """Where it is called."""
        return self.kubelet.folder / self.kubelet.registered[-1].endpoint


def plugin_command(root: Path) -> list[str]:
    """Return the command of the plugin under measurement."""
    return [
        str(Path(sys.executable).with_name("cta-group-plugin")),
        *("run", "--source=simulated", "--profile=h100-sxm", f"--count={GPUS}", "--no-publish"),
        *(f"--device-plugin-dir={root}", f"--pod-resources-socket={root}/pods.sock", f"--mps-root={root}/mps"),
        *("--metrics-address=127.0.0.1:0", "--log-level=error"),
    ]


def floor_command(root: Path) -> list[str]:
    """Return the command of the floor."""
    return [sys.executable, str(ROOT / "bench" / "floor_plugin.py"), str(root)]


@asynccontextmanager
async def registered(command: Command) -> AsyncIterator[Subject]:
    """Start a subject and yield it once kubelet has its devices; it is killed in the end."""
    with tempfile.TemporaryDirectory(prefix="cta-") as folder:
        root = Path(folder)
        async with FakeKubelet(root, pod_resources_socket=root / "pods.sock") as kubelet:
            since = time.perf_counter()
            # As the image starts it. The moment that this takes is part of the measurement.
            environment = {**os.environ, "MALLOC_ARENA_MAX": "1"}
            process = subprocess.Popen(command(root), env=environment)  # noqa: ASYNC220
            try:
                await kubelet.until(has_all_devices, deadline_seconds=60)
                yield Subject(kubelet, process.pid, (time.perf_counter() - since) * 1000)
            finally:
                process.kill()
                process.wait()


def has_all_devices(kubelet: FakeKubelet) -> bool:
    """Tell whether kubelet has every device of the subject."""
    return list(kubelet.devices.values()).count("Healthy") == IDS


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process, shared libraries included."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise LookupError(f"no VmRSS of process {pid}")


def open_files(pid: int) -> int:
    """Return how many file descriptors a process has."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
