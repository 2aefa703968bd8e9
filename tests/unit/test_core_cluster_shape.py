"""The cluster that kernels need: how it is written, which requests suit it, and GPUs that have none."""

from math import prod

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from admission_pods import H100, annotated, decode, server_pod
from cta_group_cli.align_rules import answers
from cta_group_cli.manifests import read_manifests
from cta_group_core.cluster_shape import degradation, has_clusters, needs_clusters, parse_shape, shape_problem
from cta_group_core.errors import InvalidText
from cta_group_core.ids import GpuUuid, NodeName
from cta_group_core.names import DEFAULT_RESOURCE_NAME
from cta_group_core.node_choice import NodeOffer, safe_nodes
from cta_group_core.profiles import profile_named
from cta_group_core.rooms import GpuRoom
from cta_group_core.scheduling import NodeFacts, PodTerms
from cta_group_core.units import GpuUnits
from cta_group_core.vllm.gpu import GpuKind
from cta_group_operator.admission.decision import validate
from cta_group_operator.admission.settings import PodRules


def kind_of(gpu: str) -> GpuKind:
    """Return what alignment knows of a profile."""
    profile = profile_named(gpu)
    return GpuKind(profile.product, profile.memory_total_mib, 0, profile.units, limits_memory=True)


SXM = GpuUnits(sm_count=132, capacity=128, minimum=8, step=8)


@pytest.mark.parametrize(
    ("text", "size"),
    [("4,2,1", 8), ("1", 1), (" 2 , 2 ", 4), ("8", 8), ("4,4,1,non-portable", 16), ("2,non-portable", 2), ("3", 3)],
)
def test_shapes_that_are_understood(text: str, size: int) -> None:
    """One to three numbers; a word where the cluster is not portable."""
    assert parse_shape(text).size == size
    assert needs_clusters(text) == (size > 1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is no cluster shape"),
        ("non-portable", "is no cluster shape"),
        ("4,2,1,1", "is no cluster shape"),
        ("4,,1", "is no cluster shape"),
        ("0,2", "is no cluster shape"),
        ("-4", "is no cluster shape"),
        ("4x2", "is no cluster shape"),
        ("²", "is no cluster shape"),
        ("4,4,1", 'write "4,4,1,non-portable"'),
        ("8,4,1,non-portable", "is a cluster of 32 thread blocks; CUDA takes 16 at most"),
        ("9" * 9000, "is no cluster shape"),
        (f"4{' ' * 63}", "is no cluster shape"),
    ],
)
def test_shapes_that_are_refused(text: str, told: str) -> None:
    """The annotation is named, and what may be written; no wish follows from such a text."""
    with pytest.raises(InvalidText) as wrong:
        parse_shape(text)
    assert told in str(wrong.value)
    assert str(wrong.value).startswith("annotation ctagroup.dev/shape: ")
    assert len(str(wrong.value)) < 300
    assert not needs_clusters(text)


@given(st.lists(st.integers(1, 16), min_size=1, max_size=3).filter(lambda one: prod(one) <= 16), st.integers(1, 2000))
def test_a_request_suits_when_it_is_a_multiple(blocks: list[int], groups: int) -> None:
    """And the sizes that are named instead do suit."""
    text = f"{','.join(map(str, blocks))},non-portable"
    told = shape_problem(text, [groups])
    assert (told is None) == (groups % prod(blocks) == 0)
    if told is not None:
        nearest = [int(word) for word in told.rpartition("the nearest are ")[2].split(" or ")]
        assert all(shape_problem(text, [one]) is None for one in nearest)


@given(st.text(max_size=30))
def test_any_text_is_a_shape_or_a_sentence(text: str) -> None:
    """Nothing else is raised, and pods without the annotation or a request are nobody's business."""
    assert (shape_problem(text, [16 * 9 * 5 * 7 * 11 * 13]) is None) or shape_problem(text, [8])
    assert shape_problem(text, []) is None
    assert shape_problem(None, [7]) is None


