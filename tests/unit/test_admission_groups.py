"""Templates that cannot name the resource ask for groups in an annotation."""

import pytest

from admission_pods import FITS_H100_QUARTER, FLAG, admitted, annotated, args_of, server_pod
from cta_group_core.names import ANNOTATION_CONTAINER, ANNOTATION_GROUPS
from cta_group_core.names import DEFAULT_RESOURCE_NAME as RESOURCE


def test_the_annotation_for_groups_replaces_whole_gpus() -> None:
    """For templates that cannot name the resource; the second call finds the request."""
    before = annotated(server_pod("m", groups=None), groups="32")
    before["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1", "cpu": "2"}}
    pod, _ = admitted(before)
    assert pod["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "2", RESOURCE: "32"},
        "requests": {RESOURCE: "32"},
    }
    assert args_of(pod)[1] == f"{FLAG}={FITS_H100_QUARTER}"
    assert not admitted(pod)[1].answer.patch


@pytest.mark.parametrize(("named", "index"), [("b", 1), ("a", 0)])
def test_of_several_containers_the_named_one_gets_the_groups(named: str, index: int) -> None:
    """The annotation for the container says which."""
    containers = [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]
    pod, _ = admitted(annotated({"metadata": {}, "spec": {"containers": containers}}, groups="8", container=named))
    assert pod["spec"]["containers"][index]["resources"]["limits"] == {RESOURCE: "8"}
    assert "resources" not in pod["spec"]["containers"][1 - index]


@pytest.mark.parametrize("text", ["auto", "0", "-8", "8.5", "many", "", "\uff11\uff16", "9" * 5000])
def test_an_annotation_that_is_no_number_changes_nothing(text: str) -> None:
    """The creator is told."""
    before = annotated(server_pod("m", groups=None), groups=text)
    pod, decided = admitted(before)
    assert pod == before
    assert ANNOTATION_GROUPS in decided.answer.warnings[0]


def test_groups_for_nobody_in_particular_are_not_given_to_anybody() -> None:
    """Two containers and no name: the creator is asked."""
    containers = [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]
    before = annotated({"metadata": {}, "spec": {"containers": containers}}, groups="8")
    pod, decided = admitted(before)
    assert pod == before
    assert ANNOTATION_CONTAINER in decided.answer.warnings[0]
