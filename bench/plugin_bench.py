"""What the plugin costs a node, as its kubelet sees it, beside the floor of the same messages on bare grpcio.

Prints JSON and writes it to build/bench.json. Everything goes through real unix sockets; the kubelet is the fake one of
``cta_group_plugin.testing``, the GPUs are simulated. Subjects take turns: a busy moment of the machine hits both.
"""

import argparse
import asyncio
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

import grpc

from cta_group_plugin.kubelet_api import deviceplugin_v1beta1_pb2 as api
from cta_group_plugin.kubelet_api.deviceplugin_v1beta1_pb2_grpc import DevicePluginStub
from cta_group_plugin.testing import FakeKubelet

ROOT = Path(__file__).resolve().parents[1]
GPUS, GROUPS_PER_GPU, GROUPS = 8, 128, 32
WARM_UP_CALLS = 100


@dataclass
class Samples:
    """Results of one subject: one value for each repeat."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, value: float) -> None:
        """Take the value of one repeat."""
        self.values.setdefault(name, []).append(value)

    def summary(self) -> dict[str, dict[str, float]]:
        """Return median, least and most over the repeats."""
        return {
            name: {"median": round(median(each), 3), "least": round(min(each), 3), "most": round(max(each), 3)}
            for name, each in self.values.items()
        }


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


async def measure(command: Callable[[Path], list[str]], samples: Samples, calls: int) -> None:
    """Start a subject, measure it once, and end it."""
    with tempfile.TemporaryDirectory(prefix="cta-") as folder:
        root = Path(folder)
        async with FakeKubelet(root, pod_resources_socket=root / "pods.sock") as kubelet:
            since = time.perf_counter()
            process = subprocess.Popen(command(root))  # noqa: ASYNC220 - a moment that is part of the measurement
            try:
                await kubelet.until(lambda kubelet: len(kubelet.devices) == GPUS * GROUPS_PER_GPU, deadline_seconds=60)
                samples.add("start_to_registered_ms", (time.perf_counter() - since) * 1000)
                socket, devices = root / kubelet.registered[0].endpoint, list(kubelet.devices)
                await asyncio.to_thread(measure_calls, socket, devices, samples, calls)
                samples.add("resident_mib", resident_mib(process.pid))
            finally:
                process.kill()
                process.wait()


def measure_calls(socket: Path, devices: Sequence[str], samples: Samples, calls: int) -> None:
    """Call both methods ``calls`` times, one call at a time, as kubelet does."""
    with grpc.insecure_channel(f"unix://{socket}", options=[("grpc.default_authority", "localhost")]) as channel:
        plugin = DevicePluginStub(channel)
        asked = [preferred_request(devices, seed) for seed in range(16)]
        add_percentiles(samples, "get_preferred_allocation", timed(plugin.GetPreferredAllocation, asked, calls))
        containers = [api.ContainerAllocateRequest(devices_ids=devices[:GROUPS])]
        add_percentiles(
            samples, "allocate", timed(plugin.Allocate, [api.AllocateRequest(container_requests=containers)], calls)
        )


def preferred_request(devices: Sequence[str], seed: int) -> api.PreferredAllocationRequest:
    """Return a request that offers every device, in an order of its own, as kubelet's sets come."""
    shuffled = random.Random(seed).sample(devices, len(devices))  # noqa: S311 - an order, no secret
    container = api.ContainerPreferredAllocationRequest(available_deviceIDs=shuffled, allocation_size=GROUPS)
    return api.PreferredAllocationRequest(container_requests=[container])


def timed(call: Callable[..., object], requests: Sequence[object], calls: int) -> list[float]:
    """Return the milliseconds of each call, after a warm-up."""
    taken: list[float] = []
    for number in range(WARM_UP_CALLS + calls):
        request = requests[number % len(requests)]
        since = time.perf_counter()
        call(request)
        taken.append((time.perf_counter() - since) * 1000)
    return taken[WARM_UP_CALLS:]


def add_percentiles(samples: Samples, name: str, taken: Sequence[float]) -> None:
    """Add p50 and p99 of one repeat."""
    cuts = quantiles(taken, n=100)
    samples.add(f"{name}_p50_ms", cuts[49])
    samples.add(f"{name}_p99_ms", cuts[98])


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process, shared libraries included."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise LookupError(f"no VmRSS of process {pid}")


def report(plugin: Samples, floor: Samples, calls: int, repeats: int) -> dict[str, object]:
    """Return everything, with the ratio of the medians."""
    ours, least = plugin.summary(), floor.summary()
    return {
        "conditions": {
            "gpus": GPUS,
            "ids": GPUS * GROUPS_PER_GPU,
            "groups_per_request": GROUPS,
            "calls_per_repeat": calls,
            "repeats": repeats,
            "cpus": os.cpu_count(),
            "load_average": round(os.getloadavg()[0], 2),
            "python": platform.python_version(),
            "grpcio": grpc.__version__,
        },
        "plugin": ours,
        "floor": least,
        "ratio": {name: round(ours[name]["median"] / least[name]["median"], 2) for name in ours},
    }


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000, help="calls of each method in one repeat")
    parser.add_argument("--repeats", type=int, default=5, help="fresh processes of each subject")
    asked = parser.parse_args()
    plugin, floor = Samples(), Samples()
    for _ in range(asked.repeats):
        await measure(floor_command, floor, asked.calls)
        await measure(plugin_command, plugin, asked.calls)
    text = json.dumps(report(plugin, floor, asked.calls, asked.repeats), indent=2)
    target = ROOT / "build" / "bench.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(f"{text}\n")
    print(text)


if __name__ == "__main__":
    asyncio.run(main())
