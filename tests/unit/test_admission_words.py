"""How changed words get into a pod, and what is read of its variables."""

import json
from typing import Any

import pytest

from admission_pods import ALSO_SET, FITS_H100_QUARTER, FLAG, admitted, args_of, server_pod
from cta_group_core.names import ANNOTATION_ALIGNMENT_ADVICE

Json = dict[str, Any]


def test_a_patch_touches_no_word_that_stays() -> None:
    """Words are replaced and added one by one; what another webhook adds in between is not lost."""
    _, decided = admitted(server_pod("m", f"{FLAG}=0.9", "--port=1"))
    paths = [(one["op"], one["path"]) for one in decided.answer.patch if "/args" in one["path"]]
    args = "/spec/containers/0/args"
    assert paths == [("replace", f"{args}/1"), *[("add", f"{args}/-")] * len(ALSO_SET)]


def test_words_go_before_a_bare_double_dash() -> None:
    """Behind it they would be no flags."""
    pod, _ = admitted(server_pod("--port=1", "--", "m"))
    assert args_of(pod) == ["--port=1", f"{FLAG}={FITS_H100_QUARTER}", *ALSO_SET, "--", "m"]


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        (None, [{"name": "VLLM_ADDITIONAL_ARGS", "value": "WORDS"}]),
        ([], [{"name": "VLLM_ADDITIONAL_ARGS", "value": "WORDS"}]),
        (
            [{"name": "A", "value": "b"}, {"name": "VLLM_ADDITIONAL_ARGS", "value": "--port 1"}],
            [{"name": "A", "value": "b"}, {"name": "VLLM_ADDITIONAL_ARGS", "value": "--port 1 WORDS"}],
        ),
        ([{"name": "VLLM_ADDITIONAL_ARGS", "valueFrom": {"configMapKeyRef": {}}}], None),
    ],
)
def test_kserve_s_variable_gets_the_words(env: list[Json] | None, expected: list[Json] | None) -> None:
    """Its script puts them behind its own flags; where the value comes from elsewhere the pod stays as it is."""
    script = 'eval "exec vllm serve /mnt/models --port 8000 ${VLLM_ADDITIONAL_ARGS}"'
    before = server_pod(command=["bash", "-c", script], args=None)
    if env is not None:
        before["spec"]["containers"][0]["env"] = env
    pod, decided = admitted(before)
    container = pod["spec"]["containers"][0]
    # A folder may hold a model that needs whole prompts, so its tokens a step are left alone.
    also = [one for one in ALSO_SET if not one.startswith("--max-num-batched-tokens")]
    words = " ".join([f"{FLAG}={FITS_H100_QUARTER}", *also])
    assert container["command"] == ["bash", "-c", script]
    if expected is None:
        assert container["env"] == env
        assert ANNOTATION_ALIGNMENT_ADVICE in pod["metadata"]["annotations"]
    else:
        assert container["env"] == json.loads(json.dumps(expected).replace("WORDS", words))
    assert not admitted(pod)[1].answer.patch
    assert bool(decided.answer.warnings)


def test_an_argument_out_of_a_variable_is_read() -> None:
    """What kubelet puts in is known from the pod, unless a Secret holds it."""
    env = [{"name": "UTIL", "value": "0.1"}, {"name": "HIDDEN", "valueFrom": {"secretKeyRef": {}}}]
    known, _ = admitted(server_pod("m", f"{FLAG}=$(UTIL)", env=env))
    hidden, _ = admitted(server_pod("m", f"{FLAG}=$(HIDDEN)", env=env))
    assert args_of(known) == ["m", f"{FLAG}=$(UTIL)"]
    assert "annotations" not in known["metadata"]
    assert "kubelet fills it in" in hidden["metadata"]["annotations"][ANNOTATION_ALIGNMENT_ADVICE]
