"""Label requirements must read as Kubernetes reads them, since a wrong "matches" would limit somebody else's pods."""

import pytest

from cta_group_core.selectors import LabelSelector, Operator, Requirement

LABELS = {"team": "a", "gpus": "8", "odd": "1_000", "huge": "9223372036854775808"}


@pytest.mark.parametrize(
    ("requirement", "holds"),
    [
        (Requirement(key="team", operator=Operator.IN, values=("a", "b")), True),
        (Requirement(key="team", operator=Operator.IN, values=("b",)), False),
        (Requirement(key="none", operator=Operator.IN, values=("a",)), False),
        (Requirement(key="team", operator=Operator.NOT_IN, values=("b",)), True),
        (Requirement(key="none", operator=Operator.NOT_IN, values=("b",)), True),
        (Requirement(key="team", operator=Operator.EXISTS), True),
        (Requirement(key="none", operator=Operator.EXISTS), False),
        (Requirement(key="none", operator=Operator.DOES_NOT_EXIST), True),
        (Requirement(key="team", operator=Operator.DOES_NOT_EXIST), False),
        (Requirement(key="gpus", operator=Operator.GT, values=("7",)), True),
        (Requirement(key="gpus", operator=Operator.GT, values=("8",)), False),
        (Requirement(key="gpus", operator=Operator.LT, values=("9",)), True),
        (Requirement(key="team", operator=Operator.LT, values=("9",)), False),
        (Requirement(key="gpus", operator=Operator.GT, values=("x",)), False),
        (Requirement(key="gpus", operator=Operator.GT, values=("-1",)), True),
        (Requirement(key="gpus", operator=Operator.GT, values=("1", "2")), False),
        (Requirement(key="odd", operator=Operator.GT, values=("1",)), False),
        (Requirement(key="huge", operator=Operator.GT, values=("1",)), False),
    ],
)
def test_requirement_follows_kubernetes(requirement: Requirement, *, holds: bool) -> None:
    """Each operator answers as in Kubernetes, also for a label that is missing."""
    assert requirement.holds(LABELS) is holds


def test_selector_needs_every_part() -> None:
    """A selector matches only when all labels and all expressions hold."""
    read = LabelSelector.model_validate(
        {"matchLabels": {"team": "a"}, "matchExpressions": [{"key": "gpus", "operator": "Exists"}]}
    )
    assert read.matches(LABELS)
    assert not read.matches({"team": "a"})
    assert not read.matches({"gpus": "8"})


def test_empty_selector_matches_everything() -> None:
    """An empty selector selects every object; the CRD refuses it for a quota."""
    assert LabelSelector().matches({})
