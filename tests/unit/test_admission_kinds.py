"""The value for vLLM's memory starts on every GPU that the pod can land on."""

from dataclasses import replace
from typing import Any

import pytest

from admission_pods import FITS_H100_QUARTER, FLAG, admitted, args_of, cta_node, known_gpus, server_pod
from cta_group_core.names import ANNOTATION_ALIGNMENT_ADVICE
from cta_group_operator.admission.pod import Spec

Json = dict[str, Any]


def test_gpus_are_followed_through_nodes_that_come_change_and_go() -> None:
    """A node that is gone does not count any more; one that changed counts as it is now."""
    first, second = cta_node("node-a", "h100-sxm"), cta_node("node-b", "h200")
    known = known_gpus(first, second)
    known.follow(second, cta_node("node-b", "h100-sxm"))
    assert {kind.product for kind in known.kinds(Spec())} == {"NVIDIA H100 80GB HBM3"}
    known.follow(first, None)
    known.follow(second, None)
    assert known.kinds(Spec()) == frozenset()


def test_the_value_starts_on_every_kind_of_gpu_the_pod_can_land_on() -> None:
    """The smallest share of memory over the kinds, and a node selector leaves some out."""
    labels = {"node-a": {"zone": "a"}, "node-b": {"zone": "b"}}
    both = known_gpus(cta_node("node-a", "h100-sxm"), cta_node("node-b", "h200"), labels=labels)
    anywhere, _ = admitted(server_pod("m"), both)
    before = server_pod("m")
    before["spec"]["nodeSelector"] = {"zone": "b"}
    only_h200, _ = admitted(before, both)
    assert args_of(anywhere)[1] == f"{FLAG}={FITS_H100_QUARTER}"
    assert args_of(only_h200)[1] == f"{FLAG}=0.2257"


def required(**term: Any) -> Json:
    """Return node affinity that must hold."""
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        ({"affinity": required(matchExpressions=[{"key": "zone", "operator": "In", "values": ["b"]}])}, "0.2257"),
        ({"affinity": required(matchExpressions=[{"key": "zone", "operator": "NotIn", "values": ["a"]}])}, "0.2257"),
        ({"affinity": required(matchExpressions=[{"key": "zone", "operator": "Exists"}])}, FITS_H100_QUARTER),
        (
            {"affinity": required(matchFields=[{"key": "metadata.name", "operator": "In", "values": ["node-b"]}])},
            "0.2257",
        ),
        ({"nodeName": "node-b"}, "0.2257"),
        ({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}}, FITS_H100_QUARTER),
        ({"affinity": {"nodeAffinity": None}}, FITS_H100_QUARTER),
        ({"affinity": required(matchExpressions=[{"key": "zone", "operator": "Like"}])}, FITS_H100_QUARTER),
    ],
)
def test_required_affinity_and_a_node_s_name_leave_kinds_out(spec: Json, value: str) -> None:
    """As a selector does; what is only preferred, or that nobody can read, leaves out none."""
    labels = {"node-a": {"zone": "a"}, "node-b": {"zone": "b"}}
    both = known_gpus(cta_node("node-a", "h100-sxm"), cta_node("node-b", "h200"), labels=labels)
    before = server_pod("m")
    before["spec"] |= spec
    pod, _ = admitted(before, both)
    assert args_of(pod)[1] == f"{FLAG}={value}"


def test_a_node_whose_labels_are_not_known_may_have_them() -> None:
    """Its GPUs count, so that the value starts there too."""
    both = known_gpus(cta_node("node-a", "h100-sxm"), cta_node("node-b", "h200"), labels={"node-b": {"zone": "b"}})
    before = server_pod("m")
    before["spec"]["affinity"] = required(matchExpressions=[{"key": "zone", "operator": "In", "values": ["b"]}])
    assert args_of(admitted(before, both)[0])[1] == f"{FLAG}={FITS_H100_QUARTER}"


def test_a_display_card_beside_the_gpus_does_not_count() -> None:
    """A kind that the request is not allowed on is one where the pod never lands."""
    mixed = known_gpus(cta_node("node-a", "rtx-4060-laptop", "h200"))
    pod, _ = admitted(server_pod("m"), mixed)
    assert args_of(pod)[1] == f"{FLAG}=0.2257"


def test_a_kind_where_vllm_cannot_start_is_warned_of_and_left_out() -> None:
    """8 groups of a T4 are too little memory for any model; on the H200 they start."""
    mixed = known_gpus(cta_node("node-a", "t4", "h200"))
    pod, decided = admitted(server_pod("m", groups=8), mixed)
    assert args_of(pod)[1].startswith(f"{FLAG}=0.0")
    assert any("8 groups of Tesla T4" in warning for warning in decided.answer.warnings)


def test_a_slice_too_small_on_every_kind_is_advised_against() -> None:
    """Nothing is changed, and the annotation says to ask for more."""
    pod, _ = admitted(server_pod("m", groups=8), known_gpus(cta_node("node-a", "t4")))
    assert args_of(pod) == ["m"]
    assert "ask for more groups" in pod["metadata"]["annotations"][ANNOTATION_ALIGNMENT_ADVICE]


def test_a_whole_gpu_keeps_vllm_s_default() -> None:
    """There is no limit, so there is nothing to fit."""
    pod, decided = admitted(server_pod("m", groups=128))
    assert args_of(pod) == ["m"]
    assert decided.answer.warnings == []


def test_servers_without_memory_limits_are_warned_of_the_race() -> None:
    """They are still sized for their share."""
    _, decided = admitted(server_pod("m"), known_gpus(cta_node("node-a", "h100-sxm", limits_memory=False)))
    assert any("one after the other" in warning for warning in decided.answer.warnings)


def test_a_gpu_whose_memory_nobody_knows_says_nothing_about_vllm_s() -> None:
    """A superchip without a memory limit: the arguments stay, and the pod comes in."""
    node = cta_node("node-a", "h100-sxm")
    (gpu,) = node.status.gpus
    status = node.status.model_copy(update={"gpus": (gpu.model_copy(update={"memory_mib": 0, "reserve_mib": 0}),)})
    pod, decided = admitted(server_pod("m"), known_gpus(replace(node, status=status)))
    assert args_of(pod) == ["m"]
    assert decided.answer.allowed
