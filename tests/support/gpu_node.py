"""One node around a real GPU: the plugin's process, the supervisor's process, NVIDIA's MPS, and a fake kubelet.

Everything but kubelet is real, and a tenant gets exactly what the plugin answered for it.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from cta_group_core import names
from cta_group_core.ids import GpuUuid, GroupId
from cta_group_plugin.mps.control import MpsControlClient
from cta_group_plugin.mps.folders import MpsFolders
from cta_group_plugin.mps.program import ControlProgram
from cta_group_plugin.ports import PodName
from cta_group_plugin.settings import SUPERVISOR_SOCKET_NAME
from cta_group_plugin.testing.kubelet import FakeKubelet
from cta_group_plugin.testing.pods import Admitted, Ask
from gpu_client import GpuClient, gpu_client
from gpu_pods import PodsOfNode
from gpu_processes import CONTROL_DAEMON, SERVER, kill_mps_processes, mps_processes, plugin_command
from http_probe import fetch, free_address

_INHERITED: Final = ("PATH", "LD_LIBRARY_PATH")
_VISIBLE: Final = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class Tenant:
    """A container of a pod that got its groups and may start."""

    admitted: Admitted
    ready_seconds: float
    """From the question of kubelet whether it may start to the answer that it may."""
    pod: PodName | None = None
    pod_uid: str | None = None
    """Where somebody tells which process is in which pod."""

    @property
    def environment(self) -> Mapping[str, str]:
        """What the plugin adds to the container's environment."""
        return self.admitted.answer.envs

    @property
    def gpu(self) -> GpuUuid:
        """The GPU that it is on."""
        return GroupId.parse(self.admitted.ids[0]).gpu

    @property
    def sm_count(self) -> int:
        """SMs that it was told to have."""
        return int(self.environment[names.ENV_SM_COUNT])

    @property
    def memory_mib(self) -> int:
        """Memory that it was told to have."""
        return int(self.environment[names.ENV_MEMORY_MIB])


class GpuNode:
    """Make it with :func:`gpu_node`."""

    def __init__(self, root: Path, kubelet: FakeKubelet, started: ExitStack, pods: PodsOfNode | None) -> None:
        """``pods``: None where nobody tells which process is in which pod."""
        self.root = root
        self.pods = pods
        self._metrics_address = free_address()
        self.mps_root = root / "mps"
        self.kubelet = kubelet
        self._started = started
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._tenants = 0

    def start_supervisor(self) -> None:
        """Start ``cta-group-plugin mps``."""
        # The compute mode stays: other users of the machine may count on what it is.
        words = ["mps", "--mps-root", str(self.mps_root), "--compute-mode", "untouched", "--metrics-address", ""]
        self._supervisor = self._started.enter_context(plugin_command(words, self.root / "supervisor.log"))

    def end_supervisor(self) -> None:
        """End it with SIGTERM, as an upgrade does."""
        self._signal_supervisor(signal.SIGTERM)

    def kill_supervisor(self) -> None:
        """End it with SIGKILL."""
        self._signal_supervisor(signal.SIGKILL)

    async def kill_servers(self) -> None:
        """End the servers of this node with SIGKILL and wait until their daemons know it.

        Until then, some 0.1 s, a newcomer is refused with CUDA_ERROR_MPS_CONNECTION_FAILED.
        """
        for pid in (killed := self.processes(SERVER)):
            os.kill(pid, signal.SIGKILL)
        await until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in killed), "the servers are gone")

    async def start_plugin(self) -> None:
        """Start ``cta-group-plugin run`` on the real driver and wait until its groups are offered.

        The supervisor is waited for too, so that what is measured afterwards is not its start.
        """
        await until((self.mps_root / SUPERVISOR_SOCKET_NAME).exists, "the supervisor serves")
        sockets = ["--device-plugin-dir", str(self.kubelet.folder), "--pod-resources-socket", str(self.root / "pods")]
        words = ["run", "--source", "nvml", "--no-publish", "--mps-root", str(self.mps_root), "--poll-seconds", "1"]
        words += ["--metrics-address", self._metrics_address, "--state-dir", str(self.root / "state")]
        if self.pods:
            words += ["--processes-dir", str(self.pods.processes)]
        self._started.enter_context(plugin_command([*words, *sockets], self.root / "plugin.log"))
        await self.kubelet.until(lambda kubelet: "Healthy" in kubelet.devices.values(), deadline_seconds=60)

    async def tenant(self, groups: int) -> Tenant:
        """Admit a pod and return once its container may start; raises AioRpcError when it must wait for too long."""
        self._tenants += 1
        pod = PodName("team", f"pod-{self._tenants}")
        (admitted,) = await self.kubelet.admit(pod, [Ask("server", groups)])
        uid = self.pods.hold(self._tenants, admitted.ids) if self.pods else None
        return replace(await self.started(admitted), pod=pod, pod_uid=uid)

    def delete(self, tenant: Tenant) -> None:
        """End the pod of a tenant whose programs have ended; its groups are free."""
        assert tenant.pod, "it came by itself"
        self.kubelet.delete(tenant.pod)
        if self.pods and tenant.pod_uid:
            self.pods.release(tenant.pod_uid)

    async def started(self, admitted: Admitted) -> Tenant:
        """Let a container start, or start again."""
        began = time.monotonic()
        await self.kubelet.start_container(admitted)
        return Tenant(admitted, time.monotonic() - began)

    async def started_again(self, tenant: Tenant) -> Tenant:
        """Let the container of a tenant start again."""
        again = await self.started(tenant.admitted)
        return replace(again, pod=tenant.pod, pod_uid=tenant.pod_uid)

    async def figure(self, name: str, gpu: GpuUuid) -> float | None:
        """Return one of the plugin's figures about a GPU; None when it does not tell it."""
        lines = (await asyncio.to_thread(fetch, f"http://{self._metrics_address}/metrics")).splitlines()
        found = [line for line in lines if line.startswith(f"cta_group_{name}{{") and f'gpu_uuid="{gpu}"' in line]
        return float(found[0].rpartition(" ")[2]) if found else None

    async def until_figure(self, name: str, gpu: GpuUuid, value: float, *, seconds: float = 30.0) -> float:
        """Wait until the plugin tells a figure and return how long that took."""
        began, told = time.monotonic(), await self.figure(name, gpu)
        while told != value:
            assert time.monotonic() - began < seconds, f"{name} is {told}, not {value}"
            await asyncio.sleep(0.1)
            told = await self.figure(name, gpu)
        return time.monotonic() - began

    def client(
        self,
        tenant: Tenant,
        *,
        changed: Mapping[str, str] | None = None,
        without: tuple[str, ...] = (),
        user_id: int = 0,
    ) -> AbstractAsyncContextManager[GpuClient]:
        """Run a program of the tenant until the block ends.

        ``changed`` and ``without`` are what the tenant does to its own environment.
        """
        given = {name: value for name, value in tenant.environment.items() if name not in without}
        return gpu_client(environment_of(tenant.gpu, {**given, **(changed or {})}), self.root, user_id=user_id)

    def control(self, gpu: GpuUuid) -> MpsControlClient:
        """Return a way to ask the daemon of a GPU."""
        program = ControlProgram(CONTROL_DAEMON, environment=inherited())
        return MpsControlClient(program, MpsFolders.under(self.mps_root, gpu), timeout_seconds=10.0)

    async def mps_pids(self, gpu: GpuUuid) -> tuple[set[int], set[int]]:
        """Return the servers and the clients of a GPU's daemon, as it tells them."""
        control = self.control(gpu)
        servers = set(await control.servers())
        return servers, {client for server in servers for client in await control.clients(server)}

    def _signal_supervisor(self, number: signal.Signals) -> None:
        assert self._supervisor is not None
        self._supervisor.send_signal(number)
        self._supervisor.wait(30)

    def processes(self, name: str = "") -> list[int]:
        """Return the daemons, servers or clients of this node that run."""
        return mps_processes(self.mps_root, name)


