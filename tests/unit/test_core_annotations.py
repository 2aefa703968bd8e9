"""Annotations that people write: each that nobody can read is told, with what to write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission_pods import admitted, annotated, server_pod
from cta_group_cli.align_rules import answers
from cta_group_cli.manifests import read_manifests
from cta_group_core import names
from cta_group_core.annotations import OF_OTHERS, OF_USERS, unreadable
from vllm_fixtures import h100


def test_every_annotation_of_the_project_is_known() -> None:
    """A new one is put where its writers are told of mistakes, or among those that are not people's."""
    declared = {text for name, text in vars(names).items() if name.startswith("ANNOTATION_")}
    assert declared == OF_USERS.keys() | OF_OTHERS
    assert not OF_USERS.keys() & OF_OTHERS


@pytest.mark.parametrize(
    ("name", "good", "bad", "allowed"),
    [
        ("groups", "32", "many", "a whole number above 0"),
        ("align", "report", "yes", "on, report, off"),
        ("budget", "ttft=400ms,itl-p99=30ms", "fast", "write it like ttft=400ms"),
        ("metrics-port", "8000", "web", "is no port (1 to 65535)"),
        ("access-pattern", "bandwidth-bound", "heavy", "latency-sensitive, bandwidth-bound"),
        ("shape", "4,2,1", "4x2", "write one to three whole numbers above 0"),
        ("multi-container", "true", "yes", "true, false"),
    ],
)
def test_what_cannot_be_read_is_told_with_what_to_write(name: str, good: str, bad: str, allowed: str) -> None:
    """And what can be is not mentioned."""
    full = f"ctagroup.dev/{name}"
    assert unreadable({full: good}) == {}
    (told,) = unreadable({full: bad, "other.dev/budget": "fast"}).values()
    assert told.startswith(f"annotation {full}: '{bad}'")
    assert allowed in told


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("budgets", "perhaps ctagroup.dev/budget is meant"),
        ("group", "perhaps ctagroup.dev/groups is meant"),
        ("zzz", "there are groups, container, align, budget, metrics-port, access-pattern, shape, multi-container"),
    ],
)
def test_a_name_that_does_not_exist_is_told_with_those_that_do(name: str, told: str) -> None:
    """A misspelled one would do nothing, and nobody would know."""
    assert unreadable({f"ctagroup.dev/{name}": "x"}) == {
        f"ctagroup.dev/{name}": f"annotation ctagroup.dev/{name} is not known; {told}"
    }


def test_what_the_operator_writes_is_nobody_s_mistake() -> None:
    """A pod that is made from another one's manifest carries it along."""
    assert unreadable(dict.fromkeys(OF_OTHERS, "anything")) == {}


@given(st.dictionaries(st.sampled_from([*OF_USERS, "ctagroup.dev/x", "a/b"]), st.text(max_size=5000)))
def test_any_text_has_an_answer(annotations: dict[str, str]) -> None:
    """One line of bounded length for each, however long or odd the text is."""
    for name, told in unreadable(annotations).items():
        assert f"annotation {name}" in told
        assert len(told) < 6000
        assert told.isprintable()


def test_the_webhook_warns_of_each_and_the_pod_comes_in() -> None:
    """But for a wrong shape, for which it is refused in the same words."""
    wrong = {"budget": "fast", "access-pattern": "heavy", "multi-container": "yes", "shape": "4x2"}
    _, decided = admitted(annotated(server_pod("m"), **wrong))
    told = [one for one in decided.answer.warnings if one.startswith("ignored: annotation ctagroup.dev/")]
    named = [one.removeprefix("ignored: annotation ctagroup.dev/").partition(":")[0] for one in told]
    assert (decided.answer.allowed, named) == (True, ["access-pattern", "budget", "multi-container"])
    assert (
        admitted(annotated(server_pod("m"), budget="ttft=1s"))[1].answer.warnings
        == admitted(server_pod("m"))[1].answer.warnings
    )


def test_align_warns_of_each() -> None:
    """What it refuses a pod for is not said twice; the budget counts where the workload has it."""
    text = """
kind: Deployment
metadata: {name: web, annotations: {ctagroup.dev/budget: "ttft=1s", ctagroup.dev/alig: "off"}}
spec:
  template:
    metadata:
      annotations:
        {ctagroup.dev/budget: fast, ctagroup.dev/align: "yes", ctagroup.dev/groups: many, ctagroup.dev/shape: 4x2}
    spec: {containers: [{name: main, image: a, resources: {limits: {nvidia.com/cta-group: 32}}}]}
"""
    (answer,) = answers(read_manifests(text, "text"), h100())
    told = [one for one in answer.warnings if one.startswith("ignored: ")]
    assert told == [
        "ignored: annotation ctagroup.dev/alig is not known; perhaps ctagroup.dev/align is meant",
        "ignored: annotation ctagroup.dev/align: 'yes' is none of on, report, off",
        "ignored: annotation ctagroup.dev/groups: 'many' is not a whole number above 0",
    ]
    assert [one for one in answer.refused if "ctagroup.dev/shape: '4x2' is no cluster shape" in one]


@pytest.mark.parametrize(("kind", "warned"), [("Deployment", True), ("InferenceService", False)])
def test_align_warns_of_one_where_nobody_looks(kind: str, warned: bool) -> None:  # noqa: FBT001 - a parameter
    """A Deployment's own annotations do not come to its pods; what a serving stack copies is not known here."""
    text = f"""
kind: {kind}
metadata: {{name: web, annotations: {{ctagroup.dev/shape: "2", ctagroup.dev/budget: "ttft=1s"}}}}
spec:
  template:
    spec: {{containers: [{{name: main, image: a, resources: {{limits: {{nvidia.com/cta-group: 32}}}}}}]}}
"""
    (answer,) = answers(read_manifests(text, "text"), h100())
    told = [one for one in answer.warnings if one.startswith("ignored: ")]
    words = "ignored: annotation ctagroup.dev/shape is at the Deployment itself: write it at its pod template"
    assert told == ([words] if warned else [])
