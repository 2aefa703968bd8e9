"""Manifests that the API server refuses, or that are made to take long: told by kubectl cta align, never overlooked."""

import json
from typing import Any

import pytest
import yaml

from cta_group_cli.align import show_alignment
from cta_group_cli.align_rules import WorkloadAnswer, answers
from cta_group_cli.errors import BadInput
from cta_group_cli.exits import Exit
from cta_group_cli.manifests import read_manifests
from cta_group_core.profiles import profile_named
from cta_group_core.vllm.gpu import GpuKind

_H100 = profile_named("h100-sxm")
_KIND = GpuKind(_H100.product, _H100.memory_total_mib, 1024, _H100.units, limits_memory=True)
_CONTAINER = 'image: vllm/vllm-openai:v0.27.1, args: [m], resources: {limits: {nvidia.com/cta-group: "32"}}'
_TENFOLD = "\n".join(f"k{n + 1}: &k{n + 1} [{', '.join([f'*k{n}'] * 10)}]" for n in range(9))
_BOMB = f"k0: &k0 [1]\n{_TENFOLD}"


def told(text: str) -> list[WorkloadAnswer]:
    """Return the answers for a manifest."""
    return answers(read_manifests(text, "file"), _KIND)


def pod(container: str = "", metadata: str = "") -> str:
    """Return a pod of one vLLM container with more in it."""
    more = f", {container}" if container else ""
    spec = f"{{containers: [{{name: vllm, {_CONTAINER}{more}}}]}}"
    return f"{{apiVersion: v1, kind: Pod, metadata: {{name: a, {metadata}}}, spec: {spec}}}"


def refusals(text: str) -> list[str]:
    """Return what is refused in a manifest of one pod."""
    (answer,) = told(text)
    return answer.refused


def test_a_pod_without_mistakes_is_refused_nothing() -> None:
    """What the others below are compared with."""
    assert refusals(pod('env: [{name: A, value: "1"}, {name: B}]', "labels: {a: b, c: null}")) == []


@pytest.mark.parametrize(
    ("container", "sentence"),
    [
        ("env: {A: b}", "env is {'A': 'b'} and no list of objects"),
        ("env: [{name: PORT, value: 8000}]", "env PORT has the value 8000 and no text: write it in quotes"),
        ("env: [{name: A, value: 0}]", "env A has the value 0 and no text"),
        ("env: [{name: A, value: no}]", "env A has the value False and no text"),
        ("ports: 8000", "ports is 8000 and no list of objects"),
        ("volumeMounts: [data]", "volumeMounts is ['data'] and no list of objects"),
        ("envFrom: {configMapRef: {name: c}}", "and no list of objects: begin each with a dash"),
        ("env: [{name: y, value: a}]", "env has the name True and no text: write it in quotes"),
        (
            "env: [{name: A, valueFrom: {secretKeyRef: {name: x, key: y}}}]",
            "env A has the secretKeyRef.key True and no text: write it in quotes",
        ),
        ("command: vllm serve m", "command is 'vllm serve m' and no list of texts"),
        ("command: [sleep, 1e3]", "command[1] is 1000.0 and no text: write it in quotes"),
    ],
)
def test_a_container_that_the_api_server_refuses_is_refused(container: str, sentence: str) -> None:
    """Also one whose arguments say no more that it is vLLM, since it asks for groups."""
    assert any(f"container vllm: {sentence}" in one or sentence in one for one in refusals(pod(container)))


@pytest.mark.parametrize(
    ("metadata", "sentence"),
    [
        ("annotations: {ctagroup.dev/groups: 32}", "annotation ctagroup.dev/groups is 32 and no text"),
        ("annotations: {ctagroup.dev/align: on}", "annotation ctagroup.dev/align is True and no text"),
        ("labels: {version: 1.0}", "label version is 1.0 and no text: write it in quotes"),
        ("labels: [a]", "labels are ['a'] and no mapping of texts"),
    ],
)
def test_a_label_or_an_annotation_without_quotes_is_refused(metadata: str, sentence: str) -> None:
    """The API server takes texts only, and says which it did not get when it is too late for a repository's checks."""
    assert any(sentence in one for one in refusals(pod(metadata=metadata)))


@pytest.mark.parametrize(
    "word", ["2026-11-30", "2026-11-30T10:00:00Z", "1:30", "=", "1.2.3", "0x", "yy", "~/a", "1:30.5"]
)
def test_words_that_kubernetes_reads_as_texts_need_no_quotes(word: str) -> None:
    """Python's own parser makes a date of some of them."""
    assert refusals(pod(f"command: [vllm, serve, {word}]", f"labels: {{a: {word}}}")) == []


