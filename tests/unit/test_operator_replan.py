"""Released pods that the scheduler cannot bind: who is deleted, who is only told, and where the next one goes."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from conditions import until
from cta_group_core.avoided import AVOIDED_SECONDS, KEPT_MOST, Avoided
from cta_group_core.ids import NodeName
from cta_group_operator.clock import SystemClock
from cta_group_operator.errors import Forbidden
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import KubeApi, ObjectRef, PodView
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.placement import Placement
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.settings import Settings
from memory_kube import MemoryKube
from operator_world import FakeClock, FakeKube, a_node, a_pod, a_view, on, ref
from placement_running import running

OWNER = ref("ReplicaSet", "web-1")
JOB = ref("Job", "train", api_version="batch/v1")
AGAIN = "to have it planned for other nodes"
PATH = "/api/v1/namespaces/team-a/pods/"


def stuck(name: str, where: str = "n1", **changes: Any) -> PodView:
    """Return a pod that the operator released to a node, and that the scheduler cannot bind."""
    released = {"gates": (), "terms": on(where), "placed_on": where, "owner": OWNER}
    said = {"unschedulable": True, "words": "0/2 nodes are available: 1 Insufficient cpu."}
    return a_pod(name, **{**released, **said, **changes})


def a_placement(view: ClusterView, kube: KubeApi, metrics: Metrics | None = None) -> Placement:
    """Return a placement that replans at once."""
    return Placement(
        view,
        kube,
        SystemClock(),
        settings=Settings(identity="me", replan_after_seconds=0.0),
        metrics=metrics or Metrics("test"),
        events=EventWriter(kube, FakeClock(), "me"),
        tell=lambda _: None,
    )


def two_nodes() -> ClusterView:
    """Return a tight node that best fit prefers, and a roomy one."""
    view = a_view()
    a_node(view, "n1", 64)
    a_node(view, "n2", 128)
    return view


async def test_the_next_one_goes_elsewhere() -> None:
    """The pod is deleted, and what its controller makes instead is released without the node that failed."""
    view, kube = two_nodes(), FakeKube()
    placement = a_placement(view, kube)
    pod = stuck("first")
    kube.objects[f"{PATH}first"] = {"metadata": {}}
    async with running(placement):
        view.pods.put(pod)
        await until(lambda: ("delete", f"{PATH}first") in kube.writes, "the deletion")
        view.pods.remove((pod.ref.namespace, "first"))
        view.pods.put(a_pod("second", owner=OWNER))
        await until(lambda: ("json", f"{PATH}second") in kube.writes, "the release of the next one")
    told = kube.objects[f"{PATH}second"]["operations"]
    assert [one["value"] for one in told if one["path"] == "/metadata/annotations"] == [
        {"ctagroup.dev/placement-nodes": "n2"}
    ]


async def test_what_no_node_has_is_waited_for() -> None:
    """A volume that is not bound yet lies with no node: nothing is deleted and no node left out until one does."""
    view, kube = two_nodes(), FakeKube()
    kube.objects[f"{PATH}first"] = {"metadata": {}}
    placement = a_placement(view, kube)
    pod = stuck("first", words="0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found")
    async with running(placement):
        view.pods.put(pod)
        view.pods.put(a_pod("second", owner=OWNER))
        await until(lambda: ("json", f"{PATH}second") in kube.writes, "the release of another")
        assert ("delete", f"{PATH}first") not in kube.writes
        view.pods.put(replace(pod, resource_version="2", words="0/2 nodes are available: 1 Insufficient cpu."))
        await until(lambda: ("delete", f"{PATH}first") in kube.writes, "the deletion")


async def test_others_are_not_kept_from_a_node_that_failed_for_one() -> None:
    """Only what the same controller makes is planned without the node."""
    view, kube = two_nodes(), FakeKube()
    kube.objects[f"{PATH}first"] = {"metadata": {}}
    async with running(a_placement(view, kube)):
        view.pods.put(stuck("first"))
        await until(lambda: ("delete", f"{PATH}first") in kube.writes, "the deletion")
        view.pods.put(a_pod("other", owner=ref("ReplicaSet", "other-1")))
        await until(lambda: ("json", f"{PATH}other") in kube.writes, "the release")
    (value,) = (one["value"] for one in kube.objects[f"{PATH}other"]["operations"] if "annotations" in one["path"])
    assert value == {"ctagroup.dev/placement-nodes": "n1,n2"}


async def test_a_pod_that_was_bound_meanwhile_stays() -> None:
    """The deletion holds for the state that was judged: one that the scheduler bound a moment ago is not deleted."""
    view, kube, metrics = two_nodes(), MemoryKube(), Metrics("test")
    kube.put(f"{PATH}first", {"metadata": {"name": "first"}})
    seen = kube.objects[f"{PATH}first"]["metadata"]["resourceVersion"]
    kube.put(f"{PATH}first", {"metadata": {"name": "first"}, "spec": {"nodeName": "n1"}})

    def refused() -> float:
        return metrics.registry.get_sample_value("cta_group_reconcile_errors_total", {"kind": "placement"}) or 0

    async with running(a_placement(view, kube, metrics)):
        pod = stuck("first", resource_version=seen)
        view.pods.put(pod)
        await until(lambda: refused() >= 1, "the deletion to be refused")
        view.pods.put(replace(pod, resource_version="99", node=NodeName("n1"), unschedulable=False))
        retried = refused()
        await until(lambda: refused() >= retried, "another look")
    assert f"{PATH}first" in kube.objects
    assert not [write for write in kube.writes if write.startswith("delete")]


class RefusingKube(FakeKube):
    """Refuses each deletion, by somebody's policy."""

    refused = 0

    async def delete(self, path: str, resource_version: str | None = None) -> None:
        """Refuse."""
        del resource_version
        self.refused += 1
        raise Forbidden(f"DELETE {path}: no")


