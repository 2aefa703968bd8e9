"""What admission does to a pod that asks for groups."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission_pods import (
    ALSO_SET,
    FITS_H100_QUARTER,
    FLAG,
    H100,
    admitted,
    annotated,
    args_of,
    decode,
    known_gpus,
    server_pod,
)
from cta_group_core.align_mode import AlignMode
from cta_group_core.names import (
    ANNOTATION_ALIGN,
    ANNOTATION_ALIGNMENT,
    ANNOTATION_ALIGNMENT_ADVICE,
    ANNOTATION_CONTAINER,
    ANNOTATION_GROUPS,
    GATE_PLACEMENT,
    LABEL_REQUESTS,
)
from cta_group_core.names import DEFAULT_RESOURCE_NAME as RESOURCE
from cta_group_operator.admission.decision import validate
from cta_group_operator.admission.settings import PodRules

Json = dict[str, Any]


def test_a_pod_that_asks_is_labelled_gated_and_fitted() -> None:
    """The operator finds it by its label, holds it by its gate, and vLLM starts in its slice."""
    pod, decided = admitted(server_pod("m", "--port=8000"))
    assert pod["metadata"]["labels"] == {LABEL_REQUESTS: "true"}
    assert pod["spec"]["schedulingGates"] == [{"name": GATE_PLACEMENT}]
    assert args_of(pod) == ["m", "--port=8000", f"{FLAG}={FITS_H100_QUARTER}", *ALSO_SET]
    edits = json.loads(pod["metadata"]["annotations"][ANNOTATION_ALIGNMENT])
    assert [f"{edit['flag']}={edit['to']}" for edit in edits] == args_of(pod)[2:]
    assert {edit["from"] for edit in edits} == {None}
    assert "19996 of 81008 MiB" in edits[0]["why"]
    assert decided.changed_flags == tuple(edit["flag"] for edit in edits)
    assert decided.answer.warnings == [f"set {word} (was not given)" for word in args_of(pod)[2:]]


@pytest.mark.parametrize("groups", [None, "0"])
def test_a_pod_that_does_not_ask_is_never_touched(groups: str | None) -> None:
    """Not even a vLLM server, and not one that claims to have been aligned."""
    before = annotated(server_pod("m", groups=groups), alignment="mine")
    pod, decided = admitted(before)
    assert pod == before
    assert decided.answer.warnings == []


def test_a_lower_value_of_the_user_stays() -> None:
    """Only label and gate are added."""
    pod, decided = admitted(server_pod("m", f"{FLAG}=0.1"))
    assert args_of(pod) == ["m", f"{FLAG}=0.1"]
    assert "annotations" not in pod["metadata"]
    assert decided.changed_flags == ()


def test_a_higher_value_is_lowered_where_it_stands() -> None:
    """In the command too."""
    pod, _ = admitted(server_pod(command=["vllm", "serve", "m", FLAG, "0.9"]))
    container = pod["spec"]["containers"][0]
    assert container["command"] == ["vllm", "serve", "m", FLAG, FITS_H100_QUARTER]
    assert container["args"] == ALSO_SET


def test_a_second_call_for_the_same_pod_finds_nothing_to_do() -> None:
    """Another webhook may change the pod and have ours called again."""
    once, _ = admitted(server_pod("m"))
    twice, decided = admitted(once)
    assert twice == once
    assert not decided.answer.patch


def test_a_claim_that_was_not_ours_is_taken_away() -> None:
    """What the annotation says is what was done, whoever wrote it before."""
    forged = '[{"flag": "--max-model-len", "from": null, "to": "1", "why": "x"}]'
    fitting = annotated(server_pod("m", f"{FLAG}=0.1"), alignment=forged)
    changed = annotated(server_pod("m"), alignment=forged)
    assert admitted(fitting)[0]["metadata"]["annotations"] == {}
    assert FLAG in admitted(changed)[0]["metadata"]["annotations"][ANNOTATION_ALIGNMENT]


def test_what_is_written_later_cannot_be_claimed() -> None:
    """Neither where a pod was placed nor that the webhook was away is known at its creation."""
    claims = {"placement-nodes": "node-a", "admitted-without-webhook": "true", "metrics-port": "8000"}
    for before in (server_pod("m", f"{FLAG}=0.1"), {"metadata": {}, "spec": server_pod("m", f"{FLAG}=0.1")["spec"]}):
        pod, _ = admitted(annotated(before, **claims))
        assert pod["metadata"]["annotations"] == {"ctagroup.dev/metrics-port": "8000"}


def test_a_pod_that_is_bound_already_has_no_gate() -> None:
    """The API server refuses a gate on it, and the plugin checks the request anyway."""
    before = server_pod("m")
    before["spec"]["nodeName"] = "node-a"
    pod, _ = admitted(before)
    assert "schedulingGates" not in pod["spec"]
    assert pod["metadata"]["labels"] == {LABEL_REQUESTS: "true"}


def test_without_placement_nothing_is_gated() -> None:
    """The default scheduler then binds at once."""
    pod, _ = admitted(server_pod("m"), rules=PodRules(placement=False))
    assert "schedulingGates" not in pod["spec"]


def test_gates_and_labels_of_others_stay() -> None:
    """Ours come beside them."""
    before = server_pod("m")
    before["metadata"]["labels"] = {"app": "x"}
    before["spec"]["schedulingGates"] = [{"name": "example.com/hold"}]
    pod, _ = admitted(before)
    assert pod["metadata"]["labels"] == {"app": "x", LABEL_REQUESTS: "true"}
    assert [gate["name"] for gate in pod["spec"]["schedulingGates"]] == ["example.com/hold", GATE_PLACEMENT]


def test_an_init_container_that_asks_is_seen() -> None:
    """Its pod is labelled and gated; the policies refuse it."""
    before = server_pod("m", groups=None)
    before["spec"]["initContainers"] = [{"name": "warm", "resources": {"limits": {RESOURCE: "8"}}}]
    pod, decided = admitted(before)
    assert pod["metadata"]["labels"] == {LABEL_REQUESTS: "true"}
    assert "asks for no groups" in decided.answer.warnings[0]


def test_a_pod_without_vllm_is_only_labelled_and_gated() -> None:
    """Any CUDA program may hold a slice."""
    pod, decided = admitted(server_pod("--lr=1", image="acme/train:1", name="train"))
    assert args_of(pod) == ["--lr=1"]
    assert pod["metadata"]["labels"] == {LABEL_REQUESTS: "true"}
    assert decided.answer.warnings == []


@pytest.mark.parametrize(
    ("setting", "annotation", "changes"),
    [
        (AlignMode.ON, None, True),
        (AlignMode.ON, "off", False),
        (AlignMode.ON, "report", False),
        (AlignMode.OFF, None, False),
        (AlignMode.OFF, "on", True),
        (AlignMode.REPORT, None, False),
        (AlignMode.ON, "yes", True),
    ],
)
def test_the_annotation_decides_before_the_setting(
    setting: AlignMode,
    annotation: str | None,
    changes: bool,  # noqa: FBT001
) -> None:
    """A value that does not exist is warned of and ignored."""
    before = server_pod("m") if annotation is None else annotated(server_pod("m"), align=annotation)
    pod, decided = admitted(before, rules=PodRules(alignment=setting))
    assert (FLAG in str(args_of(pod))) is changes
    assert any("is none of on, report, off" in one for one in decided.answer.warnings) is (annotation == "yes")


def test_report_says_what_would_be_set() -> None:
    """As a warning to the creator and as an annotation for those who look later."""
    pod, decided = admitted(annotated(server_pod("m"), align="report"))
    wanted = f"{FLAG}={FITS_H100_QUARTER}"
    assert decided.answer.warnings[0].startswith(f"would be set: {wanted}")
    assert pod["metadata"]["annotations"][ANNOTATION_ALIGNMENT_ADVICE].startswith(f"set {wanted}")


def test_a_shell_string_gets_the_flag_to_add() -> None:
    """It is never edited."""
    before = server_pod(command=["sh", "-c", "vllm serve m"], args=[])
    pod, decided = admitted(before)
    assert pod["spec"]["containers"][0]["command"] == ["sh", "-c", "vllm serve m"]
    advice = pod["metadata"]["annotations"][ANNOTATION_ALIGNMENT_ADVICE]
    assert f"add {FLAG}={FITS_H100_QUARTER}" in advice
    assert decided.answer.warnings == [f"not changed: {advice}"]
    assert not admitted(pod)[1].answer.patch


def test_without_known_gpus_nothing_is_guessed() -> None:
    """A slice has no size before the first CTANode; label and gate are added all the same."""
    pod, decided = admitted(server_pod("m"), known_gpus())
    assert args_of(pod) == ["m"]
    assert "no GPU of this cluster is known yet" in decided.answer.warnings[0]
    assert pod["spec"]["schedulingGates"]


def test_variables_that_mislead_are_warned_of() -> None:
    """The article's switch exists in no vLLM, and a GPU is not chosen by its index."""
    env = [{"name": "CUDA_VISIBLE_DEVICES", "value": "1"}, {"name": "VLLM_USE_PORTABLE_LAYER", "value": "0"}]
    _, decided = admitted(server_pod("m", env=env))
    assert [warning.split(":")[0] for warning in decided.answer.warnings[:2]] == [
        "container vllm sets CUDA_VISIBLE_DEVICES",
        "container vllm sets VLLM_USE_PORTABLE_LAYER",
    ]


