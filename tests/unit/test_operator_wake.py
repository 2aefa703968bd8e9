"""Controllers that a quota refused are woken once it has room that is theirs."""

from dataclasses import replace

import pytest

from cta_group_operator.errors import ApiUnavailable, Forbidden, NotFound
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import FailureEvent
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.reconcile.wake import Waker
from operator_world import RESOURCE, SPACE, FakeKube, a_controller, a_limit, a_view, ref

DENIED = (
    'pods "x" is forbidden: exceeded quota: cta-group, requested: requests.nvidia.com/cta-group=32, '
    "used: requests.nvidia.com/cta-group=64, limited: requests.nvidia.com/cta-group=64"
)


def a_denied(kind: str, *, used: int = 32) -> ClusterView:
    """Return a namespace with a limit of 64, and a controller whose pod was refused there."""
    view = a_view()
    view.limits.put(a_limit(SPACE, "q", 64, used=used))
    view.controllers[kind].put(a_controller(kind, "web", failure=DENIED if kind == "ReplicaSet" else ""))
    about = ref(kind, "web").uid
    view.failures.put(FailureEvent(ref("Event", "web.1"), "1", about, DENIED, "2026-01-01T00:00:00Z"))
    return view


def a_waker(view: ClusterView, kube: FakeKube) -> Waker:
    """Return a waker of that view."""
    return Waker(view, kube, Metrics("test"), Denials(view, RESOURCE))


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("ReplicaSet", "/apis/apps/v1/namespaces/team-a/replicasets/web"),
        ("StatefulSet", "/apis/apps/v1/namespaces/team-a/statefulsets/web"),
        ("DaemonSet", "/apis/apps/v1/namespaces/team-a/daemonsets/web"),
        ("Job", "/apis/batch/v1/namespaces/team-a/jobs/web"),
    ],
)
async def test_each_kind_is_woken_once_for_each_state_of_its_quota(kind: str, path: str) -> None:
    """Room in the quota wakes what was denied; the same state of the quota never wakes it twice."""
    view, kube = a_denied(kind), FakeKube()
    waker = a_waker(view, kube)
    await waker.wake_in([SPACE])
    assert kube.writes == [("merge", path)]
    assert kube.objects[path]["metadata"]["annotations"] == {"ctagroup.dev/poked": "1"}
    controller = view.controller(ref(kind, "web").uid)
    assert controller is not None
    view.controllers[kind].put(replace(controller, resource_version="2", poked="1"))
    await waker.wake_in([SPACE])
    assert len(kube.writes) == 1
    view.limits.put(replace(a_limit(SPACE, "q", 64), resource_version="2"))
    await waker.wake_in([SPACE])
    assert len(kube.writes) == 2


async def test_no_poke_without_room() -> None:
    """A controller whose next pod would not fit, or whose room is about to move, is left to its own back-off."""
    full, kube = a_denied("ReplicaSet", used=64), FakeKube()
    await a_waker(full, kube).wake_in([SPACE])
    elsewhere = a_denied("ReplicaSet")
    await a_waker(elsewhere, kube).wake_in(["another"])
    uncounted = a_denied("ReplicaSet")
    uncounted.limits.put(replace(a_limit(SPACE, "q", 64, used=None), resource_version="2"))
    await a_waker(uncounted, kube).wake_in([SPACE])
    assert kube.writes == []


async def test_a_controller_that_cannot_be_woken_stops_nobody() -> None:
    """One that is gone, or that a policy protects, is passed over, and the next one is woken."""
    for failure in (NotFound("404"), Forbidden("403")):
        view, kube = a_denied("ReplicaSet"), FakeKube(failures=[failure])
        view.controllers["ReplicaSet"].put(a_controller("ReplicaSet", "other", failure=DENIED))
        await a_waker(view, kube).wake_in([SPACE])
        assert [path.rpartition("/")[2] for _, path in kube.writes] == ["other"]


async def test_a_webhook_that_breaks_stops_nobody() -> None:
    """What may work by itself the next time is raised at the end, when all others were woken."""
    view, kube = a_denied("ReplicaSet"), FakeKube()
    for name in ("a-first", "z-last"):
        view.controllers["ReplicaSet"].put(a_controller("ReplicaSet", name, failure=DENIED))
    kube.broken["/replicasets/web"] = ApiUnavailable("500: a webhook broke")
    with pytest.raises(ApiUnavailable):
        await a_waker(view, kube).wake_in([SPACE])
    assert sorted(path.rpartition("/")[2] for _, path in kube.writes) == ["a-first", "z-last"]
