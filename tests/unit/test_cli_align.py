"""``kubectl cta align``: what is printed, and how it ends."""

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cta_group_cli.align_rules import answers
from cta_group_cli.cli import main
from cta_group_cli.errors import BadInput
from cta_group_cli.manifests import read_manifests
from cta_group_core.profiles import profile_named
from cta_group_core.vllm.gpu import GpuKind

KEYS = "kind namespace name container engine version argvForm groups read edits refused warnings".split()  # noqa: SIM905
GOOD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: qwen, namespace: team-a}
spec:
  template:
    spec:
      containers:
      - name: vllm
        image: vllm/vllm-openai:v0.27.1
        args: [Qwen/Qwen3-4B, --max-model-len, 8k]
        resources: {limits: {nvidia.com/cta-group: 32}}
"""
PROXY = """
kind: Pod
metadata: {name: proxy}
spec: {containers: [{name: proxy, image: envoy}]}
"""
REFUSED = GOOD.replace("--max-model-len, 8k", '"-tp=2"').replace("qwen,", "two-ranks,")


def aligned(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str, *words: str
) -> tuple[int, str, str]:
    """Run the command on standard input; return status and what was printed."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode(errors="surrogateescape"))))
    status = main(["align", "-f", "-", "--gpu", "h100-sxm", *words])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


@pytest.mark.parametrize(
    ("text", "status", "told"),
    [
        ("many", 1, "annotation ctagroup.dev/groups: 'many' is not a whole number above 0"),
        ("32", 0, "32 groups"),
    ],
)
def test_the_annotation_about_groups(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str, status: int, told: str
) -> None:
    """Text that is no number is refused here as the policy of the chart refuses its pods."""
    asked = f"    metadata: {{annotations: {{ctagroup.dev/groups: {text!r}}}}}\n    spec:\n      containers"
    manifest = GOOD.replace("    spec:\n      containers", asked).replace(
        "resources: {limits: {nvidia.com/cta-group: 32}}", ""
    )
    ended, out, _ = aligned(capsys, monkeypatch, manifest)
    assert (ended, told in out) == (status, True), out


