"""The leader's work as a whole: what begins with the lease, and what a replica without it keeps."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from budget_world import FakeServerMetrics
from conditions import until
from cta_group_core.nodes import Allocation
from cta_group_core.workload import WorkloadOwner, WorkloadStatus
from cta_group_operator.adapters.convert_load import read_load
from cta_group_operator.clock import SystemClock
from cta_group_operator.errors import ApiUnavailable
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import Clock, WorkloadView
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.reconcile.work import Work
from cta_group_operator.settings import Settings
from operator_world import (
    READ_LIMIT,
    READ_POD,
    FakeKube,
    FakeServers,
    a_controller,
    a_limit,
    a_node,
    a_pod,
    a_quota,
    a_view,
    ref,
)
from virtual_time import VirtualClock, run_in_virtual_time


class HangingKube(FakeKube):
    """Answers nothing while ``hangs``, as an API server that is stopped does."""

    hangs = False
    asked = 0

    async def json_patch(self, path: str, operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Release a pod, or never come back."""
        self.asked += 1
        if self.hangs:
            await asyncio.Event().wait()
        return await super().json_patch(path, operations)


def a_work(view: ClusterView, kube: FakeKube, clock: Clock | None = None, metrics: Metrics | None = None) -> Work:
    """Return the work of one replica."""
    return Work(
        Settings(identity="me"),
        view,
        kube,
        clock or SystemClock(),
        metrics=metrics or Metrics("test"),
        read_limit=READ_LIMIT,
        read_pod=READ_POD,
        read_load=read_load,
        servers=FakeServers(),
        server_metrics=FakeServerMetrics(),
    )


async def run_all(work: Work) -> None:
    """Run what the leader runs."""
    async with asyncio.TaskGroup() as group:
        for loop in work.loops().values():
            group.create_task(loop())


async def lose_the_lease(led: asyncio.Task[None], work: Work) -> None:
    """End what the leader runs, as a lost lease does."""
    led.cancel()
    with suppress(asyncio.CancelledError):
        await led
    work.end()


async def test_a_pod_whose_release_was_cut_short_is_released_by_the_next_leadership() -> None:
    """A lease that is lost while a patch is on its way, and won again, leaves no pod gated for ever."""
    view, kube = a_view(), HangingKube()
    a_node(view, "n1", 128)
    work = a_work(view, kube)
    view.pods.put(a_pod("waits"))
    kube.hangs = True
    work.begin()
    led = asyncio.ensure_future(run_all(work))
    await until(lambda: kube.asked, "a release that hangs")
    await lose_the_lease(led, work)
    kube.hangs = False
    work.begin()
    led = asyncio.ensure_future(run_all(work))
    await until(lambda: ("json", "/api/v1/namespaces/team-a/pods/waits") in kube.writes, "the release")
    await lose_the_lease(led, work)


async def test_a_list_of_nodes_that_is_empty_once_deletes_nothing() -> None:
    """While no node is there no pod is sent anywhere, and every CTANode counts again when the nodes are back."""
    view, kube = a_view(), FakeKube()
    for number in range(200):
        a_node(view, f"n{number}", 128)
    work = a_work(view, kube)
    work.begin()
    led = asyncio.ensure_future(run_all(work))
    nodes = list(view.nodes)
    view.nodes.replace([], "900")
    view.pods.put(a_pod("waits"))
    await until(lambda: any("pod-waits/status" in path for _, path in kube.writes), "the explanation of the pod")
    released = ("json", "/api/v1/namespaces/team-a/pods/waits")
    assert released not in kube.writes
    view.nodes.replace([replace(node, resource_version="901") for node in nodes], "901")
    await until(lambda: released in kube.writes, "the release")
    await lose_the_lease(led, work)
    assert len(view.cta_nodes) == 200
    assert [path for verb, path in kube.writes if verb == "delete"] == []


async def test_a_replica_that_does_not_lead_keeps_nothing_to_do() -> None:
    """What a follower hears does not pile up; when it leads it looks at what is there then, and at nothing else."""
    view, kube = a_view(), FakeKube()
    a_node(view, "n1", 128)
    work = a_work(view, kube)
    for number in range(100):
        view.pods.put(a_pod(f"job-{number}"))
        view.pods.remove(("team-a", f"job-{number}"))
    view.pods.put(a_pod("stays"))
    work.begin()
    led = asyncio.ensure_future(run_all(work))
    await until(lambda: any("pod-stays/status" in path for _, path in kube.writes), "the explanation of the pod")
    await lose_the_lease(led, work)
    assert not any("job-" in path for _, path in kube.writes)
    assert {queue.depth for queue in work.figures().queues} == {0}


async def test_what_a_follower_heard_of_a_node_is_done_when_it_leads() -> None:
    """The labels of a node whose CTANode was deleted while nobody led are taken away by whoever leads next."""
    view, kube = a_view(), FakeKube()
    a_node(view, "n1", 128)
    (node,) = view.nodes
    labelled = replace(node.facts, labels={"ctagroup.dev/groups-per-gpu": "128"})
    view.nodes.put(replace(node, resource_version="2", facts=labelled))
    work = a_work(view, kube)
    view.cta_nodes.remove(("", "n1"))
    work.begin()
    led = asyncio.ensure_future(run_all(work))
    await until(lambda: ("merge", "/api/v1/nodes/n1") in kube.writes, "the labels to be taken away")
    await lose_the_lease(led, work)
    assert kube.objects["/api/v1/nodes/n1"]["metadata"]["labels"] == {"ctagroup.dev/groups-per-gpu": None}


