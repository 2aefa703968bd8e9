"""Rounds of the work on quotas: what is written, in which order, and what the status says, without an API server."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from cta_group_core.quota import QuotaStatus, Reclaim
from cta_group_operator.errors import ApiUnavailable, Forbidden
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import ControllerView
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.quota import QuotaReconciler
from cta_group_operator.reconcile.view import ClusterView
from operator_world import READ_LIMIT, RESOURCE, FakeClock, FakeKube, a_limit, a_pod, a_quota, a_view, ref

LIMIT = "/api/v1/namespaces/{}/resourcequotas/cta-group"
STATUS = "/apis/ctagroup.dev/v1alpha1/ctaquotas/q/status"


def reconciler(view: ClusterView, kube: FakeKube, clock: FakeClock | None = None) -> QuotaReconciler:
    """Return a reconciler of that view."""
    return QuotaReconciler(
        view,
        kube,
        clock or FakeClock(),
        metrics=Metrics("test"),
        events=EventWriter(kube, FakeClock(), "me"),
        denials=Denials(view, RESOURCE),
        read_limit=READ_LIMIT,
        resource_name=RESOURCE,
    )


async def test_a_round_lowers_and_the_next_raises() -> None:
    """A raise that needs what another namespace has is not written before the lowering was seen to be enforced."""
    view, kube = a_view("a", "b"), FakeKube()
    view.quotas.put(a_quota("q", 100, "a", "b"))
    view.limits.put(a_limit("a", "q", 90))
    view.limits.put(a_limit("b", "q", 10))
    await reconciler(view, kube).reconcile("q")
    assert kube.writes == [("merge", LIMIT.format("a") + "/status"), ("merge", LIMIT.format("a"))]
    assert kube.objects[LIMIT.format("a")]["spec"] == {"hard": {f"requests.{RESOURCE}": "50"}}


class AheadKube(FakeKube):
    """An API server that is ahead of what was watched: a limit of 90 stands where the view still has 10."""

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """List the one limit."""
        del path, query
        hard = {"hard": {f"requests.{RESOURCE}": "90"}}
        labels = {"ctagroup.dev/quota": "q"}
        meta = {"name": "cta-group", "namespace": "a", "uid": "u", "resourceVersion": "7", "labels": labels}
        return {"items": [{"metadata": meta, "spec": hard, "status": hard}], "metadata": {}}


async def test_a_raise_is_decided_on_what_the_api_server_has_now() -> None:
    """A limit that was raised and not watched yet is not free for another namespace."""
    view, kube = a_view("a", "b"), AheadKube()
    view.quotas.put(a_quota("q", 100, "a", "b"))
    view.limits.put(a_limit("a", "q", 10))
    view.limits.put(a_limit("b", "q", 10))
    await reconciler(view, kube).reconcile("q")
    assert {path for _, path in kube.writes} == {LIMIT.format("a"), LIMIT.format("a") + "/status"}
    assert kube.objects[LIMIT.format("a")]["spec"] == {"hard": {f"requests.{RESOURCE}": "50"}}


async def test_quotas_that_wait_for_each_other_let_go() -> None:
    """Two quotas whose full namespaces changed places are helped by deleting what each still holds of the other's."""
    view, kube = a_view("a", "b"), FakeKube()
    view.quotas.put(a_quota("q", 64, "b"))
    view.quotas.put(a_quota("r", 64, "a"))
    for space, owner in (("a", "q"), ("b", "r")):
        view.limits.put(a_limit(space, owner, 64, used=64))
        view.pods.put(replace(a_pod("web", 64), ref=ref("Pod", f"web-{space}", space, "v1")))
        kube.objects[LIMIT.format(space)] = {}
    quotas = reconciler(view, kube)

    async def deletes(name: str) -> list[str]:
        await quotas.reconcile(name)
        return [path for verb, path in kube.writes if verb == "delete"]

    assert await deletes("q") == []
    assert await deletes("r") == [LIMIT.format("b")]
    view.limits.remove(("b", "cta-group"))
    assert await deletes("q") == [LIMIT.format("b"), LIMIT.format("a")]
    view.limits.remove(("a", "cta-group"))
    await quotas.reconcile("q")
    assert kube.writes[-2:] == [("create", LIMIT.format("b")), ("merge", LIMIT.format("b") + "/status")]
    await quotas.reconcile("r")
    assert kube.writes[-2:] == [("create", LIMIT.format("a")), ("merge", LIMIT.format("a") + "/status")]


async def test_charges_without_pods_are_told_when_they_last() -> None:
    """What is charged to no pod is told after a while, not while the cluster's own count follows a moment later."""
    view, kube, clock = a_view("a"), FakeKube(), FakeClock()
    view.quotas.put(a_quota("q", 64, "a"))
    view.limits.put(a_limit("a", "q", 64, used=32))
    quotas = reconciler(view, kube, clock)
    assert (await quotas.reconcile("q"), stale_in(kube)) == (15.0, "False")
    clock.now += 15
    assert (await quotas.reconcile("q"), stale_in(kube)) == (None, "True")
    view.limits.put(replace(a_limit("a", "q", 64), resource_version="2"))
    assert (await quotas.reconcile("q"), stale_in(kube)) == (None, "False")