@pytest.mark.parametrize(("tp", "allowed"), [("1", True), ("2", False), ("$(TP)", True)])
def test_two_ranks_in_a_slice_are_refused_by_the_validating_path(tp: str, allowed: bool) -> None:  # noqa: FBT001
    """With a sentence; the mutating path only warns."""
    before = server_pod("m", "-tp", tp)
    answer = validate(decode(before), PodRules(), H100)
    assert answer.allowed is allowed
    assert ("only one rank runs" in answer.message) is not allowed
    assert any("only one rank" in warning for warning in admitted(before)[1].answer.warnings) is not allowed


@pytest.mark.parametrize("mode", ["report", "off"])
def test_who_wants_no_alignment_is_not_refused(mode: str) -> None:
    """By annotation, as the refusal says, or by the operator's own setting; the creator is still warned."""
    before = annotated(server_pod("m", "-tp=2"), align=mode)
    assert validate(decode(before), PodRules(), H100).allowed
    assert validate(decode(server_pod("m", "-tp=2")), PodRules(alignment=AlignMode(mode)), H100).allowed
    assert any("only one rank" in warning for warning in admitted(before)[1].answer.warnings)


_TEXTS = st.sampled_from(["", "m", "vllm", "serve", FLAG, f"{FLAG}=0.9", "0.1", "sh", "-c", "$(X)", "--", "-tp=2"])


@given(
    command=st.none() | st.lists(_TEXTS, max_size=4),
    args=st.none() | st.lists(_TEXTS, max_size=5),
    groups=st.sampled_from(["0", "8", "32", "128", "256", "12", "x", "500m"]),
    annotations=st.dictionaries(
        st.sampled_from([ANNOTATION_ALIGN, ANNOTATION_ALIGNMENT, ANNOTATION_GROUPS, ANNOTATION_CONTAINER]),
        st.sampled_from(["", "on", "off", "report", "[]", '[{"flag": "x", "to": "y"}]', "vllm", "32"]),
    ),
)
def test_any_pod_has_an_answer_and_a_second_one_changes_nothing(
    command: list[str] | None, args: list[str] | None, groups: str, annotations: dict[str, str]
) -> None:
    """Admission is total, and called again it finds nothing more to do."""
    before = server_pod(groups=groups, command=command, args=args)
    before["metadata"]["annotations"] = annotations
    once, _ = admitted(before)
    twice, decided = admitted(once)
    assert twice == once
    assert not decided.answer.patch
