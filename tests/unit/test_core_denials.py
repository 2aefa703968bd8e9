"""The API server's refusal is all there is to explain a quota with, so its text is read exactly."""

import pytest

from cta_group_core.denials import Denial, parse_denial, refusal_words

RESOURCE = "nvidia.com/cta-group"
CREATING = 'Error creating: pods "web-5d8-abc" is forbidden: '


def test_groups_alone() -> None:
    """The measured text of a refused pod gives its numbers and what is missing."""
    text = (
        'pods "solo" is forbidden: exceeded quota: cta-group, requested: requests.nvidia.com/cta-group=32, '
        "used: requests.nvidia.com/cta-group=240, limited: requests.nvidia.com/cta-group=256"
    )
    denial = parse_denial(text, RESOURCE)
    assert denial == Denial("cta-group", needs=32, used=240, limit=256)
    assert denial.short == 16


def test_several_resources() -> None:
    """Other resources of the same refusal are named, and round thousands are numbers too."""
    text = (
        f"{CREATING}exceeded quota: cta-group, requested: cpu=2,requests.nvidia.com/cta-group=32, "
        "used: cpu=9,requests.nvidia.com/cta-group=1k, limited: cpu=10,requests.nvidia.com/cta-group=1k"
    )
    assert parse_denial(text, RESOURCE) == Denial("cta-group", 32, 1000, 1000, other_resources=("cpu",))


def test_other_quota() -> None:
    """A refusal for other resources only is not about groups."""
    text = f"{CREATING}exceeded quota: compute, requested: cpu=2, used: cpu=9, limited: cpu=10"
    denial = parse_denial(text, RESOURCE)
    assert denial is not None
    assert not denial.about_groups
    assert denial.other_resources == ("cpu",)


def test_quota_that_is_not_counted_yet() -> None:
    """A quota without usage refuses with another text; that is recognised."""
    text = f"{CREATING}status unknown for quota: cta-group, resources: requests.nvidia.com/cta-group"
    denial = parse_denial(text, RESOURCE)
    assert denial is not None
    assert denial.not_counted_yet
    assert denial.about_groups


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"{CREATING}ValidatingAdmissionPolicy 'cta-group-units' denied request: ask for 8 to 128",
        "exceeded quota: q, requested: requests.nvidia.com/cta-group=many, used: x=1, limited: x=1",
    ],
)
def test_other_texts_are_no_denial(text: str) -> None:
    """Text that is not a quota's refusal, or has no numbers, gives nothing."""
    assert parse_denial(text, RESOURCE) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Error creating: the webhook says no", "the webhook says no"),
        ("(combined from similar events): Error creating: no", "no"),
        ("create Pod a-0 in StatefulSet a failed error: no", "create Pod a-0 in StatefulSet a failed error: no"),
        (f"{CREATING}ValidatingAdmissionPolicy 'p' with binding 'b' denied request: ask for 8", "ask for 8 (policy p)"),
        ('Error creating: admission webhook "w.x" denied the request: use size 1', "use size 1 (webhook w.x)"),
    ],
)
def test_refusal_in_its_own_words(text: str, words: str) -> None:
    """What every refusal has in common is left out; a policy or webhook keeps its words and its name."""
    assert refusal_words(text) == words