@asynccontextmanager
async def gpu_node(*, has_pods: bool = False) -> AsyncIterator[GpuNode]:
    """Make a node with both processes running; nothing of it is left after the block.

    With ``has_pods`` the plugin can tell in which pod a process is, as it can on a node of a cluster.
    """
    with tempfile.TemporaryDirectory(prefix="cta-gpu-") as folder, ExitStack() as started:
        root = _made_passable(Path(folder))
        started.callback(kill_mps_processes, root / "mps")
        async with FakeKubelet(root / "plugins", pod_resources_socket=root / "pods") as kubelet:
            pods = PodsOfNode(root / "processes", root / "plugins") if has_pods else None
            node = GpuNode(root, kubelet, started, pods)
            try:
                node.start_supervisor()
                await node.start_plugin()
                yield node
            finally:
                await asyncio.to_thread(started.close)  # kubelet answers the plugin until its end
                _show_logs(root)


def _made_passable(root: Path) -> Path:
    """Let tenants of any user id reach the pipe folders."""
    root.chmod(0o755)
    (root / "plugins").mkdir()
    return root


def _show_logs(root: Path) -> None:
    """Print what both processes and the daemons logged; pytest shows it for a test that failed."""
    for log in (*root.glob("*.log"), *root.glob("mps/*/log/*")):
        sys.stdout.write(f"---- {log.name}\n{log.read_text(errors='replace')[-4000:]}\n")


def inherited() -> dict[str, str]:
    """Return what a program needs to find others and their libraries."""
    return {name: os.environ[name] for name in _INHERITED if name in os.environ}


def environment_of(gpu: GpuUuid, given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a tenant's program with what it was given.

    Outside MPS it sees the one GPU that a container runtime would show it.
    """
    seen = {} if names.ENV_MPS_PIPE_DIRECTORY in given else {_VISIBLE: str(gpu)}
    return {**inherited(), "CUDA_CACHE_DISABLE": "1", **seen, **given}


async def until(is_true: Callable[[], bool], what: str, seconds: float = 30.0) -> float:
    """Wait until the condition holds and return how long that took; fail with ``what`` when it does not in time."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            while not is_true():  # noqa: ASYNC110 - other processes change it
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not within {seconds} s: {what}") from None
    return time.monotonic() - began