async def test_a_pod_that_may_not_be_deleted_keeps_no_node_from_others() -> None:
    """The nodes are left out because a pod is replaced; where it stays, others of its controller may go there."""
    view, kube = a_view(), RefusingKube()
    a_node(view, "n1", 128)
    placement = a_placement(view, kube)
    async with running(placement):
        view.pods.put(stuck("first"))
        await until(lambda: kube.refused >= 1, "the deletion to be refused")
        view.pods.put(a_pod("second", owner=OWNER))
        await until(lambda: ("json", f"{PATH}second") in kube.writes, "the release of another one")
        await until(lambda: "pod-first" in placement.words, "the words")
    told = (
        "does not let the operator delete it, so that another is made: DELETE /api/v1/namespaces/team-a/pods/first: no"
    )
    assert placement.words["pod-first"].endswith(told)


class SlowKube(RefusingKube):
    """Refuses a deletion when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = asyncio.Event()

    async def delete(self, path: str, resource_version: str | None = None) -> None:
        """Wait, then refuse."""
        self.refused += 1
        await self.answer.wait()
        await super().delete(path, resource_version)


async def test_the_next_one_may_come_before_the_deletion_is_answered() -> None:
    """The nodes are left out meanwhile; when the answer is a refusal who waits is planned again."""
    view, kube = a_view(), SlowKube()
    a_node(view, "n1", 128)
    placement = a_placement(view, kube)
    async with running(placement):
        view.pods.put(stuck("first"))
        await until(lambda: kube.refused >= 1, "the deletion to be sent")
        view.pods.put(a_pod("second", owner=OWNER))
        await until(lambda: "pod-second" in placement.refusals, "the refusal of the next one")
        assert "n1: tried, and the scheduler said" in placement.refusals["pod-second"]
        kube.answer.set()
        await until(lambda: ("json", f"{PATH}second") in kube.writes, "the release of the next one")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"owner": None},
            f"no controller makes it again: delete it and create it again under its name {AGAIN}",
        ),
        (
            {"owner": JOB},
            f"its Job would count the deletion as a failure: delete the Job and create it again under its name {AGAIN}",
        ),
        (
            {"owner": ref("DaemonSet", "each")},
            "a DaemonSet would make it again for the same node: make room there, or keep the DaemonSet off that node",
        ),
        (
            {"placed_on": ""},
            "it was not the operator that chose them: create it again without them, or make room there",
        ),
        (
            {"owner": ref("Workflow", "steps", api_version="argoproj.io/v1alpha1")},
            f"nobody here knows whether its Workflow makes it again: if so, delete it {AGAIN}",
        ),
    ],
)
async def test_who_is_only_told(changes: dict[str, Any], why: str) -> None:
    """A pod that nobody would make anew, or not elsewhere, is told with the scheduler's words and stays."""
    view, kube = two_nodes(), FakeKube()
    placement = a_placement(view, kube)
    pod = stuck("first", **changes)
    async with running(placement):
        view.pods.put(pod)
        await until(lambda: pod.ref.uid in placement.words and kube.writes, "the words and the event")
    assert placement.words[pod.ref.uid] == (
        "released to n1, where the scheduler cannot bind it: 0/2 nodes are available: 1 Insufficient cpu.; its nodes "
        f"can not be changed any more and {why}"
    )
    assert {verb for verb, _ in kube.writes} == {"create"}
    view.pods.put(replace(pod, resource_version="2", node=NodeName("n1"), unschedulable=False))
    assert pod.ref.uid not in placement.words


