"""Labels of a node say what holds for all of it, and nothing else."""

from dataclasses import replace

from cta_group_core.names import LABEL_GPU_PRODUCT, LABEL_GROUPS_PER_GPU, LABEL_SIMULATED
from cta_group_core.nodes import GpuStatus, NodeStatus
from cta_group_operator.ports import NodeView
from cta_group_operator.reconcile.node_labels import NodeLabeller, labels_of
from cta_group_operator.reconcile.view import ClusterView
from operator_world import FakeKube, a_node, a_view

_H200 = GpuStatus(
    uuid="GPU-1",
    index=1,
    product="NVIDIA H200",
    compute_capability="9.0",
    sm_count=132,
    capacity=128,
    minimum=8,
    step=8,
)
_T400 = GpuStatus(
    uuid="GPU-0",
    index=0,
    product="NVIDIA T400 4GB",
    compute_capability="7.5",
    sm_count=6,
    capacity=6,
    minimum=2,
    step=2,
)
_LEFT_OUT = _T400.model_copy(update={"capacity": 0, "withheld": "left out by the setting gpus.exclude (T400)"})


def labels(*gpus: GpuStatus) -> dict[str, str]:
    """Return the labels of a node with those GPUs."""
    return labels_of(NodeStatus(resource_name="nvidia.com/cta-group", gpus=gpus))


def test_gpus_that_are_alike_give_their_product_and_size() -> None:
    """Facts that never change with load, in the form that a label's value may have."""
    assert labels(_H200) == {LABEL_GPU_PRODUCT: "NVIDIA-H200", LABEL_GROUPS_PER_GPU: "128"}


def test_a_display_card_beside_them_leaves_no_size_that_is_false_for_a_part() -> None:
    """Neither product nor size of one GPU is said of the node."""
    assert labels(_T400, _H200) == {}


def test_a_card_that_is_left_out_does_not_count() -> None:
    """What is not served says nothing about what is."""
    assert labels(_LEFT_OUT, _H200) == {LABEL_GPU_PRODUCT: "NVIDIA-H200", LABEL_GROUPS_PER_GPU: "128"}


def test_simulated_gpus_are_marked() -> None:
    """So that nobody takes such a node for a real one."""
    assert labels_of(NodeStatus(resource_name="r.example/r", simulated=True, gpus=())) == {LABEL_SIMULATED: "true"}


async def test_labels_go_when_the_node_s_object_was_deleted() -> None:
    """Once; what was put there by others stays."""
    view, api = a_view(), FakeKube()
    a_node(view, "n", 128)
    labeller = NodeLabeller(view, api)
    _label(view, {LABEL_GROUPS_PER_GPU: "128", "zone": "a"})
    view.cta_nodes.remove(("", "n"), "2")
    labeller.left("n")
    await labeller.reconcile("n")
    assert api.objects["/api/v1/nodes/n"]["metadata"]["labels"] == {LABEL_GROUPS_PER_GPU: None}
    _label(view, {"zone": "a"})
    await labeller.reconcile("n")
    assert len(api.writes) == 1


async def test_what_was_done_is_not_done_again() -> None:
    """Whoever sets such a label by hand afterwards keeps it: nobody goes on removing it for ever."""
    view, api = a_view(), FakeKube()
    a_node(view, "n", 128)
    labeller = NodeLabeller(view, api)
    view.cta_nodes.remove(("", "n"), "2")
    labeller.left("n")
    await labeller.reconcile("n")
    _label(view, {LABEL_GROUPS_PER_GPU: "128"})
    await labeller.reconcile("n")
    assert api.writes == []


async def test_an_object_that_cannot_be_read_costs_no_label() -> None:
    """It was not deleted: another version of the operator may read it."""
    view, api = a_view(), FakeKube()
    a_node(view, "n", 128)
    _label(view, {LABEL_GROUPS_PER_GPU: "128"})
    view.cta_nodes.remove(("", "n"), "2")
    await NodeLabeller(view, api).reconcile("n")
    assert api.writes == []


def _label(view: ClusterView, labels: dict[str, str]) -> None:
    node = view.nodes.get("n")
    assert node is not None
    version = str(int(node.resource_version) + 1)
    view.nodes.put(NodeView(replace(node.facts, labels=labels), version, node.uid))
