"""Controllers that a quota refused are woken once it has room that is theirs."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from cta_group_core.quota import NamespaceShare, PerPod, QuotaStatus
from cta_group_operator.errors import ApiUnavailable, Forbidden, NotFound
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import FailureEvent
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.reconcile.wake import Waker
from cta_group_operator.reconcile.wakes import Wakes
from operator_world import RESOURCE, SPACE, FakeClock, FakeKube, a_controller, a_limit, a_quota, a_view, ref

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


def refused_by(text: str, last: str = "2026-01-01T00:00:05Z") -> ClusterView:
    """Return a namespace where something else than a limit of ours refused the pod of a ReplicaSet."""
    view = a_denied("ReplicaSet")
    about = ref("ReplicaSet", "web").uid
    view.failures.put(FailureEvent(ref("Event", "web.2"), "2", about, text, last))
    return view


async def pokes(view: ClusterView) -> list[str]:
    """Return what a round writes on the controller."""
    kube = FakeKube()
    await a_waker(view, kube).wake_where_over(SPACE)
    return [body["metadata"]["annotations"]["ctagroup.dev/poked"] for body in kube.objects.values()]


BY_HAND = DENIED.replace("quota: cta-group", "quota: by-hand")


async def test_a_limit_of_people_that_has_room_or_is_gone() -> None:
    """It is known whether the next pod would fit; a limit of ours that is there is left to its CTAQuota."""
    view = refused_by(BY_HAND)
    view.limits.put(a_limit(SPACE, None, 64, used=40, name="by-hand"))
    assert await pokes(view) == []
    view.limits.put(replace(a_limit(SPACE, None, 72, used=40, name="by-hand"), resource_version="7"))
    assert await pokes(view) == ["7"]
    view.limits.remove((SPACE, "by-hand"))
    assert await pokes(view) == ["without by-hand since 2026-01-01T00:00:05Z"]
    assert await pokes(a_denied("ReplicaSet")) == []
    ours = a_denied("ReplicaSet")
    ours.limits.remove((SPACE, "cta-group"))
    assert await pokes(ours) == ["without cta-group since 2026-01-01T00:00:00Z"]
    assert await pokes(refused_by(DENIED.replace("nvidia.com/cta-group", "cpu"))) == []


BOUND = (
    "ValidatingAdmissionPolicy 'cta-group-per-pod' with binding 'cta-group-per-pod' denied request: the pod asks for "
    "32 groups, CTAQuota q allows 16 in one pod; ask for less, or have spec.perPod.max raised"
)


@pytest.mark.parametrize(("most", "woken"), [(16, False), (31, False), (32, True), (None, True)])
async def test_a_bound_of_a_single_pod_that_is_raised(most: int | None, woken: bool) -> None:  # noqa: FBT001
    """Whoever was told to have it raised need not wait for the controller's own back-off then."""
    view = refused_by(BOUND)
    quota = a_quota("q", 64, SPACE)
    per_pod = PerPod(max=most) if most is not None else None
    view.quotas.put(replace(quota, generation=2, spec=quota.spec.model_copy(update={"per_pod": per_pod})))
    assert await pokes(view) == (["q 2 since 2026-01-01T00:00:05Z"] if woken else [])
    view.quotas.remove(("", "q"))
    assert await pokes(view) == ["q gone since 2026-01-01T00:00:05Z"]


async def test_what_changed_has_its_namespace_looked_at() -> None:
    """Each thing that may let a pod in marks the namespace, and so does a refusal that comes late."""
    view, clock = refused_by(BOUND), FakeClock()
    wakes = Wakes(view, a_waker(view, FakeKube()), clock, Metrics("test"))

    def marked(change: Callable[[], None]) -> bool:
        wakes.queue.rest()
        wakes.queue.wake()
        change()
        return wakes.queue.depth == 1

    quota = a_quota("q", 64, SPACE)
    share = NamespaceShare(name=SPACE, hard=64, used=0)
    bounded = replace(
        quota,
        spec=quota.spec.model_copy(update={"per_pod": PerPod(max=16)}),
        status=QuotaStatus(namespaces=(share,)),
    )
    assert not marked(lambda: view.quotas.put(bounded))
    assert marked(lambda: view.quotas.put(replace(bounded, spec=quota.spec, resource_version="2")))
    assert marked(lambda: view.limits.put(a_limit(SPACE, None, 8, name="by-hand")))
    assert not marked(lambda: view.limits.put(replace(a_limit(SPACE, "q", 96), resource_version="5")))
    assert marked(lambda: view.limits.remove((SPACE, "cta-group")))
    about = ref("ReplicaSet", "web").uid
    assert marked(lambda: view.failures.put(FailureEvent(ref("Event", "web.9"), "9", about, BOUND, "2026-02")))
    failing = a_controller("ReplicaSet", "web", failure="other words")
    assert marked(lambda: view.controllers["ReplicaSet"].put(replace(failing, resource_version="9")))
    assert marked(wakes.mark_everything)