@pytest.mark.parametrize("owner", [None, JOB], ids=["alone", "job"])
async def test_what_people_create_again_goes_elsewhere(owner: ObjectRef | None) -> None:
    """Who was told to create it again under its name finds it planned without the nodes that failed, as promised."""
    view, kube = two_nodes(), FakeKube()
    placement = a_placement(view, kube)
    first = stuck("first", owner=owner)
    async with running(placement):
        view.pods.put(first)
        await until(lambda: first.ref.uid in placement.words, "the words")
        view.pods.remove((first.ref.namespace, "first"))
        again = owner and replace(owner, uid="made-again")
        view.pods.put(a_pod("first", ref=replace(first.ref, uid="other"), owner=again, resource_version="9"))
        await until(lambda: ("json", f"{PATH}first") in kube.writes, "the release of the next one")
    told = kube.objects[f"{PATH}first"]["operations"]
    assert [one["value"] for one in told if one["path"] == "/metadata/annotations"] == [
        {"ctagroup.dev/placement-nodes": "n2"}
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"unschedulable": False},
        {"node": NodeName("n1")},
        {"deleting": True},
        {"phase": "Failed"},
        {"gates": ("example.com/theirs",)},
        {"terms": a_pod("free").terms},
    ],
)
async def test_who_is_left_alone(changes: dict[str, Any]) -> None:
    """Nothing happens to pods that are bound, over, going, held by others, on their way, or free to go anywhere."""
    view, kube = two_nodes(), FakeKube()
    kube.objects |= {f"{PATH}{name}": {"metadata": {}} for name in ("first", "last")}
    async with running(a_placement(view, kube)):
        view.pods.put(stuck("first", **changes))
        view.pods.put(stuck("last"))
        await until(lambda: ("delete", f"{PATH}last") in kube.writes, "the deletion of the other")
    assert ("delete", f"{PATH}first") not in kube.writes


def test_a_node_is_left_out_for_a_while_and_for_its_key_only() -> None:
    """What is left out is forgotten when its time is over, each node by its own time."""
    avoided = Avoided()
    avoided.add("web", [NodeName("n1")], "no cpu", 0.0)
    avoided.add("web", [NodeName("n2")], "no disk", 100.0)
    assert avoided.of("web", AVOIDED_SECONDS - 1) == {"n1": "no cpu", "n2": "no disk"}
    assert avoided.of("other", 0.0) == {}
    assert avoided.of("web", AVOIDED_SECONDS) == {"n2": "no disk"}
    assert avoided.of("web", AVOIDED_SECONDS + 100) == {}


def test_when_the_next_node_counts_again_is_known() -> None:
    """The first of all, whichever key it is left out for; nothing when nothing is left out."""
    avoided = Avoided()
    assert avoided.left_seconds(0.0) is None
    avoided.add("web", [NodeName("n1")], "no cpu", 0.0)
    avoided.add("web", [NodeName("n2")], "no disk", 100.0)
    avoided.add("other", [NodeName("n1")], "no cpu", 50.0)
    assert avoided.left_seconds(10.0) == AVOIDED_SECONDS - 10
    assert avoided.left_seconds(AVOIDED_SECONDS) == 50
    assert avoided.left_seconds(AVOIDED_SECONDS + 100) is None


def test_what_is_left_out_is_bounded() -> None:
    """With too many keys the one that was heard of longest ago is forgotten."""
    avoided = Avoided()
    for number in range(KEPT_MOST + 1):
        avoided.add(number, [NodeName("n")], "", 0.0)
    assert not avoided.of(0, 1.0)
    assert avoided.of(1, 1.0)
    assert avoided.of(KEPT_MOST, 1.0)


async def test_a_pod_that_was_stuck_before_the_start_is_found() -> None:
    """An operator that starts, or leads again, plans anew what its predecessor released and nobody can bind."""
    view, kube = two_nodes(), FakeKube()
    kube.objects[f"{PATH}first"] = {"metadata": {}}
    placement = a_placement(view, kube)
    for queue in placement.queues.values():
        queue.rest()  # it does not lead yet
    view.pods.put(stuck("first"))
    placement.forget()
    for queue in placement.queues.values():
        queue.wake()
    async with running(placement):
        await until(lambda: ("delete", f"{PATH}first") in kube.writes, "the deletion")
