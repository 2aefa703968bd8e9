"""A CTAQuota that bounds a single pod: refused with what to do, in its own namespaces only."""

from collections.abc import Iterator

import pytest

from cluster_harness.api_client import ApiClient
from cluster_harness.waiting import wait_for
from cta_group_core.denials import bounding_quota
from cta_group_core.names import ANNOTATION_MULTI_CONTAINER
from gpu_cluster import OURS
from group_pods import asking, container, pod
from refused_pods import refusal


@pytest.fixture
def bounded(api: ApiClient, tenants: str) -> Iterator[str]:
    """Give the namespace a quota of 64 a pod, as it is when the operator has looked at it; wait until it works."""
    kind = {"apiVersion": "ctagroup.dev/v1alpha1", "kind": "CTAQuota"}
    spec = {"groups": 256, "namespaces": [tenants], "perPod": {"max": 64}}
    path = f"{OURS}/ctaquotas/{tenants}"
    api.create(f"{OURS}/ctaquotas", {**kind, "metadata": {"name": tenants}, "spec": spec})
    share = {"name": tenants, "hard": 256, "used": 0}
    api.patch(f"{path}/status", {"status": {"namespaces": [share]}})
    wait_for(lambda: refusal(api, tenants, asking(128)), "the bound to be known to the API server")
    yield tenants
    api.delete(path)


def test_a_pod_above_the_bound_is_refused_with_what_to_do(api: ApiClient, bounded: str) -> None:
    """The message has what was asked, what is allowed, and by which quota; a smaller pod is let in."""
    told = refusal(api, bounded, asking(72)) or ""
    assert told.endswith(
        f"denied request: the pod asks for 72 groups, CTAQuota {bounded} allows 64 in one pod; ask for less, or have "
        "spec.perPod.max raised"
    )
    assert bounding_quota(told) == bounded  # the operator wakes whom it refused when it is raised
    assert refusal(api, bounded, asking(64)) is None


def test_all_containers_of_a_pod_count_together(api: ApiClient, bounded: str) -> None:
    """Containers that run together are added up, sidecars too, as a quota charges them."""
    accepted = {ANNOTATION_MULTI_CONTAINER: "true"}
    several = pod(container("a", groups=40), container("b", groups=40), annotations=accepted)
    assert "asks for 80 groups" in (refusal(api, bounded, several) or "")
    sidecar = container("load", groups=40) | {"restartPolicy": "Always"}
    beside = pod(container("a", groups=40), initial=[sidecar], annotations=accepted)
    assert "asks for 80 groups" in (refusal(api, bounded, beside) or "")


def test_other_namespaces_and_quotas_are_left_alone(api: ApiClient, bounded: str) -> None:
    """A pod of a namespace that is no part of the quota, and one of a quota without a bound, are let in."""
    api.patch(f"{OURS}/ctaquotas/{bounded}/status", {"status": {"namespaces": []}})
    wait_for(lambda: refusal(api, bounded, asking(128)) is None, "the namespace to be free of the bound")
    api.patch(
        f"{OURS}/ctaquotas/{bounded}/status", {"status": {"namespaces": [{"name": bounded, "hard": 1, "used": 0}]}}
    )
    wait_for(lambda: refusal(api, bounded, asking(128)), "the bound again")
    api.patch(f"{OURS}/ctaquotas/{bounded}", {"spec": {"perPod": None}})
    wait_for(lambda: refusal(api, bounded, asking(128)) is None, "the bound to be gone")
