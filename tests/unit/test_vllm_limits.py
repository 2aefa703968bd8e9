"""Words that are made to take long, to break what reads them, or to be repeated where there is no room for them."""

import json
from typing import Any

import pytest

from admission_pods import H100, admitted, annotated, args_of, decode, server_pod
from cta_group_core.names import ANNOTATION_ALIGNMENT, LABEL_REQUESTS
from cta_group_core.vllm.arguments import read_arguments
from cta_group_core.vllm.detect import ContainerFacts, detect
from cta_group_core.vllm.model_size import ModelSize, size_of
from cta_group_core.vllm.reading import reading_of
from cta_group_core.vllm.shell import run_through
from cta_group_core.vllm.surroundings import NOTHING, Surroundings, expand_references
from cta_group_operator.admission.decision import validate
from cta_group_operator.admission.review import BadReview, read_pod, read_review
from cta_group_operator.admission.settings import PodRules

Json = dict[str, Any]

LONG = 200_000
HUGE = "9" * 4299
MOST_BYTES = 256 * 1024
SHAPE = {
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "vocab_size": 128256,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
}


def in_shell(script: str) -> Json:
    """Return a pod whose server is started by a shell."""
    pod = server_pod()
    pod["spec"]["containers"][0] |= {"command": ["bash", "-c", script], "args": None}
    return pod


