"""Which pods the API server sends to the webhook: those that ask for groups, and no other."""

from collections.abc import Iterator

import pytest

from chart_rendering import of_kind, render
from cluster_harness.api_client import ApiClient, Json
from cluster_harness.control_plane import ControlPlane
from cluster_harness.errors import ApiError
from cluster_harness.waiting import wait_for
from cta_group_core.names import ANNOTATION_GROUPS
from group_pods import asking, container, pod
from kubectl import Kubectl

_LABEL = "webhook-of-these-tests"
_NOBODY = "https://127.0.0.1:9/mutate"  # nobody listens there
_PATH = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/conditions"


@pytest.fixture(scope="module")
def watched(control_plane: ControlPlane) -> Iterator[str]:
    """Register the chart's webhook so that each pod that is sent is refused; return a namespace that it looks at."""
    api = control_plane.api
    (configuration,) = of_kind(render("default"), "MutatingWebhookConfiguration").values()
    configuration["metadata"] = {"name": "conditions"}
    (webhook,) = configuration["webhooks"]
    webhook |= {"failurePolicy": "Fail", "clientConfig": {"url": _NOBODY}}
    webhook["namespaceSelector"]["matchExpressions"].append({"key": _LABEL, "operator": "Exists"})
    for name in ("kube-system", "webhook-conditions"):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {_LABEL: "on"}}}
        Kubectl.admin(control_plane).apply(namespace, manager=_LABEL)
    account = "/api/v1/namespaces/webhook-conditions/serviceaccounts/default"
    wait_for(lambda: api.find(account), "the default service account")
    Kubectl.admin(control_plane).apply(configuration)
    wait_for(lambda: is_sent(api, "webhook-conditions", asking(32)), "the webhook to be called")
    yield "webhook-conditions"
    api.delete(_PATH)
    api.delete("/api/v1/namespaces/webhook-conditions")
    api.patch("/api/v1/namespaces/kube-system", {"metadata": {"labels": {_LABEL: None}}})


def is_sent(api: ApiClient, namespace: str, made: Json) -> bool:
    """Return whether the API server asks the webhook about a pod; no pod is kept."""
    try:
        api.create(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", made)
    except ApiError as error:
        if 'failed calling webhook "pods.ctagroup.dev"' not in error.sentence:
            raise
        return True
    return False


@pytest.mark.parametrize(
    "made",
    [
        asking(32),
        asking("0.032k"),
        pod(container("side"), container(groups=8)),
        pod(container(), initial=[container("load", groups=8)]),
        pod(container(), annotations={ANNOTATION_GROUPS: "32"}),
    ],
    ids=["a container", "another spelling", "the second container", "an init container", "the annotation"],
)
def test_pods_that_ask_are_sent(api: ApiClient, watched: str, made: Json) -> None:
    """By the resource in any container, or by the annotation for templates that cannot name it."""
    assert is_sent(api, watched, made)


@pytest.mark.parametrize(
    "made",
    [
        pod(container()),
        asking(0),
        pod(container() | {"resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "1"}}}),
        pod(container(env={"NVIDIA_VISIBLE_DEVICES": "all"}), annotations={"example.com/groups": "32"}),
    ],
    ids=["a plain pod", "zero groups", "a whole GPU of another plugin", "another annotation"],
)
def test_other_pods_never_leave_the_api_server(api: ApiClient, watched: str, made: Json) -> None:
    """They are created although the webhook refuses everything that it is asked."""
    assert not is_sent(api, watched, made)


@pytest.mark.usefixtures("watched")
def test_kube_system_is_never_sent(api: ApiClient) -> None:
    """Not even a pod that asks."""
    assert not is_sent(api, "kube-system", asking(32))


def test_debug_containers_are_never_sent(api: ApiClient, watched: str) -> None:
    """``kubectl debug`` on a pod that holds groups is neither aligned nor gated: it comes through a subresource."""
    path = f"/api/v1/namespaces/{watched}"
    api.patch(path, {"metadata": {"labels": {_LABEL: None}}})
    wait_for(lambda: not is_sent(api, watched, asking(32)), "the webhook to leave the namespace alone")
    api.create(f"{path}/pods", asking(32))
    api.patch(path, {"metadata": {"labels": {_LABEL: "on"}}})
    another = pod(
        container(groups=32), name="another"
    )  # until the webhook is called, a second one of that name is refused
    wait_for(lambda: is_sent(api, watched, another), "the webhook to be called")
    debugger = {"spec": {"ephemeralContainers": [container("look")]}}
    stored = api.patch(f"{path}/pods/tenant/ephemeralcontainers", debugger)
    assert [one["name"] for one in stored["spec"]["ephemeralContainers"]] == ["look"]
    assert "schedulingGates" not in stored["spec"]
    assert stored["spec"]["containers"][0].get("args") is None
