"""The operator changes of nodes and pods only what is its own, though its role would let it do more."""

from collections.abc import Iterator

import pytest

from cluster_harness.api_client import ApiClient
from cluster_harness.control_plane import ControlPlane
from cluster_harness.errors import ApiError
from cta_group_core.names import ANNOTATION_PLACEMENT, GATE_PLACEMENT, LABEL_GPU_PRODUCT
from group_pods import container, pod
from service_account import ServiceAccount

_NODE = "/api/v1/nodes/labelled"


@pytest.fixture
def operator(policies: None, control_plane: ControlPlane, api: ApiClient) -> Iterator[ServiceAccount]:  # noqa: ARG001 - needed for what it does
    """Return the operator's account; there is a node for it."""
    api.create("/api/v1/nodes", {"metadata": {"name": "labelled", "labels": {"zone": "a"}}})
    yield ServiceAccount(control_plane, "cta-group", "cta-group-operator")
    api.delete(_NODE)


@pytest.fixture
def waiting(tenants: str, api: ApiClient) -> str:
    """Make a gated pod and return its path."""
    api.create(f"/api/v1/namespaces/{tenants}/pods", pod(container(groups=32), gates=[GATE_PLACEMENT]))
    return f"/api/v1/namespaces/{tenants}/pods/tenant"


def test_it_labels_nodes_under_the_project_s_prefix(operator: ServiceAccount) -> None:
    """Set, changed and removed."""
    for value in ("NVIDIA-H100", "NVIDIA-H200", None):
        stored = operator.merge_patch(_NODE, {"metadata": {"labels": {LABEL_GPU_PRODUCT: value}}})
        assert stored["metadata"]["labels"].get(LABEL_GPU_PRODUCT) == value
        assert stored["metadata"]["labels"]["zone"] == "a"


@pytest.mark.parametrize("labels", [{"zone": "b"}, {"zone": None}, {"new": "x"}])
def test_it_leaves_labels_of_others_alone(operator: ServiceAccount, labels: dict[str, str | None]) -> None:
    """Neither changed, nor removed, nor added."""
    words = "the operator of cta-group may change labels of a node under ctagroup.dev/ only"
    with pytest.raises(ApiError, match=words):
        operator.merge_patch(_NODE, {"metadata": {"labels": labels}})


def test_it_neither_taints_nor_cordons(operator: ServiceAccount) -> None:
    """A node's spec is not its business."""
    words = "may change labels of a node under ctagroup.dev/, not its spec"
    with pytest.raises(ApiError, match=words):
        operator.merge_patch(_NODE, {"spec": {"unschedulable": True}})


def test_it_does_not_touch_containers(operator: ServiceAccount, waiting: str, api: ApiClient) -> None:
    """The API server itself would let an image be changed."""
    (stored,) = api.get(waiting)["spec"]["containers"]
    with pytest.raises(ApiError, match="may change gate and affinity of a pod, not its containers"):
        operator.merge_patch(waiting, {"spec": {"containers": [stored | {"image": "localhost/other:1"}]}})


def test_it_places_a_pod(operator: ServiceAccount, waiting: str) -> None:
    """Affinity added, annotation written, gate off, in one patch."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["labelled"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    spec = {"affinity": {"nodeAffinity": required}, "schedulingGates": None}
    metadata = {"annotations": {ANNOTATION_PLACEMENT: "labelled"}}
    assert "schedulingGates" not in operator.merge_patch(waiting, {"metadata": metadata, "spec": spec})["spec"]