async def test_a_namespace_that_came_back_is_not_told_at_once() -> None:
    """What was charged to nobody when it left, or when its quota was deleted, is no news of what came later."""
    view, kube, clock = a_view("a"), FakeKube(), FakeClock()
    view.quotas.put(a_quota("q", 64, "a"))
    view.limits.put(a_limit("a", "q", 64, used=32))
    quotas = reconciler(view, kube, clock)
    await quotas.reconcile("q")
    view.limits.remove(("a", "cta-group"))
    view.quotas.remove(("", "q"))
    await quotas.reconcile("q")
    clock.now += 60
    view.quotas.put(a_quota("q", 64, "a"))
    view.limits.put(replace(a_limit("a", "q", 64, used=32), resource_version="3"))
    await quotas.reconcile("q")
    assert stale_in(kube) == "False"


def stale_in(kube: FakeKube) -> str:
    """Return the status of the condition that was written last."""
    conditions = QuotaStatus.model_validate(kube.objects[STATUS]["status"]).conditions
    return next(one.status.value for one in conditions if one.type == "UsageStale")


def a_borrower(kube: FakeKube, *lost: str, owned: int = 32, used: int = 0) -> ClusterView:
    """Return a cohort whose quota r has borrowed 32 that quota q needs now, with two pods of which one is younger.

    q owns ``owned`` and uses ``used``; pods called ``lost`` are further ones of r that Kubernetes charges no longer.
    """
    view = a_view("a", "b")
    for name, groups, space in (("q", owned, "a"), ("r", 32, "b")):
        quota = a_quota(name, groups, space)
        spec = quota.spec.model_copy(update={"cohort": "c", "reclaim": Reclaim.DELETE})
        view.quotas.put(replace(quota, spec=spec))
    view.limits.put(a_limit("a", "q", used, used=used))
    view.limits.put(a_limit("b", "r", 64, used=64))
    asked = f"requested: requests.{RESOURCE}=32, used: requests.{RESOURCE}={used}, limited: requests.{RESOURCE}={used}"
    view.controllers["ReplicaSet"].put(
        ControllerView(
            ref("ReplicaSet", "web", "a"),
            "1",
            (32,),
            wanted=1,
            failure=f'pods "x" is forbidden: exceeded quota: cta-group, {asked}',
        )
    )
    for name in (*lost, "old", "young"):
        pod = replace(a_pod(name, 32, created=f"2026-0{1 + (name == 'young')}-01"), ref=ref("Pod", name, "b", "v1"))
        view.pods.put(replace(pod, deleting=name in lost, ends="2026-01-01T00:00:00Z" if name in lost else ""))
        kube.objects[f"/api/v1/namespaces/b/pods/{name}"] = {}
    return view


async def test_a_borrower_is_limited_before_its_pod_is_deleted() -> None:
    """An owner that takes its groups back has the borrower lowered first, then the pod deleted, and says why."""
    kube = FakeKube()
    view = a_borrower(kube)
    await reconciler(view, kube).reconcile("cohort/c")
    assert kube.writes[:3] == [
        ("merge", LIMIT.format("b") + "/status"),
        ("merge", LIMIT.format("b")),
        ("delete", "/api/v1/namespaces/b/pods/young"),
    ]
    assert [verb for verb, path in kube.writes[3:] if "/events/" in path] == ["create"]


async def test_a_pod_that_may_not_be_deleted_is_told() -> None:
    """The owner waits on, so its quota says whose word stands in the way; it is tried again."""
    kube = FakeKube(broken={"/pods/young": Forbidden("403: guarded")})
    assert await reconciler(a_borrower(kube), kube).reconcile("cohort/c") == 30.0
    conditions = QuotaStatus.model_validate(kube.objects[STATUS]["status"]).conditions
    told = next(one for one in conditions if one.type == "Reclaiming")
    assert told.reason == "DeletionRefused"
    assert told.message == (
        "denied pods need 32 groups of this quota that are lent (32 to r); they come back as pods there end; the API "
        "server does not let the operator delete pods for them: 403: guarded"
    )


async def test_a_pod_on_a_lost_node_gives_nothing_back() -> None:
    """Kubernetes charges it no longer: its groups are not taken twice, and another pod is chosen for the owner."""
    kube = FakeKube()
    view = a_borrower(kube, "lost", owned=64, used=32)
    await reconciler(view, kube).reconcile("cohort/c")
    assert kube.objects[LIMIT.format("b")]["spec"] == {"hard": {f"requests.{RESOURCE}": "32"}}
    assert [path for verb, path in kube.writes if verb == "delete"] == ["/api/v1/namespaces/b/pods/young"]