@pytest.mark.parametrize(
    "word", ["1", "-1", "0x1F", "010", "1.5", ".5", "1e3", "1_000", ".inf", ".NaN", "true", "off", "y", "N", "0o10"]
)
def test_words_that_kubernetes_reads_as_something_else_need_quotes(word: str) -> None:
    """In arguments they are the most common mistake."""
    assert any("write it in quotes" in one for one in refusals(pod(f"command: [vllm, serve, m, --port, {word}]")))


@pytest.mark.parametrize("containers", ["[]", "[null]", "[vllm]", "{name: vllm}", "vllm", "[{name: a}, 5]"])
@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("v1, kind: Pod", "spec: {%s}"),
        ("apps/v1, kind: Deployment", "spec: {template: {spec: {%s}}}"),
        ("batch/v1, kind: CronJob", "spec: {jobTemplate: {spec: {template: {spec: {%s}}}}}"),
    ],
)
def test_containers_that_are_none_are_refused(kind: str, spec: str, containers: str) -> None:
    """A manifest with a dash forgotten was said to describe no pods, and that all is fine."""
    text = f"{{apiVersion: {kind}, metadata: {{name: a, namespace: ns}}, {spec % f'containers: {containers}'}}}"
    (answer,) = told(text)
    assert (answer.namespace, answer.name) == ("ns", "a")
    assert "containers must be a list of one or more containers" in answer.refused[0]


@pytest.mark.parametrize("kind", ["v1, kind: ConfigMap", "example.com/v1, kind: Deployment", "apps/v1, kind: Other"])
def test_kinds_of_others_may_mean_something_else_by_containers(kind: str) -> None:
    """Their shapes are not known."""
    assert told(f"{{apiVersion: {kind}, spec: {{containers: 5, template: {{spec: {{containers: 5}}}}}}}}") == []


@pytest.mark.parametrize(
    "text",
    [
        _BOMB,
        "x: &a [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a, *a]",
        "x: &a {k: *a, spec: {containers: [{name: vllm, args: [*a]}]}}",
        "l: &l " + "x" * 10_000 + "\nx: [" + ", ".join(["*l"] * 5000) + "]",
    ],
)
def test_aliases_without_end_are_not_followed(text: str) -> None:
    """Following them takes hours, printing them all the memory."""
    with pytest.raises(BadInput, match="file: document 1 repeats itself by aliases without end"):
        read_manifests(f"kind: Pod\n{text}", "file")


def test_aliases_as_people_write_them_are_followed() -> None:
    """The same container for two pods, and a mapping merged into another."""
    text = f"""
kind: List
c: &c {{name: vllm, {_CONTAINER}}}
items:
- {{kind: Pod, metadata: {{name: a}}, spec: {{containers: [*c]}}}}
- {{kind: Pod, metadata: {{name: b}}, spec: {{containers: [{{<<: *c, name: other}}]}}}}
"""
    assert [(one.name, one.container, one.groups) for one in told(text)] == [("a", "vllm", 32), ("b", "other", 32)]


@pytest.mark.parametrize("content", [_BOMB, "x: &a {b: *a}", "x: {2026-01-01: a}", "x: &a [*a]", "- a", "\t", "a: ''"])
def test_a_config_file_of_any_content_is_read_or_said_to_be_unseen(content: str) -> None:
    """What vLLM itself could not make arguments of tells nothing."""
    config_map = {"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"c.yaml": content}}
    server = yaml.safe_load(pod())
    container = server["spec"]["containers"][0]
    container |= {"args": ["m", "--config", "/c/c.yaml"], "volumeMounts": [{"name": "v", "mountPath": "/c"}]}
    server["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "c"}}]
    (answer,) = told(yaml.safe_dump_all([config_map, server]))
    assert answer.read["--model"] == "m"
    assert json.dumps(answer.as_json())


def test_lists_as_the_api_serves_them_are_read() -> None:
    """Items of a PodList do not repeat their kind; a list may hold lists."""
    item = pod().replace("apiVersion: v1, kind: Pod, ", "")
    for text in (f"{{kind: PodList, items: [{item}]}}", f"{{kind: List, items: [{{kind: List, items: [{pod()}]}}]}}"):
        (answer,) = told(text)
        assert (answer.kind, answer.name, answer.container) == ("Pod", "a", "vllm")


def test_a_mistake_ends_with_the_status_of_findings(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A repository's checks fail there."""
    file = tmp_path / "a.yaml"
    file.write_text(
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {containers: {}}}}}"
    )
    assert (
        show_alignment(str(file), "h100-sxm", reserve_mib=1024, resource="nvidia.com/cta-group", output="json")
        is Exit.FINDINGS
    )
    (found,) = json.loads(capsys.readouterr().out)
    assert found["refused"]
