"""The operator wakes what makes pods and deletes pods that hold groups, and does nothing else to either."""

from collections.abc import Iterator

import pytest

from cluster_harness.api_client import ApiClient
from cluster_harness.control_plane import ControlPlane
from cluster_harness.errors import ApiError
from cluster_harness.waiting import wait_for
from cta_group_core.names import ANNOTATION_POKED
from group_pods import asking, container, pod
from service_account import ServiceAccount

_WAKE = {"metadata": {"annotations": {ANNOTATION_POKED: "1"}}}


@pytest.fixture
def operator(policies: None, control_plane: ControlPlane) -> ServiceAccount:  # noqa: ARG001 - needed for what it does
    """Return the operator's account."""
    return ServiceAccount(control_plane, "cta-group", "cta-group-operator")


@pytest.fixture
def workloads(api: ApiClient, tenants: str) -> Iterator[dict[str, str]]:
    """Make one of each kind that creates pods, none of which runs one, and return their paths by kind."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": asking(32)["spec"]}
    apps = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    job = {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}
    specs = {
        "apis/apps/v1 replicasets": {**apps, "replicas": 0},
        "apis/apps/v1 statefulsets": {**apps, "replicas": 0, "serviceName": "web"},
        "apis/apps/v1 daemonsets": apps,
        "apis/batch/v1 jobs": {"template": job, "suspend": True},
    }
    paths = {}
    for where, spec in specs.items():
        group, kind = where.split()
        path = f"/{group}/namespaces/{tenants}/{kind}"
        api.create(path, {"metadata": {"name": "web"}, "spec": spec})
        paths[kind] = f"{path}/web"
    yield paths
    for path in paths.values():
        api.delete(f"{path}?propagationPolicy=Background")


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("replicasets", {"replicas": 1}),
        ("statefulsets", {"replicas": 1}),
        ("daemonsets", {"minReadySeconds": 1}),
        ("jobs", {"parallelism": 2}),
    ],
)
def test_it_wakes_and_changes_nothing_else(
    operator: ServiceAccount, workloads: dict[str, str], kind: str, change: dict[str, int]
) -> None:
    """Its annotation is let through, a change of the spec is not."""
    assert operator.merge_patch(workloads[kind], _WAKE)["metadata"]["annotations"][ANNOTATION_POKED] == "1"
    words = "may change an annotation of what makes pods, not its spec"

    def is_refused() -> bool:
        try:
            operator.merge_patch(workloads[kind], {"spec": change})
        except ApiError as error:
            return words in error.sentence
        return False

    wait_for(is_refused, "the policy to refuse a change of the spec")


def test_it_adds_one_condition_to_a_ctanode_and_changes_nothing_else(operator: ServiceAccount, api: ApiClient) -> None:
    """What a node's plugin says of its GPUs and of itself is not the operator's to change."""
    kind = {"apiVersion": "ctagroup.dev/v1alpha1", "kind": "CTANode"}
    path = "/apis/ctagroup.dev/v1alpha1/ctanodes"
    api.create(path, {**kind, "metadata": {"name": "reported"}})
    numbers = {"resourceName": "nvidia.com/cta-group", "capacity": 0, "allocatable": 0, "free": 0, "largestFit": 0}
    own = {"type": "Registered", "status": "True", "reason": "Registered"}
    api.patch(f"{path}/reported/status", {"status": {**numbers, "nodeUID": "one", "conditions": [own]}})
    silent = {"type": "Reporting", "status": "False", "reason": "PluginSilent"}
    try:
        for change in (
            {"nodeUID": "two"},
            {"conditions": [own | {"status": "False"}]},
            {"conditions": [own, silent | {"type": "MPSReady"}]},
        ):
            with pytest.raises(ApiError, match="may change the condition Reporting of a CTANode, nothing else"):
                operator.merge_patch(f"{path}/reported/status", {"status": change})
        operator.merge_patch(f"{path}/reported/status", {"status": {"conditions": [own, silent]}})
        operator.merge_patch(f"{path}/reported/status", {"status": {"conditions": [own, silent | {"status": "True"}]}})
    finally:
        api.delete(f"{path}/reported")


def test_it_deletes_pods_of_the_resource_only(operator: ServiceAccount, api: ApiClient, tenants: str) -> None:
    """A pod that holds groups may go; one that asks for none is not its business."""
    path = f"/api/v1/namespaces/{tenants}/pods"
    api.create(path, asking(32))
    api.create(path, pod(container(), name="plain"))
    with pytest.raises(ApiError, match=r"may delete pods that ask for nvidia\.com/cta-group, no others"):
        operator.delete(f"{path}/plain")
    operator.delete(f"{path}/tenant")
