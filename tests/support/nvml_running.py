"""The whole plugin as a process with the real NVML binding over the fake library, beside a fake kubelet and API."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_harness.waiting import PATIENCE_SECONDS
from cta_group_plugin.ports import PodDevices
from cta_group_plugin.testing import FakeKubelet
from fake_api_server import FakeApiServer, fake_api_server
from fake_nvml.scenario import Scenario
from gpu_looks import Program, write_process, write_record
from plugin_running import short_folder

_NODE = "node-a"


@dataclass
class NvmlNode:
    """A node whose driver is a scenario. The plugin asks its GPUs every second."""

    root: Path
    kubelet: FakeKubelet
    api: FakeApiServer
    process: asyncio.subprocess.Process

    def runs(self, *programs: Program) -> None:
        """Let the host's kernel show these programs; others stay as they were."""
        for program in programs:
            write_process(self.root / "proc", program)

    def records(self, *held: PodDevices) -> None:
        """Let kubelet's record name the pods that hold groups."""
        write_record(self.root / "plugins", held)

    def become(self, scenario: Scenario) -> None:
        """Change what the driver answers from now on."""
        scenario.write(self.root / "scenario")

    def status(self) -> dict[str, Any]:
        """Return the status of the node's object; empty when there is none yet."""
        found: dict[str, Any] = self.api.objects.get(_NODE, {}).get("status", {})
        return found

    def gpus(self) -> list[dict[str, Any]]:
        """Return its GPUs."""
        found: list[dict[str, Any]] = self.status().get("gpus", [])
        return found

    def condition(self, kind: str) -> tuple[str, str, str]:
        """Return status, reason and message of one of its conditions."""
        found = next(each for each in self.status()["conditions"] if each["type"] == kind)
        return found["status"], found["reason"], found["message"]

    async def until(self, told: Callable[["NvmlNode"], bool], *, deadline_seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until the object says something."""
        async with asyncio.timeout(deadline_seconds):
            while not (self.status() and told(self)):  # noqa: ASYNC110 - another process brings it about
                await asyncio.sleep(0.02)

    async def until_groups(self, count: int) -> None:
        """Wait until kubelet may give out that many groups."""
        await self.kubelet.until(
            lambda kubelet: sum(told == "Healthy" for told in kubelet.devices.values()) == count,
            deadline_seconds=PATIENCE_SECONDS,
        )


@asynccontextmanager
async def nvml_node(library: Path, scenario: Scenario, *arguments: str) -> AsyncIterator[NvmlNode]:
    """Run the plugin on a node; its process is killed in the end if need be."""
    async with AsyncExitStack() as stack:
        root = stack.enter_context(short_folder())
        (root / "plugins").mkdir()
        (root / "proc/self").mkdir(parents=True)
        scenario.write(root / "scenario")
        kubelet = await stack.enter_async_context(
            FakeKubelet(root / "plugins", pod_resources_socket=root / "pods.sock")
        )
        api = await stack.enter_async_context(fake_api_server())
        process = await _start(root, library, api.url, arguments)
        stack.push_async_callback(_end, process)
        yield NvmlNode(root, kubelet, api, process)


async def _start(root: Path, library: Path, api: str, arguments: tuple[str, ...]) -> asyncio.subprocess.Process:
    command = [
        str(Path(sys.executable).with_name("cta-group-plugin")),
        "run",
        f"--node-name={_NODE}",
        f"--device-plugin-dir={root / 'plugins'}",
        f"--pod-resources-socket={root / 'pods.sock'}",
        f"--mps-root={root / 'mps'}",
        f"--state-dir={root / 'state'}",
        f"--processes-dir={root / 'proc'}",
        f"--api-server={api}",
        "--metrics-address=",
        "--poll-seconds=1",
        "--start-patience-seconds=0",
        *arguments,
    ]
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment |= {"LD_LIBRARY_PATH": str(library), "FAKE_NVML_SCENARIO": str(root / "scenario")}
    return await asyncio.create_subprocess_exec(*command, env=environment)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.send_signal(signal.SIGKILL)
    await process.wait()
