"""What a program in a slice of a real GPU has: exactly the SMs, and at most the memory, that the plugin promised."""

from collections.abc import Mapping
from contextlib import AsyncExitStack

import pytest

from cta_group_core import names
from cta_group_core.plan import plan_slice
from cta_group_core.profiles import PROFILES
from cta_group_plugin.inventory import ServedGpu
from gpu_client import Answer, GpuClient
from gpu_figures import Figures
from gpu_node import GpuNode, Tenant

CONTEXT_MIB = 768
"""A context takes no more than this before a program has anything; on an H200 58 MiB with 8 SMs, 526 with all."""

ASKS_FOR_MORE: Mapping[str, str] = {names.ENV_MPS_PERCENTAGE: "100", names.ENV_MPS_MEMORY_LIMIT: "0=1024G"}
"""What a tenant sets who wants the whole GPU."""


async def what_it_has(client: GpuClient) -> Answer:
    """Return what the driver says, on how many SMs a kernel runs, and how much memory can be taken."""
    return {**client.hello, **await client.ask("spread"), **await client.ask("fill")}


def check_slice(seen: Answer, sm_count: int, memory_mib: int) -> None:
    """Fail unless a program has these SMs, no other, and this memory less its own context."""
    assert (seen["sms"], seen["sms_used"]) == (sm_count, sm_count)
    assert memory_mib - CONTEXT_MIB <= seen["allocated_mib"] <= memory_mib
    assert seen["ended_by"]["name"] == "CUDA_ERROR_OUT_OF_MEMORY"


@pytest.mark.parametrize("sixteenths", [1, 2, 4, 8, 16])
async def test_a_program_has_what_the_plan_says(
    node: GpuNode, gpu: ServedGpu, figures: Figures, sixteenths: int
) -> None:
    """In a slice of each size a kernel runs on the planned SMs only, and allocations end at the planned memory."""
    groups = gpu.units.capacity * sixteenths // 16 // gpu.units.step * gpu.units.step
    if not gpu.units.allows(groups):
        pytest.skip(f"{groups} groups are no request for this GPU: {gpu.units.allowed()}")
    tenant = await node.tenant(groups)
    async with node.client(tenant) as client:
        seen = await what_it_has(client)
    figures.note(f"slice of {groups}", planned_sms=tenant.sm_count, planned_memory_mib=tenant.memory_mib)
    figures.note(f"slice of {groups}", **_kept(seen), ready_seconds=tenant.ready_seconds)
    profile = next((one for one in PROFILES.values() if one.product == gpu.facts.product), None)
    planned = plan_slice(profile, groups).sm_granted if profile else gpu.slice_of(groups).sm_granted
    assert tenant.sm_count == planned
    if groups < gpu.units.capacity:
        check_slice(seen, planned, tenant.memory_mib)
    else:
        check_slice(seen, gpu.units.sm_count, gpu.memory_total_mib)


def _kept(seen: Answer) -> Answer:
    return {name: value for name, value in seen.items() if name not in {"pid", "user_id", "ended_by"}}


@pytest.mark.parametrize("tenants", [4, 16])
async def test_a_full_gpu_gives_every_tenant_its_memory(
    node: GpuNode, gpu: ServedGpu, figures: Figures, tenants: int
) -> None:
    """When slices take the whole GPU and each program takes all it can, each gets its slice: the reserve suffices."""
    groups = gpu.units.capacity // tenants // gpu.units.step * gpu.units.step
    if not gpu.units.allows(groups):
        pytest.skip(f"{groups} groups are no request for this GPU: {gpu.units.allowed()}")
    async with AsyncExitStack() as running:
        clients: list[tuple[Tenant, GpuClient]] = []
        for _ in range(tenants):
            tenant = await node.tenant(groups)
            clients.append((tenant, await running.enter_async_context(node.client(tenant))))
        taken = []
        for tenant, client in clients:
            seen = await what_it_has(client)
            check_slice(seen, tenant.sm_count, tenant.memory_mib)
            taken.append(seen["allocated_mib"])
        ready_seconds = [round(tenant.ready_seconds, 3) for tenant, _ in clients]
        figures.note(f"{tenants} tenants of {groups}", allocated_mib=taken, ready_seconds=ready_seconds)
        assert len({tenant.gpu for tenant, _ in clients}) == 1


