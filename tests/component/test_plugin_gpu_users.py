"""Who is on the GPUs of a node, seen by the whole plugin over fake edges: without limits, foreign, ended."""

import asyncio
import threading
from collections.abc import Iterator
from functools import partial

import grpc.aio
import pytest

import conditions
from busy_node import BusyNode
from cluster_harness.waiting import PATIENCE_SECONDS
from cta_group_core.health.state import HealthRules
from cta_group_core.ids import GroupId
from cta_group_plugin.pod_events import PodEvent
from cta_group_plugin.report import ConditionReport, GpuReport
from cta_group_plugin.settings import HealthSettings
from cta_group_plugin.testing import Admitted, Ask, FakeKubelet
from gpu_looks import Program, held
from plugin_running import FakeNode, registered_plugin, short_folder
from plugin_values import account, gpu, inventory, pod, uuid_of

GPU = uuid_of(0)
POD = "11111111-1111-4111-8111-111111111111"
FAST = HealthSettings(poll_seconds=0.1, state_dir=None)
LIMITED = Program(7, 1_000, pod_uid=POD, in_mps=True)
ENGINE = Program(10, 18_000, pod_uid=POD, in_mps=True)
NEIGHBOUR = Program(11, 15_000, pod_uid=POD, in_mps=True)


class ToldPods:
    """Events that were written."""

    def __init__(self) -> None:
        self.written: list[PodEvent] = []

    async def write(self, event: PodEvent) -> None:
        """Remember an event."""
        self.written.append(event)


@pytest.fixture
def busy() -> Iterator[BusyNode]:
    """Give the test a node with one H100."""
    with short_folder() as root:
        yield BusyNode(FakeNode.under(root, inventory(gpu(0))))


until = partial(conditions.until, seconds=60)
"""Wait for something that the plugin's parts bring about."""


def published(busy: BusyNode) -> GpuReport | None:
    """Return the GPU as it was published last."""
    applied = busy.node.api.applied
    return applied[-1].gpus[0] if applied and applied[-1].gpus else None


def condition(busy: BusyNode, kind: str = "ClientsLimited") -> ConditionReport:
    """Return a condition as it was published last."""
    return next(one for one in busy.node.api.applied[-1].conditions if one.type == kind)


async def tenant(busy: BusyNode, kubelet: FakeKubelet, groups: int = 32) -> Admitted:
    """Admit a pod that kubelet lists, and that its record names."""
    (admitted,) = await kubelet.admit(pod("vllm-0"), [Ask("main", groups)])
    busy.pods = (*(busy.pods or ()), held(POD, admitted.ids))
    busy.node.pod_resources.told = account({"vllm-0": frozenset(map(GroupId.parse, admitted.ids))})
    return admitted


async def test_a_tenant_that_leaves_its_limits_is_told(busy: BusyNode) -> None:
    """Condition, event on its pod and nothing else: its neighbour is left alone, and all is well when it is gone."""
    told = busy.node.events = ToldPods()
    busy.mps.clients[GPU] = (7,)
    async with registered_plugin(busy.node, health=FAST, publish=True) as kubelet:
        await kubelet.start_container(await tenant(busy, kubelet))
        busy.runs(GPU, LIMITED)
        await until(lambda: bool(published(busy)) and condition(busy).status == "True")
        busy.runs(GPU, LIMITED, Program(8, 30_000, pod_uid=POD, name="python3"))
        await until(lambda: condition(busy).status == "False")
        assert "process 8 (python3) of pod team-a/vllm-0" in condition(busy).message
        await until(lambda: bool(told.written))
        (event,) = told.written
        assert (event.pod, event.reason) == (pod("vllm-0"), "LimitsNotInForce")
        assert published(busy) is not None
        assert published(busy).health == "Healthy"  # type: ignore[union-attr] # looked at above
        busy.runs(GPU, LIMITED)
        await until(lambda: condition(busy).status == "True")
        assert len(told.written) == 1


async def test_a_stranger_is_told_and_changes_nothing(busy: BusyNode) -> None:
    """Its memory and its name stand on the GPU; what is free and what fits stays as it was."""
    async with registered_plugin(busy.node, health=FAST, publish=True):
        busy.runs(GPU, Program(12, 600, name="Xorg"))
        await until(lambda: bool((now := published(busy)) and now.foreign_memory_mib))
        now = published(busy)
        assert now is not None
        assert (now.foreign_memory_mib, now.free, now.largest_fit, now.health) == (640, 128, 128, "Healthy")
        assert now.notice == "processes that are no tenants use it: Xorg (pid 12)"
        busy.runs(GPU)
        await until(lambda: bool((now := published(busy)) and now.foreign_memory_mib == 0 and not now.notice))


