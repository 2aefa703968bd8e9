"""A node for ``cta-group-plugin doctor``: fake driver library, fake kubelet, simulated MPS; well until a test acts."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cta_group_core.ids import GpuUuid
from cta_group_core.profiles import profile_named
from cta_group_plugin.mps.socket import serving
from cta_group_plugin.mps.supervisor import MpsSupervisor
from cta_group_plugin.ports import PodName
from cta_group_plugin.testing import FakeKubelet
from fake_nvml.scenario import FakeGpu, Scenario
from mps_supervising import Supervising

PROGRAM = Path(sys.executable).with_name("cta-group-plugin")
EXCLUSIVE_PROCESS = 3
"""NVML's number."""


@dataclass
class ExaminedNode:
    """A node with one H200."""

    root: Path
    library: Path
    mps_root: Path
    kubelet: FakeKubelet
    gpu: FakeGpu = field(default_factory=lambda: FakeGpu.like(profile_named("h200")))
    scenario: Scenario = field(default_factory=Scenario)
    has_driver: bool = True

    @property
    def host(self) -> Path:
        """Root folder of the host, as far as it is shown."""
        return self.root / "host"

    @property
    def pod_resources(self) -> Path:
        """Where kubelet tells who holds what."""
        return self.root / "pods.sock"

    def change(self, **facts: Any) -> None:
        """Let the driver tell something else of the GPU."""
        self.gpu = replace(self.gpu, **facts)

    def put(self, path: str, text: str) -> None:
        """Put a file on the host."""
        file = self.host / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def share(self, groups: int = 32) -> GpuUuid:
        """Let a pod hold groups of the GPU, in the compute mode that is right then."""
        self.kubelet.hold(PodName("team-a", "vllm-0"), "vllm", [f"{self.gpu.uuid}::{it}" for it in range(groups)])
        self.change(compute_mode=EXCLUSIVE_PROCESS if groups < 128 else 0)
        return self.gpu.gpu_uuid

    async def runs(self, *flags: str, by: Sequence[str] = ()) -> tuple[int, str, str]:
        """Run the command as a person would, or ``by`` another one, and return exit status, output and errors."""
        replace(self.scenario, gpus=(self.gpu,)).write(self.root / "scenario")
        environment = {
            "PATH": os.environ["PATH"],
            "LD_LIBRARY_PATH": str(self.library) if self.has_driver else "",
            "FAKE_NVML_SCENARIO": str(self.root / "scenario"),
        }
        places: Sequence[str] = (
            f"--device-plugin-dir={self.kubelet.folder}",
            f"--pod-resources-socket={self.pod_resources}",
            f"--mps-root={self.mps_root}",
            f"--host-root={self.host}",
            "--node-name=node-a",
        )
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *by, str(PROGRAM), "doctor", *places, *flags, env=environment, stdout=pipe, stderr=pipe
        )
        try:
            output, errors = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode or 0, output.decode(), errors.decode()

    async def findings(self, *flags: str) -> list[dict[str, str]]:
        """Return what is found."""
        status, output, errors = await self.runs("-o", "json", *flags)
        assert status in {0, 1}, errors
        found: list[dict[str, str]] = json.loads(output)["findings"]
        return found

    async def only(self, *flags: str) -> dict[str, str]:
        """Return the one thing that is found."""
        (one,) = await self.findings(*flags)
        assert one["remedy"]
        return one


@asynccontextmanager
async def examined_node(root: Path, library: Path, mps_root: Path) -> AsyncIterator[ExaminedNode]:
    """Run the kubelet of a node until the block ends; ``root`` must leave room for the names of sockets."""
    plugins = root / "plugins"
    plugins.mkdir()
    async with FakeKubelet(plugins, pod_resources_socket=root / "pods.sock") as kubelet:
        yield ExaminedNode(root, library, mps_root, kubelet)


@asynccontextmanager
async def supervised(started: Supervising) -> AsyncIterator[MpsSupervisor]:
    """Serve a supervisor on the node's socket until the block ends."""
    supervisor = await started.start()
    async with serving(supervisor, started.node.settings.mps_socket):
        yield supervisor