@pytest.mark.parametrize("unit", ["$(", "$", "٣", "3", "8x", "--", ".", "vllm ", "${", "'", "\\", "\x00", "7B-"])
@pytest.mark.parametrize("before", ["", "--gpu-memory-utilization=", "--max-model-len=", "--"])
def test_a_long_word_is_read_at_once_and_never_makes_the_pod_too_large(before: str, unit: str) -> None:
    """Some took hours, in which nobody else's pod was answered; others were repeated in an annotation, whole."""
    pod, _ = admitted(server_pod(before + unit * (LONG // len(unit)), "--max-num-seqs=4"))
    assert pod["metadata"]["labels"] == {LABEL_REQUESTS: "true"}
    assert sum(len(text.encode()) for text in pod["metadata"].get("annotations", {}).values()) < 10_000


def test_a_long_value_that_is_changed_is_told_by_its_beginning() -> None:
    """The annotation says what was there, in as many characters as a person reads."""
    pod, decided = admitted(server_pod("m", f"--gpu-memory-utilization=0.9{'0' * LONG}"))
    assert args_of(pod)[1] == "--gpu-memory-utilization=0.207"
    told = json.loads(pod["metadata"]["annotations"][ANNOTATION_ALIGNMENT])[0]["from"]
    assert told.startswith("0.9000")
    assert told.endswith("...")
    assert max(map(len, decided.answer.warnings)) < 1000


@pytest.mark.parametrize("own_bytes", [MOST_BYTES - 1000, MOST_BYTES - 10, MOST_BYTES])
def test_annotations_that_are_nearly_full_do_not_cost_the_pod_its_admission(own_bytes: int) -> None:
    """What is told there is left out then; the arguments are changed all the same."""
    before = server_pod("m")
    before["metadata"]["annotations"] = {"a": "x" * (own_bytes - 1)}
    pod, decided = admitted(before)
    annotations = pod["metadata"]["annotations"]
    assert sum(len(key) + len(text) for key, text in annotations.items()) <= MOST_BYTES
    assert (ANNOTATION_ALIGNMENT in annotations) is (own_bytes == MOST_BYTES - 1000)
    assert "--gpu-memory-utilization=0.207" in args_of(pod)
    assert decided.answer.warnings[0] == "set --gpu-memory-utilization=0.207 (was not given)"


@pytest.mark.parametrize(
    "words",
    [
        [f"--kv-cache-memory-bytes={HUGE}k"],
        [f"--kv-cache-memory-bytes={HUGE}99K"],
        [f"--max-num-seqs={HUGE}"],
        [f"--max-num-batched-tokens={HUGE}99M", "--max-num-batched-tokens=1"],
        [f"--max-model-len={HUGE}{HUGE}K"],
        ["-tp", HUGE, "-pp", HUGE, "-dp", HUGE],
    ],
)
def test_a_number_without_end_is_unknown_and_can_be_told(words: list[str]) -> None:
    """Python prints no number of more than 4300 digits."""
    arguments = read_arguments(None, ["m-8B", *words])
    assert json.dumps(reading_of(arguments))
    pod, decided = admitted(server_pod("m-8B", *words))
    assert pod["metadata"]["labels"] == {LABEL_REQUESTS: "true"}
    assert decided.answer.warnings
    assert validate(decode(server_pod("m-8B", *words)), PodRules(), H100).allowed


@pytest.mark.parametrize("count", [f"{HUGE}B", f"{HUGE}99x7B", f"{'9' * 290}B", "8x" * LONG, f"1.{HUGE}B", "٣B"])
def test_a_count_in_a_name_that_no_model_has_says_nothing(count: str) -> None:
    """It overflowed, and the pod came in as it was."""
    assert size_of(read_arguments(None, [f"acme/m-{count}"])) is None


@pytest.mark.parametrize("key", [*SHAPE, "head_dim", "max_position_embeddings", "num_experts"])
@pytest.mark.parametrize("value", [float("inf"), float("nan"), 10**4000, "x", [1], {}, -1])
def test_a_size_that_no_model_has_is_not_reckoned_with(key: str, value: object) -> None:
    """A wrong config.json tells nothing, or nothing that is taken for exact and cannot be printed."""
    size = size_of(read_arguments(None, ["/models/m"]), {**SHAPE, key: value})
    assert size is None or str(size.weights_mib)


def exact_size(*words: str) -> ModelSize:
    """Return the size of a model whose config.json is at hand."""
    size = size_of(read_arguments(None, ["/models/m", *words]), SHAPE)
    assert size is not None
    return size


def test_weights_that_the_host_holds_take_nothing_of_the_slice() -> None:
    """With --cpu-offload-gb a model that is larger than the slice starts in it."""
    whole = exact_size()
    part = exact_size("--cpu-offload-gb", "10")
    assert whole.exact
    assert part.exact
    assert whole.weights_mib - part.weights_mib == 10 * 1024
    assert "--cpu-offload-gb=10" in part.known
    assert exact_size("--cpu-offload-gb=100").weights_mib == 0


@pytest.mark.parametrize(
    "word", ["--hf-overrides={}", "--offload-group-size=2", "--cpu-offload-gb=some", "--cpu-offload-gb=inf"]
)
def test_a_flag_that_makes_another_model_of_it_leaves_nothing_exact(word: str) -> None:
    """What is not exact is a reason to warn, and none to refuse."""
    assert not exact_size(word).exact


@pytest.mark.parametrize(
    "script", ["A=(" * 5000, "${A:-" * 3000 + "}" * 3000, "A=(" * 3000 + ")" * 3000, "eval " * 3000, "$(" * 8000]
)
def test_what_is_nested_deeper_than_anybody_writes_is_said_to_be_unread(script: str) -> None:
    """Reading ends in words, whatever is sent."""
    found = run_through(f"{script}\nvllm serve m", NOTHING)
    assert found.trouble or found.commands
    pod, _ = admitted(in_shell(f"vllm serve m {script}"))
    assert pod["metadata"]["labels"] == {LABEL_REQUESTS: "true"}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(", "$("),
        ("$($($(A)", "$($($(A)"),
        ("$$(A)", "$(A)"),
        ("$(A)$$$(", "1$$("),
        ("$(A)$(A", "1$(A"),
        (")$$", ")$"),
        ("$$$(A)", "$1"),
    ],
)
def test_references_without_an_end_are_none(text: str, expanded: str) -> None:
    """As kubelet reads them."""
    assert expand_references(text, {"A": "1"}).text == expanded


def test_of_two_variables_with_one_name_the_last_is_added_to() -> None:
    """It is the one that counts, and the one before may take its value from elsewhere, where no text may be beside."""
    before = in_shell("vllm serve m $VLLM_ADDITIONAL_ARGS")
    name = "VLLM_ADDITIONAL_ARGS"
    elsewhere = {"name": name, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    before["spec"]["containers"][0]["env"] = [elsewhere, {"name": name, "value": "--port=1"}]
    pod, _ = admitted(before)
    first, last = pod["spec"]["containers"][0]["env"]
    assert first == elsewhere
    assert last["value"].startswith("--port=1 --gpu-memory-utilization=0.207")


@pytest.mark.parametrize("word", ["-pcp=2", "--prefill-context-parallel-size=2", "--prefill-context=2"])
def test_ranks_that_share_a_prompt_need_a_gpu_each(word: str) -> None:
    """World size is tensor x pipeline x prefill context."""
    answer = validate(decode(server_pod("m", word)), PodRules(), H100)
    assert not answer.allowed
    assert "vLLM asks for prefill context parallel size 2" in answer.message
    assert validate(decode(server_pod("m", word, groups=256)), PodRules(), H100).allowed


@pytest.mark.parametrize("depth", [2000, 100_000])
def test_a_question_nested_too_deeply_is_refused_in_words(depth: int) -> None:
    """Also in a field that nobody reads, such as managedFields."""
    deep = b"[" * depth + b"]" * depth
    body = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","kind":{"kind":"Pod"},'
    with pytest.raises(BadReview, match="recursion"):
        read_pod(read_review(body + b'"object":{"metadata":{"managedFields":' + deep + b'},"spec":{}}}}'))


def test_an_annotation_of_ours_with_a_long_text_is_no_more_of_a_burden() -> None:
    """Whatever is claimed there."""
    text = "$(" * (LONG // 2)
    names = ("container", "align", "budget", "shape", "access-pattern", "metrics_port", "multi-container", "groups")
    pod = annotated(server_pod("m"), **dict.fromkeys(names, text))
    assert not validate(decode(pod), PodRules(), H100).allowed
    _, decided = admitted(annotated(server_pod("m"), container=text))
    assert decided.answer.warnings


def test_values_of_variables_are_bounded_too() -> None:
    """A container's environment is as long as its arguments may be."""
    around = Surroundings({"A": "$(" * LONG, "VLLM_ADDITIONAL_ARGS": "٣" * LONG})
    words = ("vllm serve $A $VLLM_ADDITIONAL_ARGS",)
    found = detect([ContainerFacts("vllm", "vllm/vllm-openai", ("sh", "-c"), words, surroundings=around)], {}).found
    assert found is not None


@pytest.mark.parametrize(
    "tag", ["6.4.1", "25.09.1-py3", "2026.11.30", "v٢.٢٧.٣", f"v0.{HUGE}9.1", "v0.27", "nightly-0.27.1"]
)
def test_a_tag_that_is_no_release_of_vllm_is_told_as_none(tag: str) -> None:
    """A vendor's own number is not shown as vLLM's version, and no tag breaks what compares releases."""
    found = detect([ContainerFacts("vllm", f"example.com/vllm:{tag}", args=("m",))], {}).found
    assert found is not None
    assert found.version is None
    assert admitted(server_pod("m", image=f"example.com/vllm:{tag}"))[0]["metadata"]["labels"]