def test_gpus_with_clusters() -> None:
    """From 9.0 on; of one that does not answer nothing is said."""
    assert [has_clusters(one) for one in ("8.9", "9.0", "10.0", "", "unknown")] == [False, True, True, None, None]
    assert degradation("H100", "9.0") is None
    assert degradation("x", "") is None
    assert "A100 (compute capability 8.0) has no thread-block clusters" in (degradation("A100", "8.0") or "")


def test_the_webhook_refuses_and_lets_in() -> None:
    """Whatever is said about vLLM's arguments; a pod that asks for nothing is not judged."""
    wrong = decode(annotated(server_pod("m", groups=40), shape="4,4,1,non-portable", align="off"))
    answer = validate(wrong, PodRules(), H100)
    assert not answer.allowed
    assert answer.message == (
        "annotation ctagroup.dev/shape: '4,4,1,non-portable' is a cluster of 16 thread blocks, and 40 groups are no "
        "multiple of 16: the nearest are 32 or 48"
    )
    assert validate(decode(annotated(server_pod("m"), shape="4,2,1")), PodRules(), H100).allowed
    assert validate(decode(annotated(server_pod("m", groups=None), shape="?")), PodRules(), H100).allowed


SIDE = {"name": "side", "image": "x", "restartPolicy": "Always", "resources": {"limits": {DEFAULT_RESOURCE_NAME: "40"}}}


def test_a_sidecar_s_groups_are_judged_too() -> None:
    """At admission and offline: it holds a slice as the others do."""
    made = annotated(server_pod("m", groups=None), shape="16,non-portable")
    made["spec"]["initContainers"] = [SIDE]
    told = "40 groups are no multiple of 16: the nearest are 32 or 48"
    assert validate(decode(made), PodRules(), H100).message.endswith(told)
    offline = {"kind": "Pod", "metadata": made["metadata"], "spec": made["spec"]}
    (answer,) = answers(read_manifests(yaml.safe_dump(offline), "text"), kind_of("h100-sxm"), "9.0")
    assert any(one.endswith(told) for one in answer.refused), answer


def test_placement_prefers_gpus_with_clusters() -> None:
    """Before best fit, and only for who needs them; without other room the pod goes there all the same."""
    tight = NodeOffer(
        NodeFacts(NodeName("old"), pods=10, groups=128), (GpuRoom(GpuUuid("GPU-o"), 0, SXM, 32),), has_clusters=False
    )
    roomy = NodeOffer(NodeFacts(NodeName("new"), pods=10, groups=128), (GpuRoom(GpuUuid("GPU-n"), 0, SXM, 128),))
    assert safe_nodes(PodTerms(), (32,), [tight, roomy]) == ("old", "new")
    assert safe_nodes(PodTerms(needs_clusters=True), (32,), [tight, roomy]) == ("new", "old")
    assert safe_nodes(PodTerms(needs_clusters=True), (32,), [tight]) == ("old",)


@pytest.mark.parametrize(
    ("gpu", "shape", "refused", "warned"),
    [
        ("h100-sxm", "4,2,1", 0, 0),
        ("a100-80", "4,2,1", 0, 1),
        ("a100-80", "1,1,1", 0, 0),
        ("h100-sxm", "3", 1, 0),
        ("h100-sxm", "x", 1, 0),
    ],
)
def test_align_says_the_same_without_a_cluster(gpu: str, shape: str, refused: int, warned: int) -> None:
    """A refusal, or a warning about a GPU without clusters."""
    text = f"""
kind: Pod
metadata: {{name: a, annotations: {{ctagroup.dev/shape: "{shape}"}}}}
spec: {{containers: [{{name: a, image: x, resources: {{limits: {{nvidia.com/cta-group: 32}}}}}}]}}
"""
    (answer,) = answers(read_manifests(text, "text"), kind_of(gpu), str(profile_named(gpu).capability))
    assert (len(answer.refused), len(answer.warnings)) == (refused, warned), answer
