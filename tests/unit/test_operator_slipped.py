"""Pods that came past the webhook are found, labelled and reported; pods of others are not touched."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from conditions import until
from cta_group_core.ids import NodeName
from cta_group_core.names import (
    ANNOTATION_ALIGNMENT,
    ANNOTATION_ALIGNMENT_ADVICE,
    ANNOTATION_PLACEMENT,
    ANNOTATION_RUNTIME_ADVICE,
    ANNOTATION_WITHOUT_WEBHOOK,
    GATE_PLACEMENT,
    LABEL_REQUESTS,
)
from cta_group_core.nodes import Allocation
from cta_group_core.scheduling import Load
from cta_group_operator.adapters.convert_load import read_load
from cta_group_operator.clock import SystemClock
from cta_group_operator.errors import ApiError, ApiUnavailable, Conflict, Forbidden, LeadershipLost, Rejected
from cta_group_operator.metrics import Metrics
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.slipped import SlippedPods
from cta_group_operator.reconcile.view import ClusterView
from operator_world import READ_POD, RESOURCE, SPACE, FakeKube, a_node, a_pod, a_view

SERVING = {
    "name": "vllm",
    "image": "vllm/vllm-openai:v0.27.1",
    "command": ["vllm", "serve"],
    "args": ["m", "--port=8000"],
    "ports": [{"containerPort": 8000}],
    "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
    "envFrom": [{"configMapRef": {"name": "settings"}}],
}
"""What a container of a real pod says beside its resources."""


def pod_body(name: str, groups: int = 32, **parts: Any) -> dict[str, Any]:
    """Return a pod as the API server lists it; ``parts`` are members of its metadata and spec."""
    spec_parts = {key: parts.pop(key) for key in ("schedulingGates", "affinity") if key in parts}
    limits = {RESOURCE: str(groups)} if groups else {"cpu": "1"}
    return {
        "metadata": {"name": name, "namespace": SPACE, "uid": f"uid-{name}", "resourceVersion": "1", **parts},
        "spec": {"containers": [{**SERVING, "resources": {"limits": limits}}], **spec_parts},
        "status": {"phase": parts.pop("phase", "Running")},
    }


class ListingKube(FakeKube):
    """Lists pods in pages of two, as the API server does with a larger limit."""

    pods: tuple[dict[str, Any], ...] = ()
    asked: tuple[dict[str, str], ...] = ()

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return one page."""
        assert path.endswith("/pods")
        self._fail()
        asked = dict(query or {})
        self.asked = (*self.asked, asked)
        name = asked["fieldSelector"].partition("metadata.name=")[2]
        found = [pod for pod in self.pods if not name or pod["metadata"]["name"] == name]
        start = int(asked.get("continue") or 0)
        more = str(start + 2) if start + 2 < len(found) else ""
        return {"items": found[start : start + 2], "metadata": {"continue": more}}


def advice_to(body: Mapping[str, Any]) -> str:
    """Return what a server would have got; the reading of one breaks."""
    if body["metadata"]["name"] == "broken":
        raise IndexError("a fault of the reader")
    return "set --x=1" if body["metadata"]["name"].startswith("server") else ""


def a_world(*pods: dict[str, Any]) -> tuple[ClusterView, ListingKube, SlippedPods, Metrics]:
    """Return an API server with those pods, which the watch does not see."""
    view, kube, metrics = a_view(), ListingKube(), Metrics("test")
    kube.pods = pods
    clock = SystemClock()
    events = EventWriter(kube, clock, "me")
    found = SlippedPods(
        view,
        kube,
        clock,
        metrics=metrics,
        events=events,
        read=READ_POD,
        load=read_load,
        advise=advice_to,
        period_seconds=0.01,
    )
    return view, kube, found, metrics


def labelled(kube: FakeKube) -> dict[str, dict[str, Any]]:
    """Return what was written on pods, by name."""
    return {path.rpartition("/")[2]: kube.objects[path]["metadata"] for verb, path in kube.writes if verb == "merge"}


async def test_all_that_ask_are_labelled_whatever_the_page() -> None:
    """Each gets the label under its uid and is told to have come past the webhook; others stay as they are."""
    asking = [pod_body(f"pod-{number}") for number in range(3)]
    _, kube, slipped, metrics = a_world(pod_body("plain", 0), *asking, pod_body("too", 0))
    await slipped.list_all()
    written = labelled(kube)
    assert set(written) == {"pod-0", "pod-1", "pod-2"}
    assert written["pod-1"]["uid"] == "uid-pod-1"
    assert written["pod-1"]["labels"] == {LABEL_REQUESTS: "true"}
    assert written["pod-1"]["annotations"] == {ANNOTATION_WITHOUT_WEBHOOK: "true"}
    assert metrics.registry.get_sample_value("cta_group_slipped_pods_total") == 3
    told = [one["message"] for path, one in kube.objects.items() if "/events/" in path]
    assert len(told) == 3
    assert told[0].startswith("pod pod-0, which asks for 32 groups, was admitted without the webhook")


