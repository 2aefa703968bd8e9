"""Which requests for groups are refused, and in which words."""

import pytest

from cta_group_core.names import ANNOTATION_GROUPS, ANNOTATION_MULTI_CONTAINER, DEFAULT_RESOURCE_NAME
from cta_group_core.request_rules import Asking, Role, asked_count, refused_requests

RESOURCE = DEFAULT_RESOURCE_NAME
GPU = "nvidia.com/gpu"


def asking(name: str, role: Role = Role.REGULAR, **amounts: str) -> Asking:
    """Return a container; ``groups``, ``gpus`` are limits, ``requested`` is a request for groups."""
    limits = {RESOURCE: amounts["groups"]} if "groups" in amounts else {}
    limits |= {GPU: amounts["gpus"]} if "gpus" in amounts else {}
    return Asking(name, role, limits, {RESOURCE: amounts["requested"]} if "requested" in amounts else {})


@pytest.mark.parametrize(
    ("containers", "annotations", "annotated"),
    [
        ([asking("a", groups="32"), asking("b")], {}, None),
        ([asking("a", groups="32", requested="32")], {}, None),
        ([asking("a", gpus="1"), asking("b", gpus="2")], {}, None),
        ([asking("a", groups="32"), asking("b", groups="8")], {ANNOTATION_MULTI_CONTAINER: "true"}, None),
        ([asking("a", gpus="1")], {ANNOTATION_GROUPS: "32"}, "a"),
        ([asking("a"), asking("proxy", Role.SIDECAR, groups="8")], {}, None),
        ([], {}, None),
    ],
)
def test_what_comes_in(containers: list[Asking], annotations: dict[str, str], annotated: str | None) -> None:
    """One container asks, in whole numbers, or several with the annotation."""
    assert refused_requests(containers, annotations, RESOURCE, annotated=annotated) == []


@pytest.mark.parametrize(
    ("containers", "annotations", "annotated", "told"),
    [
        ([asking("a", groups="32", gpus="1")], {}, None, "(container a) are in one pod: ask for one of them"),
        ([asking("a", groups="32"), asking("b", gpus="1")], {}, None, "(container b) are in one pod"),
        ([asking("a", gpus="1"), asking("b", gpus="1")], {ANNOTATION_GROUPS: "32"}, "a", "(container b) are in one"),
        ([asking("a", groups="32"), asking("b", groups="8")], {}, None, "containers a, b ask for groups each"),
        ([asking("a", groups="32"), asking("s", Role.SIDECAR, groups="8")], {}, None, "containers a, s ask"),
        ([asking("a"), asking("load", Role.INITIAL, groups="8")], {}, None, "init container load asks for groups"),
        ([asking("a", groups="0.5")], {}, None, "container a asks for nvidia.com/cta-group: quantity '0.5'"),
        ([asking("a", gpus="half")], {}, None, "container a asks for nvidia.com/gpu: quantity 'half'"),
        ([asking("a", requested="8")], {}, None, "container a requests 8 groups and its limit is not set"),
        ([asking("a", groups="32", requested="8")], {}, None, "requests 8 groups and its limit is 32: both must be"),
    ],
)
def test_what_is_refused(
    containers: list[Asking], annotations: dict[str, str], annotated: str | None, told: str
) -> None:
    """By the API server itself or by a policy of the chart; one sentence for one mistake."""
    (refused,) = refused_requests(containers, annotations, RESOURCE, annotated=annotated)
    assert told in refused


@pytest.mark.parametrize(("text", "count"), [("32", 32), ("0.032k", 32), ("0.5", 0), ("-1", 0), ("many", 0)])
def test_a_size_that_is_no_whole_number_asks_for_nothing(text: str, count: int) -> None:
    """The limit counts before the request, as both must be the same."""
    assert asked_count({RESOURCE: text}, {RESOURCE: "8"}, RESOURCE) == count
    assert asked_count({}, {RESOURCE: text}, RESOURCE) == count