async def test_the_status_is_written_once() -> None:
    """A second round over the same snapshot writes nothing, even before the watch showed the first one's status."""
    view, kube = a_view("a"), FakeKube()
    view.quotas.put(a_quota("q", 64, "a"))
    view.limits.put(a_limit("a", "q", 64))
    quotas = reconciler(view, kube)
    await quotas.reconcile("q")
    assert kube.writes == [("merge", STATUS)]
    await quotas.reconcile("q")
    assert len(kube.writes) == 1


async def test_a_quota_that_was_made_again_is_told_afresh() -> None:
    """What was written of one that is gone says nothing of the next of its name."""
    view, kube = a_view("a"), FakeKube()
    view.quotas.put(a_quota("q", 64, "a"))
    view.limits.put(a_limit("a", "q", 64))
    quotas = reconciler(view, kube)
    await quotas.reconcile("q")
    view.quotas.remove(("", "q"))
    await quotas.reconcile("q")
    view.quotas.put(a_quota("q", 64, "a"))
    await quotas.reconcile("q")
    assert [write for write in kube.writes if write == ("merge", STATUS)] == [("merge", STATUS)] * 2


async def test_a_refused_write_is_told() -> None:
    """What the API server refuses is in the status, in its words."""
    view, kube = a_view("a"), FakeKube(failures=[Forbidden("403: no quotas here")])
    view.quotas.put(a_quota("q", 64, "a"))
    await reconciler(view, kube).reconcile("q")
    status = QuotaStatus.model_validate(kube.objects[STATUS]["status"])
    assert (status.conditions[0].reason, status.conditions[0].message) == ("WriteRefused", "403: no quotas here")


async def test_only_a_quota_that_is_really_gone_loses_its_limits() -> None:
    """A CTAQuota that is not known here but exists keeps its ResourceQuotas; one that is gone does not."""
    view, kube = a_view("a"), FakeKube()
    view.limits.put(a_limit("a", "q", 64))
    path = "/apis/ctagroup.dev/v1alpha1/ctaquotas/q"
    kube.objects |= {path: {}, LIMIT.format("a"): {}}
    await reconciler(view, kube).reconcile("q")
    assert kube.writes == []
    del kube.objects[path]
    await reconciler(view, kube).reconcile("q")
    assert kube.writes == [("delete", LIMIT.format("a"))]


async def test_a_namespace_whose_limit_cannot_be_written_stops_no_other() -> None:
    """A webhook that breaks in one namespace: the others get their limits, the status says why, and it is repeated."""
    view, kube = a_view("a", "b", "c"), FakeKube()
    view.quotas.put(a_quota("q", 96, "a", "b", "c"))
    kube.broken["/namespaces/a/"] = ApiUnavailable("500: a webhook broke")
    with pytest.raises(ApiUnavailable):
        await reconciler(view, kube).reconcile("q")
    assert {path for verb, path in kube.writes if verb == "create"} == {LIMIT.format("b"), LIMIT.format("c")}
    assert "500: a webhook broke" in str(kube.objects[STATUS])


async def test_a_limit_that_is_refused_is_tried_again() -> None:
    """Nobody tells when a policy would take it, so the quota is looked at again by itself."""
    view, kube = a_view("a"), FakeKube()
    view.quotas.put(a_quota("q", 64, "a"))
    kube.broken["/namespaces/a/"] = Forbidden("403")
    assert await reconciler(view, kube).reconcile("q") == 30.0


async def test_a_limit_that_cannot_be_deleted_stops_no_other() -> None:
    """Of a quota that is gone each namespace is let go in its turn."""
    view, kube = a_view("a", "b"), FakeKube()
    for space in ("a", "b"):
        view.limits.put(a_limit(space, "q", 64))
        kube.objects[LIMIT.format(space)] = {}
    kube.broken["/namespaces/a/"] = ApiUnavailable("500")
    with pytest.raises(ApiUnavailable):
        await reconciler(view, kube).reconcile("q")
    assert kube.writes == [("delete", LIMIT.format("b"))]


async def test_a_status_that_is_refused_stops_no_other_of_the_cohort() -> None:
    """Each CTAQuota of a cohort is told, whatever the API server says of one."""
    view, kube = a_view("a", "b"), FakeKube()
    for name, space in (("q", "a"), ("r", "b")):
        quota = a_quota(name, 32, space)
        view.quotas.put(replace(quota, spec=quota.spec.model_copy(update={"cohort": "c"})))
        view.limits.put(a_limit(space, name, 32))
    kube.broken[STATUS] = Forbidden("403")
    with pytest.raises(Forbidden):
        await reconciler(view, kube).reconcile("cohort/c")
    assert [path for _, path in kube.writes] == [STATUS.replace("/q/", "/r/")]