async def test_a_tenant_that_asks_for_more_gets_its_slice(node: GpuNode, quarter: int, figures: Figures) -> None:
    """The daemon's ceiling holds for a program whose own environment says 100 % and all memory."""
    tenant = await node.tenant(quarter)
    async with node.client(tenant, changed=ASKS_FOR_MORE) as client:
        seen = await what_it_has(client)
    figures.note("asks for more", groups=quarter, **_kept(seen))
    check_slice(seen, tenant.sm_count, tenant.memory_mib)


async def test_a_tenant_that_says_nothing_gets_the_ceiling(node: GpuNode, eighth: int, figures: Figures) -> None:
    """Without limits of its own a program has the daemon's defaults, also behind a server that was started anew."""
    tenant = await node.tenant(eighth)
    silent = (names.ENV_MPS_PERCENTAGE, names.ENV_MPS_MEMORY_LIMIT)
    for time in ("first server", "second server"):
        async with node.client(tenant, without=silent) as client:
            unlimited = await what_it_has(client)
        async with node.client(tenant, without=silent, changed={names.ENV_MPS_PERCENTAGE: "100"}) as client:
            greedy = await what_it_has(client)
        async with node.client(tenant) as client:
            modest = await what_it_has(client)
        figures.note(
            f"says nothing, {time}", allocated_mib=[one["allocated_mib"] for one in (unlimited, greedy, modest)]
        )
        for seen in (unlimited, greedy, modest):
            check_slice(seen, tenant.sm_count, tenant.memory_mib)
        await node.kill_servers()


async def test_a_memory_limit_that_is_removed_is_gone(node: GpuNode, quarter: int) -> None:
    """Where memory is not enforced any more, a server that had a limit gives the next program what is free."""
    tenant = await node.tenant(quarter)
    async with node.client(tenant):
        control = node.control(tenant.gpu)
        (server,) = await control.servers()
        await control.set_memory_mib(server, 0)
        async with node.client(tenant, without=(names.ENV_MPS_MEMORY_LIMIT,)) as client:
            seen = await what_it_has(client)
    assert seen["allocated_mib"] > 2 * tenant.memory_mib
    assert seen["sms_used"] == tenant.sm_count


async def test_a_larger_slice_raises_the_ceiling_before_it_starts(node: GpuNode, eighth: int, quarter: int) -> None:
    """Beside a running smaller slice a larger one gets all of its own, and the smaller one goes on as it was."""
    small = await node.tenant(eighth)
    async with node.client(small) as before:
        large = await node.tenant(quarter)
        async with node.client(large) as client:
            check_slice(await what_it_has(client), large.sm_count, large.memory_mib)
        check_slice(await what_it_has(before), small.sm_count, small.memory_mib)
    async with node.client(small) as after:
        check_slice(await what_it_has(after), small.sm_count, small.memory_mib)


async def test_two_user_ids_share_a_gpu_at_once(node: GpuNode, quarter: int, figures: Figures) -> None:
    """A program of another user id is served while one of root runs, and neither waits for the other."""
    first, second = await node.tenant(quarter), await node.tenant(quarter)
    async with node.client(first) as of_root, node.client(second, user_id=65534) as of_nobody:
        figures.note(
            "two user ids", connect_seconds=[of_root.hello["connect_seconds"], of_nobody.hello["connect_seconds"]]
        )
        assert (of_root.hello["user_id"], of_nobody.hello["user_id"]) == (0, 65534)
        check_slice(await what_it_has(of_nobody), second.sm_count, second.memory_mib)
        assert not await of_root.is_dead()
        servers, clients = await node.mps_pids(first.gpu)
        assert len(servers) == 1
        assert {of_root.pid, of_nobody.pid} <= clients
    assert of_nobody.hello["connect_seconds"] < 5