def test_json_has_exactly_the_public_keys(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One object for each workload, in the order of the documents."""
    status, out, _ = aligned(capsys, monkeypatch, f"{GOOD}---\n{PROXY}---\n", "-o", "json")
    qwen, proxy = json.loads(out)
    assert status == 0
    assert list(qwen) == list(proxy) == KEYS
    assert {key: qwen[key] for key in KEYS[:9]} == {
        "kind": "Deployment",
        "namespace": "team-a",
        "name": "qwen",
        "container": "vllm",
        "engine": "vllm",
        "version": "0.27.1",
        "argvForm": "list",
        "groups": 32,
        "read": {"--model": "Qwen/Qwen3-4B", "--max-model-len": 8000},
    }
    assert [set(edit) for edit in qwen["edits"]] == [{"flag", "from", "to", "why"}] * 3
    assert (qwen["edits"][0]["from"], qwen["edits"][0]["to"]) == (None, "0.207")
    assert (proxy["namespace"], proxy["engine"], proxy["groups"], proxy["edits"]) == ("default", None, None, [])


def test_yaml_says_the_same(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """For people who read it with their eyes."""
    _, as_json, _ = aligned(capsys, monkeypatch, GOOD, "-o", "json")
    _, as_yaml, _ = aligned(capsys, monkeypatch, GOOD, "-o", "yaml")
    assert yaml.safe_load(as_yaml) == json.loads(as_json)


def test_text_tells_what_is_read_set_refused_and_warned_of(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line for each, below a line for the workload."""
    text = GOOD.replace("resources:", "env: [{name: CUDA_VISIBLE_DEVICES, value: '0'}]\n        resources:")
    status, out, _ = aligned(capsys, monkeypatch, f"{text}---\n{REFUSED}---\n{PROXY}")
    assert status == 1
    lines = out.splitlines()
    assert lines[0] == "deployment/qwen in team-a: container vllm, vLLM 0.27.1, arguments as list, 32 groups"
    assert lines[1] == "  read     --model=Qwen/Qwen3-4B --max-model-len=8000"
    assert lines[2].startswith("  set      --gpu-memory-utilization=0.207 (was not given): at most 0.207")
    assert any(line.startswith("  warning  container vllm sets CUDA_VISIBLE_DEVICES") for line in lines)
    assert any(line.startswith("  refused  vLLM asks for tensor parallel size 2") for line in lines)
    assert lines[-1] == "pod/proxy in default: no groups, no vLLM"


def test_a_file_is_read_as_well(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """By its path."""
    file = tmp_path / "app.yaml"
    file.write_text(GOOD)
    assert main(["align", "-f", str(file), "--gpu", "h200"]) == 0
    assert "--gpu-memory-utilization=0.2257" in capsys.readouterr().out


def test_nothing_to_say_of_an_input_without_pods(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty list for programs, a sentence for people."""
    assert aligned(capsys, monkeypatch, "kind: Service\n", "-o", "json")[:2] == (0, "[]\n")
    assert aligned(capsys, monkeypatch, "---\n")[:2] == (0, "standard input describes no pods\n")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", "standard input is not YAML"),
        ("{{ .Values.x }}", "standard input"),
        ("just text", "document 1 is no Kubernetes object"),
        ("kind: Pod\n---\n- 1\n", "document 2 is no Kubernetes object"),
        ("kind: List\nitems: [1]\n", "items of a List must be objects"),
        ("\udcff\udcfe", "no text in UTF-8"),
        ("kind: Pod\nx: \x00", "standard input is not YAML"),
    ],
)
def test_an_input_that_cannot_be_read_ends_with_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str, told: str
) -> None:
    """In one sentence, with nothing on standard output."""
    status, out, err = aligned(capsys, monkeypatch, text, "-o", "json")
    assert (status, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1


def test_a_missing_file_and_an_unknown_gpu_end_with_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Each names what was given."""
    assert main(["align", "-f", str(tmp_path / "none.yaml"), "--gpu", "h200"]) == 2
    assert "none.yaml cannot be read: No such file" in capsys.readouterr().err
    file = tmp_path / "app.yaml"
    file.write_text(GOOD)
    assert main(["align", "-f", str(file), "--gpu", "h900"]) == 2
    assert "h900" in capsys.readouterr().err


def answered(text: str) -> list[dict[str, Any]]:
    """Return the answers for an H100."""
    profile = profile_named("h100-sxm")
    kind = GpuKind(profile.product, profile.memory_total_mib, 1024, profile.units, limits_memory=True)
    return [one.as_json() for one in answers(read_manifests(text, "x"), kind)]


LIMIT = "limits: {nvidia.com/cta-group: 32}"
ASKS_8 = "resources: {limits: {nvidia.com/cta-group: 8}}"
SIDECAR = f"name: i, restartPolicy: Always, {ASKS_8}"


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [
        (LIMIT, f"{LIMIT}, requests: {{nvidia.com/cta-group: 16}}", "both must be"),
        (LIMIT, LIMIT.replace("limits", "requests"), "its limit is not set"),
        ("      containers:", f"      initContainers: [{{name: i, {ASKS_8}}}]\n      containers:", "init container i"),
        ("      containers:", f"      initContainers: [{{{SIDECAR}}}]\n      containers:", "containers vllm, i ask"),
        ("      - name: vllm", f"      - {{name: b, {ASKS_8}}}\n      - name: vllm", "containers b, vllm"),
        ("args: [Qwen/Qwen3-4B, --max-model-len, 8k]", "args: vllm serve m", "no list of texts"),
        ("nvidia.com/cta-group: 32", "nvidia.com/cta-group: 16", ""),
    ],
)
def test_what_the_policies_refuse_is_refused_here(before: str, after: str, refused: str) -> None:
    """Sizes, limits, init containers, several containers, words that are no texts."""
    assert before in GOOD
    (answer,) = answered(GOOD.replace(before, after))
    assert bool(answer["refused"]) is bool(refused)
    assert refused in " ".join(answer["refused"])


def test_a_sidecar_that_asks_is_accepted_as_the_policies_do() -> None:
    """It runs beside the containers, so it counts as one: two of them are accepted by the annotation."""
    accepted = 'metadata: {annotations: {ctagroup.dev/multi-container: "true"}}'
    (answer,) = answered(
        GOOD.replace("    spec:\n", f"    {accepted}\n    spec:\n      initContainers: [{{{SIDECAR}}}]\n")
    )
    assert answer["refused"] == []


def test_a_slice_in_which_nothing_starts_is_refused() -> None:
    """On the GPU that is asked about."""
    profile = profile_named("t4")
    kind = GpuKind(profile.product, profile.memory_total_mib, 1024, profile.units, limits_memory=True)
    (answer,) = answers(read_manifests(GOOD.replace("cta-group: 32", "cta-group: 8"), "x"), kind)
    assert ["ask for more groups" in one for one in answer.refused] == [True]
    assert not any("ask for more groups" in one for one in answer.warnings)


_SCALARS = st.none() | st.booleans() | st.integers(-2, 99) | st.sampled_from(["", "vllm", "serve", "$(A)", "-tp=2"])
_OF_PODS = ["containers", "spec", "template", "metadata", "annotations", "volumes", "items", "ctagroup.dev/groups"]
_OF_CONTAINERS = ["name", "image", "command", "args", "env", "envFrom", "resources", "limits", "ports", "livenessProbe"]
_DEEPER = ["value", "valueFrom", "configMapKeyRef", "volumeMounts", "mountPath", "configMap", "projected", "sources"]
_NAMES = st.sampled_from([*_OF_PODS, *_OF_CONTAINERS, *_DEEPER, "containerPort", "nvidia.com/cta-group"])
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4), max_leaves=20
)


@given(st.dictionaries(_NAMES, _VALUES, max_size=4), _VALUES)
def test_any_object_has_an_answer_or_a_refusal(fields: dict[str, Any], container: Any) -> None:
    """Whatever stands where a container, a list or a text should be."""
    pod = {"kind": "Pod", "spec": {**fields, "containers": [{"name": "vllm", "image": "vllm/vllm-openai:v0.25.0"}]}}
    if isinstance(container, dict):
        pod["spec"]["containers"].append(container)  # type: ignore[index]
    for document in (pod, {"kind": "Deployment", **fields}):
        try:
            found = answered(json.dumps(document))
        except BadInput:
            continue
        assert all(list(one) == KEYS for one in found)


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    """An error of any other kind would end as a crash."""
    with contextlib.suppress(BadInput):
        answered(text)