def test_a_pod_that_was_gone_for_one_leader_is_not_gone_for_the_next() -> None:
    """Whether the API server knows a pod that a CTANode names is asked anew with each lease."""

    async def gone() -> list[bool]:
        view = a_view()
        ghost = Allocation(namespace="team-a", pod="ghost", container="c", groups=32, memory_mib=1)
        a_node(view, "n1", 96, tenants=[ghost])
        work = a_work(view, FakeKube(), VirtualClock())
        work.begin()
        led = asyncio.ensure_future(run_all(work))
        await until(lambda: work.lookouts.slipped.is_gone("team-a", "ghost"), "the API server to be asked")
        found = [work.lookouts.slipped.is_gone("team-a", "ghost")]
        await lose_the_lease(led, work)
        return [*found, work.lookouts.slipped.is_gone("team-a", "ghost")]

    assert run_in_virtual_time(gone()) == [True, False]


async def test_an_explanation_of_what_asks_no_more_goes_with_the_next_leader() -> None:
    """A Deployment that stopped asking while nobody led is explained no more once somebody does."""
    view, kube = a_view(), FakeKube()
    owner = ref("Deployment", "web")
    status = WorkloadStatus(owner=WorkloadOwner(api_version="apps/v1", kind="Deployment", name="web"), message="runs")
    work = a_work(view, kube)
    object_ref = ref("CTAWorkload", "deployment-web", api_version="ctagroup.dev/v1alpha1")
    view.workloads.put(WorkloadView(object_ref, "1", owner.uid, status))
    work.begin()
    led = asyncio.ensure_future(run_all(work))
    path = "/apis/ctagroup.dev/v1alpha1/namespaces/team-a/ctaworkloads/deployment-web"
    await until(lambda: ("delete", path) in kube.writes, "the removal of the explanation")
    await lose_the_lease(led, work)


def test_what_a_leader_wrote_itself_needs_no_other_look() -> None:
    """An explanation that comes back as it was written makes no round; one that a person changed is mended."""
    path = "/apis/ctagroup.dev/v1alpha1/namespaces/team-a/ctaworkloads/deployment-web/status"

    async def rounds() -> tuple[list[float], list[str]]:
        view, kube, metrics, seen, told = a_view(), FakeKube(), Metrics("test"), list[float](), list[str]()
        work = a_work(view, kube, VirtualClock(), metrics)
        work.begin()
        led = asyncio.ensure_future(run_all(work))

        async def look() -> None:
            await asyncio.sleep(10)
            told.append(kube.objects[path]["status"]["message"])
            labels = {"kind": "workload"}
            seen.append(metrics.registry.get_sample_value("cta_group_reconcile_seconds_count", labels) or 0)

        view.controllers["Deployment"].put(a_controller("Deployment", "web"))
        await look()
        mine = WorkloadStatus.model_validate(kube.objects[path]["status"])
        for version, message in ((str(kube.version), mine.message), (str(kube.version + 1), "changed by hand")):
            status = mine.model_copy(update={"message": message})
            its = ref("CTAWorkload", "deployment-web", api_version="ctagroup.dev/v1alpha1")
            view.workloads.put(WorkloadView(its, version, ref("Deployment", "web").uid, status))
            kube.version += 1
            await look()
        await lose_the_lease(led, work)
        return seen, told

    seen, told = run_in_virtual_time(rounds())
    assert seen[0] == seen[1] < seen[2]
    assert told == [told[0]] * 3


async def test_a_denial_is_counted_beside_a_quota_that_people_made() -> None:
    """What our limit refuses is pending in its CTAQuota, whatever other ResourceQuota is in the namespace."""
    view, kube = a_view(), FakeKube()
    view.quotas.put(a_quota("team", 64, "team-a"))
    view.limits.put(a_limit("team-a", None, 500, name="a-older"))
    view.limits.put(a_limit("team-a", "team", 64, used=64))
    work = a_work(view, kube)
    work.begin()
    led = asyncio.ensure_future(run_all(work))
    path = "/apis/ctagroup.dev/v1alpha1/ctaquotas/team/status"
    await until(lambda: path in kube.objects, "the status of the quota")
    assert kube.objects[path]["status"]["pending"] == 0
    amounts = ("requested", 32), ("used", 64), ("limited", 64)
    told = ", ".join(f"{word}: requests.nvidia.com/cta-group={groups}" for word, groups in amounts)
    failure = f'pods "web-1" is forbidden: exceeded quota: cta-group, {told}'
    view.controllers["ReplicaSet"].put(a_controller("ReplicaSet", "web", failure=failure))
    await until(lambda: kube.objects[path]["status"]["pending"] == 32, "the groups that are refused")
    await lose_the_lease(led, work)


async def test_the_leader_sends_events_again() -> None:
    """What an outage kept from being told is sent by what the leader runs beside its queues."""
    view, kube = a_view(), FakeKube()
    work = a_work(view, kube)
    kube.broken["/events/"] = ApiUnavailable("away")
    await work._events.write(ref("Deployment", "web"), "Reason", "told", once_for="")
    kube.broken.clear()
    work.begin()
    led = asyncio.ensure_future(run_all(work))
    await until(lambda: any("/events/web" in path for path in kube.objects), "the event")
    await lose_the_lease(led, work)