def on_node(name: str, node: str, phase: str = "Running", **resources: str) -> dict[str, Any]:
    """Return a pod that asks for no groups, bound to a node, with a sidecar."""
    plain = {**SERVING, "resources": {"requests": resources}}
    sidecar = {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}}
    body = pod_body(name, 0)
    return {
        **body,
        "spec": {"containers": [plain], "initContainers": [sidecar], "nodeName": node},
        "status": {"phase": phase},
    }


async def test_what_other_pods_take_of_nodes_with_gpus_is_counted() -> None:
    """Those that ended, or are elsewhere, take nothing there; what is as before is the same object."""
    pods = [
        on_node("a", "n1", cpu="2", memory="1Gi"),
        on_node("b", "n1", cpu="1"),
        on_node("over", "n1", "Failed", cpu="9"),
        on_node("far", "no-gpu", cpu="9"),
        on_node("odd", "n1", cpu="what"),
        pod_body("nowhere", 0),
    ]
    view, kube, slipped, _ = a_world(*pods)
    a_node(view, "n1", 128)
    await slipped.list_all()
    first = view.others.of(NodeName("n1"))
    assert first == Load(cpu_milli=4500, memory_bytes=1 << 30, pods=3)
    assert view.others.of(NodeName("no-gpu")) == Load()
    await slipped.list_all()
    assert view.others.of(NodeName("n1")) is first
    kube.pods = ()
    await slipped.list_all()
    assert view.others.of(NodeName("n1")) == Load()


async def test_a_server_is_told_what_it_would_have_got() -> None:
    """Its arguments cannot be changed any more; what fits stays with the pod."""
    _, kube, slipped, _ = a_world(pod_body("server"), pod_body("other"))
    await slipped.list_all()
    annotations = {name: written["annotations"] for name, written in labelled(kube).items()}
    assert annotations["server"] == {ANNOTATION_WITHOUT_WEBHOOK: "true", ANNOTATION_ALIGNMENT_ADVICE: "set --x=1"}
    assert annotations["other"] == {ANNOTATION_WITHOUT_WEBHOOK: "true"}


def on(*nodes: str) -> dict[str, Any]:
    """Return the affinity of a pod that insists on nodes."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(nodes)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


@pytest.mark.parametrize("affinity", [{}, on("n2")])
async def test_what_a_pod_claims_of_itself_is_taken_away(affinity: dict[str, Any]) -> None:
    """A pod that says it was placed and aligned came past the webhook all the same, and loses what it says."""
    claims = {ANNOTATION_PLACEMENT: "n1", ANNOTATION_ALIGNMENT: "[]", ANNOTATION_RUNTIME_ADVICE: "fine", "mine": "x"}
    _, kube, slipped, metrics = a_world(pod_body("forged", annotations=claims, affinity=affinity))
    await slipped.list_all()
    written = labelled(kube)["forged"]["annotations"]
    gone = {name: None for name in claims if name != "mine"}
    assert written == {**gone, ANNOTATION_WITHOUT_WEBHOOK: "true"}
    assert metrics.registry.get_sample_value("cta_group_slipped_pods_total") == 1


@pytest.mark.parametrize(
    "pod",
    [
        pod_body("lost-its-label", annotations={ANNOTATION_PLACEMENT: "n1,n2"}, affinity=on("n1", "n2")),
        pod_body("lost-its-label", schedulingGates=[{"name": GATE_PLACEMENT}]),
    ],
)
async def test_a_pod_that_lost_its_label_did_not_slip(pod: dict[str, Any]) -> None:
    """Somebody took the label off a pod that admission saw: it comes back, and nobody says that the webhook failed."""
    _, kube, slipped, metrics = a_world(pod)
    await slipped.list_all()
    assert labelled(kube)["lost-its-label"]["labels"] == {LABEL_REQUESTS: "true"}
    assert "annotations" not in labelled(kube)["lost-its-label"]
    assert metrics.registry.get_sample_value("cta_group_slipped_pods_total") == 0


async def test_of_pods_that_ended_those_that_a_kubelet_refused_are_labelled() -> None:
    """While nobody gates them a controller's failed pods pile up; with the label they are cleaned up like any other."""
    refused, failed = pod_body("refused"), pod_body("failed")
    words = f"Allocate failed due to no healthy devices present; cannot allocate unhealthy devices {RESOURCE}"
    refused["status"] = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": words}
    failed["status"] = {"phase": "Failed", "reason": "Evicted"}
    _, kube, slipped, _ = a_world(refused, failed)
    await slipped.list_all()
    assert set(labelled(kube)) == {"refused"}


