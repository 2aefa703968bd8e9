"""The whole plugin in a test: inside the test's process over fake edges, or as a process of its own."""

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from cluster_harness.waiting import PATIENCE_SECONDS
from cta_group_plugin.app import serve
from cta_group_plugin.edges import Edges
from cta_group_plugin.gpu_source import Processes
from cta_group_plugin.lookout import Record
from cta_group_plugin.pod_events import EventApi
from cta_group_plugin.ports import Inventory
from cta_group_plugin.settings import HealthSettings, RunSettings
from cta_group_plugin.testing import FakeGpuSource, FakeKubelet, FakeMpsControl, FakeNodeApi, FakePodResources
from plugin_values import node_of


@dataclass
class FakeNode:
    """A node with a fake kubelet and fakes at every other edge of the plugin."""

    root: Path
    gpus: FakeGpuSource
    mps: FakeMpsControl = field(default_factory=FakeMpsControl)
    pod_resources: FakePodResources = field(default_factory=FakePodResources)
    api: FakeNodeApi = field(default_factory=FakeNodeApi)
    processes: Processes | None = None
    read_record: Record | None = None
    events: EventApi | None = None

    @classmethod
    def under(cls, root: Path, inventory: Inventory | None = None) -> "FakeNode":
        """Return a node with these GPUs, eight H100s without a word, and its folders below ``root``."""
        (root / "plugins").mkdir()
        return cls(root, FakeGpuSource(inventory or node_of(8)))

    @property
    def settings(self) -> RunSettings:
        """Settings that fit this node; change some with ``dataclasses.replace``."""
        return RunSettings(
            node_name="node-a",
            device_plugin_dir=self.root / "plugins",
            pod_resources_socket=self.root / "pods.sock",
            mps_root=self.root / "mps",
            health=HealthSettings(poll_seconds=0.2, state_dir=None),
            start_patience_seconds=0,
            metrics_address="",
            publish=False,
        )

    def kubelet(self) -> FakeKubelet:
        """Return the kubelet of this node, to be entered."""
        return FakeKubelet(self.settings.device_plugin_dir)

    def edges(self) -> Edges:
        """Return this node's fakes as the plugin's edges."""
        return Edges(
            self.gpus,
            self.mps,
            self.pod_resources,
            self.api,
            events=self.events,
            processes=self.processes,
            record=self.read_record,
        )


@contextmanager
def short_folder() -> Iterator[Path]:
    """Yield a new folder whose path leaves room for a socket's name, and remove it."""
    with tempfile.TemporaryDirectory(prefix="cta-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@asynccontextmanager
async def plugin_on(node: FakeNode, **changed: object) -> AsyncIterator[None]:
    """Run the plugin in this process; it must end by itself, without an error, when it is asked to."""
    settings = replace(node.settings, **changed)  # type: ignore[arg-type] # names are those of the settings
    stopping = asyncio.Event()
    running = asyncio.create_task(serve(settings, node.edges(), stopping))
    try:
        yield
    finally:
        stopping.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            code = await running
    assert code == 0


@asynccontextmanager
async def registered_plugin(node: FakeNode, **changed: object) -> AsyncIterator[FakeKubelet]:
    """Run the plugin and a fake kubelet, and yield the kubelet once it was told all devices."""
    async with node.kubelet() as kubelet, plugin_on(node, **changed):
        await kubelet.until(lambda kubelet: bool(kubelet.devices))
        yield kubelet


@asynccontextmanager
async def plugin_process(root: Path, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run ``cta-group-plugin run`` with simulated GPUs over the folders of ``root``; killed in the end if need be."""
    command = [
        str(Path(sys.executable).with_name("cta-group-plugin")),
        "run",
        "--source=simulated",
        f"--device-plugin-dir={root / 'plugins'}",
        f"--pod-resources-socket={root / 'pods.sock'}",
        f"--mps-root={root / 'mps'}",
        "--no-publish",
        "--metrics-address=",
        *arguments,
    ]
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment["MALLOC_ARENA_MAX"] = _of_image("MALLOC_ARENA_MAX")
    process = await asyncio.create_subprocess_exec(*command, env=environment)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()


def _of_image(variable: str) -> str:
    """Return a variable as the plugin's image sets it, so that a process of a test costs what one of a node does."""
    dockerfile = Path(__file__).parents[2].joinpath("Dockerfile").read_text()
    return dockerfile.partition(f"ENV {variable}=")[2].split()[0]
