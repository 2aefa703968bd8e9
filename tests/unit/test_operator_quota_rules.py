"""Which namespaces a CTAQuota has, what it writes, and what it says, without an API server."""

from cta_group_core.nodes import Condition
from cta_group_core.quota_split import Share
from cta_group_operator.ports import NamespaceView, QuotaView
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.quota_scope import Keepers, cohort_key, scope_of
from cta_group_operator.reconcile.quota_snapshot import Observer
from cta_group_operator.reconcile.quota_status import quota_status
from cta_group_operator.reconcile.quota_uncharged import Uncharged
from cta_group_operator.reconcile.view import ClusterView
from operator_world import RESOURCE, a_limit, a_pod, a_quota, a_view

LIMIT = "/api/v1/namespaces/{}/resourcequotas/cta-group"
STATUS = "/apis/ctagroup.dev/v1alpha1/ctaquotas/q/status"


def ready_of(view: ClusterView, *refused: str) -> Condition:
    """Return the condition Ready of quota q."""
    quota = view.quotas.get("q")
    assert quota is not None
    return told_of(view, quota, *refused)["Ready"]


def told_of(view: ClusterView, quota: QuotaView, *refused: str) -> dict[str, Condition]:
    """Return the conditions of a quota, by type."""
    snapshot = Observer(view, Keepers(view), Denials(view, RESOURCE)).look(cohort_key(quota))
    return {
        one.type: one
        for one in quota_status(
            quota, snapshot, refused=refused, stale={}, uncharged=Uncharged(), resource_name=RESOURCE
        ).conditions
    }


def test_scope_counts_what_is_held_before_the_server_does() -> None:
    """A namespace without a ResourceQuota, or with one that is not counted yet, holds what its pods hold."""
    view = a_view("a", "b")
    view.quotas.put(a_quota("q", 128, "a", "b"))
    view.limits.put(a_limit("b", "q", 64, enforced=None, used=None))
    for name, space in (("one", "a"), ("two", "b")):
        pod = a_pod(name, 32)
        view.pods.put(type(pod)(type(pod.ref)("v1", "Pod", space, name, name), "1", (32,)))
    quota = view.quotas.get("q")
    assert quota is not None
    shares = scope_of(quota, view, Keepers(view), {"a": (8,)}).shares
    assert shares == (
        Share("a", None, used=32, denied=(8,)),
        Share("b", 64, enforced=0, used=32),
    )


def test_older_quota_keeps_a_namespace() -> None:
    """Of two that select a namespace the older has it; the other lists it as lost, and takes over what is left."""
    view = a_view("a")
    view.quotas.put(a_quota("q", 64, "a", created="2026-01-02"))
    view.quotas.put(a_quota("z-older", 64, "a", created="2026-01-01"))
    view.limits.put(a_limit("a", "q", 64, used=8))
    newer, older = view.quotas.get("q"), view.quotas.get("z-older")
    assert newer is not None
    assert older is not None
    lost = scope_of(newer, view, Keepers(view), {})
    assert (lost.lost, lost.shares, lost.leaving_held) == ({"a": "z-older"}, (), 64)
    assert scope_of(older, view, Keepers(view), {}).shares == (Share("a", None, used=8),)


def test_ready_says_what_is_missing() -> None:
    """Ready is true only when the API server enforces what is written, and says otherwise what it waits for."""
    view = a_view("a")
    view.quotas.put(a_quota("q", 64, "a"))
    assert ready_of(view).reason == "Sharing"
    view.limits.put(a_limit("a", "q", 64, enforced=32))
    assert ready_of(view).reason == "NotEnforcedYet"
    view = a_view("a")
    view.quotas.put(a_quota("q", 64, "a"))
    view.limits.put(a_limit("a", "q", 64))
    assert (ready_of(view).reason, ready_of(view).status) == ("Enforced", "True")
    assert ready_of(view, "403: no").message == "403: no"
    view = a_view("b")
    view.quotas.put(a_quota("q", 64, "a"))
    assert ready_of(view).reason == "NoNamespace"
    view = a_view("a")
    view.quotas.put(a_quota("q", 64, "a"))
    view.limits.put(a_limit("a", None, 8))
    assert (ready_of(view).reason, "rename" in ready_of(view).message) == ("NameTaken", True)


def test_overcommitted_and_foreign_are_told() -> None:
    """A quota below what pods hold, and limits that people made, are conditions of their own."""
    view = a_view("a")
    view.quotas.put(a_quota("q", 32, "a"))
    view.limits.put(a_limit("a", "q", 64, used=64))
    view.limits.put(a_limit("a", None, None, name="theirs", ignored_keys=(RESOURCE,)))
    quota = view.quotas.get("q")
    assert quota is not None
    told = told_of(view, quota)
    assert "pods hold 64 groups, quota 32" in told["Overcommitted"].message
    assert told["ForeignResourceQuota"].message.endswith(f"never enforces {RESOURCE}; write requests.{RESOURCE}")


def test_keepers_follow_changes() -> None:
    """Who keeps a namespace is found anew when a label, a quota, or a namespace itself changes."""
    view = a_view("a")
    keepers = Keepers(view)
    assert keepers.keeper("a") is None
    view.quotas.put(a_quota("q", 64, "a"))
    assert keepers.keeper("a") == "q"
    view.namespaces.put(NamespaceView("a", "2", {}, deleting=True))
    assert keepers.keeper("a") is None
    view.namespaces.put(NamespaceView("a", "3", {}))
    assert keepers.kept_by("q") == ["a"]
    view.quotas.remove(("", "q"))
    assert keepers.kept_by("q") == []
