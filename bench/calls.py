"""What kubelet's two questions cost: over gRPC as kubelet asks them, and the plugin's own part of it."""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import grpc

from cta_group_core.profiles import profile_named
from cta_group_plugin.adapters.simulated import SimulatedSource
from cta_group_plugin.adapters.simulated_mps import SimulatedMpsControl
from cta_group_plugin.allocator import Allocator
from cta_group_plugin.answers import Rules
from cta_group_plugin.ceilings import CeilingKeeper
from cta_group_plugin.inventory import offer_of
from cta_group_plugin.kubelet_api import deviceplugin_v1beta1_pb2 as api
from cta_group_plugin.kubelet_api.deviceplugin_v1beta1_pb2_grpc import DevicePluginStub
from cta_group_plugin.metrics import Metrics
from cta_group_plugin.service import DevicePluginService, Stream
from cta_group_plugin.settings import EnforcementSettings
from cta_group_plugin.state import NodeState
from figures import Figures
from subjects import GPUS, IDS

GROUPS = 32
_WARM_UP_CALLS = 100
_RESERVE_MIB = 1024


def over_grpc(socket: Path, devices: Sequence[str], figures: Figures, calls: int) -> None:
    """Call both methods ``calls`` times, one call at a time, as kubelet does."""
    with grpc.insecure_channel(f"unix://{socket}", options=[("grpc.default_authority", "localhost")]) as channel:
        plugin = DevicePluginStub(channel)
        asked = [preferred_request(devices, seed) for seed in range(16)]
        figures.add("get_preferred_allocation_ms", *timed(plugin.GetPreferredAllocation, asked, calls))
        figures.add("allocate_ms", *timed(plugin.Allocate, [allocate_request(devices)], calls))


def preferred_request(devices: Sequence[str], seed: int) -> api.PreferredAllocationRequest:
    """Return a request that offers every device, in an order of its own, as kubelet's sets come."""
    shuffled = random.Random(seed).sample(devices, len(devices))  # noqa: S311 - an order, no secret
    container = api.ContainerPreferredAllocationRequest(available_deviceIDs=shuffled, allocation_size=GROUPS)
    return api.PreferredAllocationRequest(container_requests=[container])


def allocate_request(devices: Sequence[str]) -> api.AllocateRequest:
    """Return a request for the first groups of a GPU."""
    return api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=devices[:GROUPS])])


def timed(call: Callable[..., object], requests: Sequence[object], calls: int) -> list[float]:
    """Return the milliseconds of each call, after a warm-up."""
    taken: list[float] = []
    for number in range(_WARM_UP_CALLS + calls):
        request = requests[number % len(requests)]
        since = time.perf_counter()
        call(request)
        taken.append((time.perf_counter() - since) * 1000)
    return taken[_WARM_UP_CALLS:]


async def in_process(figures: Figures, calls: int) -> None:
    """Measure the plugin's own part: from the bytes of a request to the bytes of its answer, without a transport."""
    inventory = SimulatedSource(profile_named("h100-sxm"), GPUS, "bench").inventory()
    state = NodeState()
    state.learn_devices(inventory, offer_of(inventory, reserve_mib=_RESERVE_MIB))
    ceilings = CeilingKeeper(state, SimulatedMpsControl(), EnforcementSettings(), needs_account=False)
    rules = Rules(EnforcementSettings(), Path("/run/cta-group/mps"), 48)
    service = DevicePluginService(state, Allocator(state, ceilings, rules, Metrics("bench"), lambda: None), Stream())
    devices = list(state.view.offer.ids)
    if len(devices) != IDS:
        raise AssertionError(f"{len(devices)} ids instead of {IDS}")
    asked = [preferred_request(devices, seed).SerializeToString() for seed in range(16)]
    one = allocate_request(devices).SerializeToString()
    for name, method, kind, requests in (
        ("get_preferred_allocation_own", service.GetPreferredAllocation, api.PreferredAllocationRequest, asked),
        ("allocate_own", service.Allocate, api.AllocateRequest, [one]),
    ):
        for number in range(_WARM_UP_CALLS + calls):
            request = requests[number % len(requests)]
            since, processor_since = time.perf_counter(), time.thread_time()
            answer = await method(kind.FromString(request), None)  # type: ignore[arg-type] # a context is for refusals
            answer.SerializeToString()
            taken, processor = time.perf_counter() - since, time.thread_time() - processor_since
            if number >= _WARM_UP_CALLS:
                figures.add(f"{name}_ms", taken * 1000)
                figures.add(f"{name}_cpu_ms", processor * 1000)
            if number % _WARM_UP_CALLS == 0:
                await asyncio.sleep(0)
