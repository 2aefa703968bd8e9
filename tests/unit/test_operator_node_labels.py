"""Labels of a node say what holds for all of it, and nothing else."""

from cta_group_core.names import LABEL_GPU_PRODUCT, LABEL_GROUPS_PER_GPU, LABEL_SIMULATED
from cta_group_core.nodes import GpuStatus, NodeStatus
from cta_group_operator.reconcile.node_labels import labels_of

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