async def test_a_pod_that_cannot_be_read_hides_no_other() -> None:
    """What the API server lists in a form that is not known is counted, and the rest is labelled."""
    broken = pod_body("unreadable") | {"spec": {"containers": "none"}}
    _, kube, slipped, metrics = a_world(broken, pod_body("good"))
    await slipped.list_all()
    assert set(labelled(kube)) == {"good"}
    assert metrics.registry.get_sample_value("cta_group_decode_errors_total", {"kind": "Pod"}) == 1


@pytest.mark.parametrize("failure", [Forbidden("403"), Rejected("422"), Conflict("409"), ApiUnavailable("500")])
async def test_a_pod_that_cannot_be_labelled_hides_no_other(failure: ApiError) -> None:
    """A policy that guards one pod keeps nobody behind it from being found; each attempt is counted."""
    _, kube, slipped, metrics = a_world(*(pod_body(name) for name in ("first", "guarded", "last")))
    kube.broken["/pods/guarded"] = failure
    await slipped.list_all()
    assert set(labelled(kube)) == {"first", "last"}
    errors = metrics.registry.get_sample_value("cta_group_reconcile_errors_total", {"kind": "slipped"})
    assert errors == 1
    kube.broken.clear()
    await slipped.list_all()
    assert "guarded" in labelled(kube)


async def test_arguments_that_cannot_be_read_cost_the_advice_only() -> None:
    """A fault in reading one tenant's command line keeps neither that pod nor those behind it from being labelled."""
    _, kube, slipped, _ = a_world(*(pod_body(name) for name in ("server-first", "broken", "server-last")))
    await slipped.list_all()
    assert set(labelled(kube)) == {"server-first", "broken", "server-last"}
    assert labelled(kube)["broken"]["annotations"] == {ANNOTATION_WITHOUT_WEBHOOK: "true"}


async def test_it_is_told_though_its_event_had_to_wait() -> None:
    """A pod is labelled once, so its event is kept until the API server takes it."""
    _, kube, slipped, _ = a_world(pod_body("pod"))
    kube.broken["/events/"] = ApiUnavailable("away")
    await slipped.list_all()
    assert set(labelled(kube)) == {"pod"}
    kube.broken.clear()
    await slipped._events.send_again()
    assert [one["reason"] for path, one in kube.objects.items() if "/events/" in path] == ["AdmittedWithoutWebhook"]


async def test_what_a_plugin_reports_is_looked_up() -> None:
    """A pod that holds groups and that nobody here knows is asked for by name; one that is known is not."""
    view, kube, slipped, _ = a_world(pod_body("unknown"))
    view.pods.put(a_pod("known"))
    tenants = [
        Allocation(namespace=SPACE, pod=name, container="c", groups=32, memory_mib=1) for name in ("known", "unknown")
    ]
    a_node(view, "n1", 64, tenants=tenants)
    slipped.queue.rest()  # what it marked comes a moment later; here at once
    slipped.queue.wake()
    for name in ("known", "unknown"):
        slipped.queue.mark((SPACE, name))
    running = asyncio.ensure_future(slipped.queue.run())
    await until(lambda: labelled(kube), "the label")
    await until(lambda: slipped.queue.is_idle, "the rest")
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert set(labelled(kube)) == {"unknown"}
    assert [one["fieldSelector"] for one in kube.asked] == ["metadata.name=unknown"]


async def test_an_api_server_that_is_away_is_asked_again() -> None:
    """A list that fails is no end; a lost lease is."""
    _, kube, slipped, metrics = a_world(pod_body("pod"))
    kube.failures = [ApiUnavailable("away"), ApiUnavailable("away")]
    running = asyncio.ensure_future(slipped.run())
    await until(lambda: labelled(kube), "the label")
    kube.failures = [LeadershipLost("gone")]
    with pytest.raises(LeadershipLost):
        await running
    errors = metrics.registry.get_sample_value("cta_group_reconcile_errors_total", {"kind": "slipped"})
    assert errors == 2


def test_only_those_that_live_are_counted_now() -> None:
    """The figure is of pods that are there, so it falls when they end."""
    view, _, slipped, _ = a_world()
    view.pods.put(a_pod("runs", slipped=True, phase="Running"))
    view.pods.put(a_pod("ended", slipped=True, phase="Succeeded"))
    view.pods.put(a_pod("usual"))
    assert slipped.count == 1
