"""A host whose driver is not where it is expected, from its setting to the pod: who waits, who does not, what mends it.

The driver root is mounted read-only and has no shell. Plugin and supervisor are the real ones, beside a fake kubelet.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import grpc.aio
import pytest

from cta_group_core.ids import GroupId
from cta_group_plugin.adapters.supervisor_client import SupervisorClient
from cta_group_plugin.edges import Edges
from cta_group_plugin.testing import Admitted, Ask, FakeGpuSource, FakeKubelet
from driver_on_host import CONTROL, PROGRAMS, SERVER, HostDriver, without_execute, without_server
from plugin_running import FakeNode, plugin_on, short_folder
from plugin_values import account, node_of, pod
from simulated_mps import SimulatedNode, eventually, simulated_node

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a read-only mount takes root")

PROGRAM = Path(sys.executable).with_name("cta-group-plugin")


@dataclass
class SupervisedNode(FakeNode):
    """A node whose plugin asks a real supervisor."""

    supervisor_socket: Path = Path()

    def edges(self) -> Edges:
        """Return the fakes, and the supervisor's real client."""
        return replace(super().edges(), mps=SupervisorClient(self.supervisor_socket))


@dataclass(frozen=True)
class Host:
    """A node with two GPUs, a folder for MPS, and a driver."""

    plugin: SupervisedNode
    mps: SimulatedNode
    driver: HostDriver

    @contextmanager
    def supervisor(self, *options: str) -> Iterator[None]:
        """Run the supervisor with these values, the driver root mounted read-only, until the block ends."""
        root = self.driver.root
        mount = f"mount --bind {root} {root} && mount -o remount,bind,ro {root}"
        rest = f"--mps-root {self.mps.root} --compute-mode untouched --metrics-address ''"
        command = f"{mount} && exec {PROGRAM} mps {rest} {' '.join(options)}"
        argv = ["unshare", "--mount", "sh", "-c", command]
        with subprocess.Popen(
            argv, stderr=subprocess.DEVNULL, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        ) as process:
            try:
                yield
            finally:
                process.terminate()

    @asynccontextmanager
    async def kubelet(self) -> AsyncIterator[FakeKubelet]:
        """Run the plugin, which asks that supervisor, and yield its kubelet."""
        async with self.plugin.kubelet() as kubelet, plugin_on(self.plugin, publish=True):
            await kubelet.until(lambda kubelet: len(kubelet.devices) == 256)
            yield kubelet

    def condition(self) -> tuple[str, str]:
        """Return status and message of MPSReady as the node's object has it."""
        told = self.plugin.api.applied[-1].conditions if self.plugin.api.applied else ()
        return next(((one.status, one.message) for one in told if one.type == "MPSReady"), ("", ""))


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """Give the test a host with a complete driver in unusual folders."""
    with short_folder() as root, simulated_node() as mps:
        (root / "plugins").mkdir()
        plugin = SupervisedNode(root, FakeGpuSource(node_of(2)), supervisor_socket=mps.root / "supervisor.sock")
        yield Host(plugin, mps, HostDriver.under(tmp_path / "driver"))


async def why_it_waits(kubelet: FakeKubelet, container: Admitted) -> str:
    """Start a container and return kubelet's words for why it cannot; empty when it can."""
    try:
        await kubelet.start_container(container)
    except grpc.aio.AioRpcError as waiting:
        return waiting.details() or ""
    return ""


async def until_started(kubelet: FakeKubelet, container: Admitted) -> None:
    """Start a container again and again, as kubelet does, until it can."""

    async def started() -> bool:
        return not await why_it_waits(kubelet, container)

    await eventually(started, "the container starts")


async def admitted(host: Host, kubelet: FakeKubelet, name: str, groups: int) -> Admitted:
    """Admit a pod, of which kubelet tells from then on."""
    (container,) = await kubelet.admit(pod(name), [Ask("main", groups)])
    holdings = host.plugin.pod_resources.told
    assert not isinstance(holdings, Exception)
    held = {one.pod.name: one.ids for one in holdings.holdings}
    host.plugin.pod_resources.told = account({**held, name: frozenset(map(GroupId.parse, container.ids))})
    return container


async def test_the_right_value_is_all_it_takes(host: Host) -> None:
    """With the root's value a daemon serves a pod of 32 from a read-only driver without a shell."""
    with host.supervisor("--driver-root", str(host.driver.root)):
        async with host.kubelet() as kubelet:
            await until_started(kubelet, await admitted(host, kubelet, "part", 32))
            await eventually(lambda: host.condition()[0] == "True", "MPSReady is true")


def default_value(_driver: HostDriver) -> None:
    """Leave the driver alone: it is the value that is wrong."""


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (default_value, f"the MPS control program was not found; looked for /usr/sbin/{CONTROL}, /usr/bin/{CONTROL}"),
        (without_execute, f"{{root}}/{PROGRAMS}/{CONTROL} is there but cannot be executed"),
        (without_server, f"the MPS server program was not found; looked for {{root}}/usr/bin/{SERVER}"),
    ],
)
async def test_a_wrong_value_or_driver_is_told_to_the_pod_and_mended_without_deleting_it(
    host: Host, spoil: Callable[[HostDriver], None], told: str
) -> None:
    """Before: a part of a GPU waits with the places. During: a whole GPU starts. After another value: the part too."""
    spoil(host.driver)
    before = host.driver.files()
    options = [] if spoil is default_value else ["--driver-root", str(host.driver.root)]
    async with host.kubelet() as kubelet:
        with host.supervisor(*options):
            part = await admitted(host, kubelet, "part", 32)
            words = told.format(root=host.driver.root)

            async def waits() -> bool:
                return words in await why_it_waits(kubelet, part)

            await eventually(waits, "the pod waits with the places")
            await eventually(
                lambda: host.condition()[0] == "False" and words in host.condition()[1], "MPSReady says it"
            )
            await until_started(kubelet, await admitted(host, kubelet, "whole", 128))
            assert words in await why_it_waits(kubelet, part)
            assert host.driver.files() == before
        with suppress(FileNotFoundError):
            shutil.rmtree(host.driver.root)
        driver = HostDriver.under(host.driver.root)
        with host.supervisor("--driver-root", str(driver.root)):
            await until_started(kubelet, part)
            await eventually(lambda: host.condition()[0] == "True", "MPSReady is true")