async def test_a_plugin_that_does_not_see_processes_says_so(busy: BusyNode) -> None:
    """It accuses nobody, knows of no foreign memory, and lets everybody start."""
    busy.node.processes = None
    async with registered_plugin(busy.node, health=FAST, publish=True) as kubelet:
        admitted = await tenant(busy, kubelet, 128)
        busy.runs(GPU, Program(0, None, is_visible=False), extra_mib=60_000)
        await until(lambda: bool(published(busy)) and condition(busy).reason == "NotSeen")
        assert "plugin.hostPID" in condition(busy).message
        now = published(busy)
        assert now is not None
        assert now.foreign_memory_mib is None
        await kubelet.start_container(admitted)


async def full_gpu(busy: BusyNode, kubelet: FakeKubelet) -> Admitted:
    """Let a tenant have the whole GPU and run an engine there, and return its container."""
    admitted = await tenant(busy, kubelet, 128)
    await kubelet.start_container(admitted)
    asked = len(busy.node.gpus.asked)
    busy.runs(GPU, ENGINE, NEIGHBOUR)
    await until(lambda: len(busy.node.gpus.asked) > asked + 6)  # two polls of three questions each
    return admitted


async def test_a_container_waits_for_memory_of_an_ended_process_and_goes_on_by_itself(busy: BusyNode) -> None:
    """PreStartContainer says what is missing, is asked again, and then waits until the memory is there."""
    async with registered_plugin(busy.node, health=FAST) as kubelet:
        admitted = await full_gpu(busy, kubelet)
        busy.runs(GPU, NEIGHBOUR, extra_mib=ENGINE.memory_mib or 0)
        with pytest.raises(grpc.aio.AioRpcError) as waits:
            await kubelet.start_container(admitted)
        assert waits.value.code() is grpc.StatusCode.UNAVAILABLE
        assert waits.value.details() == f"GPU 0 ({GPU}) still holds 18000 MiB of an ended process"
        busy.runs(GPU, NEIGHBOUR)
        await kubelet.start_container(admitted)


async def test_a_container_that_waits_starts_as_soon_as_the_memory_is_back(busy: BusyNode) -> None:
    """Within one and the same question of kubelet's."""
    async with registered_plugin(busy.node, health=FAST, start_patience_seconds=60) as kubelet:
        admitted = await full_gpu(busy, kubelet)
        busy.runs(GPU, NEIGHBOUR, ENGINE.ended())
        starting = asyncio.create_task(kubelet.start_container(admitted))
        asked = len(busy.node.gpus.asked)
        await until(lambda: len(busy.node.gpus.asked) > asked + 6)
        assert not starting.done()
        busy.runs(GPU, NEIGHBOUR)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await starting


async def test_memory_that_stays_away_makes_the_gpu_suspect(busy: BusyNode) -> None:
    """No new group of it is given out meanwhile, whoever holds some waits, and it comes back with the memory."""
    rules = HealthRules(clean_polls=1, quarantine_seconds=0.3)
    patient = HealthSettings(rules, poll_seconds=0.1, late_memory_seconds=0.3, state_dir=None)
    async with registered_plugin(busy.node, health=patient, publish=True) as kubelet:
        admitted = await full_gpu(busy, kubelet)
        busy.runs(GPU, NEIGHBOUR, ENGINE.ended())
        await until(lambda: bool((now := published(busy)) and now.health == "Suspect"))
        now = published(busy)
        assert now is not None
        assert "it still holds 18000 MiB of an ended process" in (now.health_reason or "")
        with pytest.raises(grpc.aio.AioRpcError, match="is suspect: it still holds 18000 MiB"):
            await kubelet.start_container(admitted)
        busy.runs(GPU, NEIGHBOUR)
        await until(lambda: bool((now := published(busy)) and now.health == "Healthy"))
        await kubelet.start_container(admitted)


async def test_memory_that_nobody_needs_stops_nobody(busy: BusyNode) -> None:
    """A quarter starts beside 18000 MiB that are not back, since the other three quarters are free."""
    async with registered_plugin(busy.node, health=FAST) as kubelet:
        first = await tenant(busy, kubelet, 32)
        busy.runs(GPU, ENGINE)
        await kubelet.start_container(first)
        busy.runs(GPU, ENGINE.ended())
        await kubelet.start_container(first)


async def test_neighbours_that_use_their_memory_stop_nobody(busy: BusyNode) -> None:
    """Nor does a stranger, after an engine has ended and everything was given back."""
    async with registered_plugin(busy.node, health=FAST) as kubelet:
        admitted = await full_gpu(busy, kubelet)
        busy.runs(GPU, Program(11, 40_000, pod_uid=POD, in_mps=True), Program(12, 30_000))
        await kubelet.start_container(admitted)


async def test_a_driver_that_hangs_stops_nobody(busy: BusyNode) -> None:
    """Whether the GPU is well is for its health to say; a start that only wants to know of memory goes on."""
    async with registered_plugin(busy.node, health=FAST) as kubelet:
        admitted = await full_gpu(busy, kubelet)
        stuck = busy.node.gpus.stuck[GPU] = threading.Event()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await kubelet.start_container(admitted)
        finally:
            stuck.set()
