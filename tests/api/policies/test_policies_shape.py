"""The policy about thread-block clusters refuses what the webhook would, in the same words, without the operator."""

import pytest

from cluster_harness.api_client import ApiClient, Json
from cta_group_core.cluster_shape import shape_problem
from cta_group_core.names import ANNOTATION_SHAPE
from group_pods import container, pod
from refused_pods import refusal

_DENIED = "ValidatingAdmissionPolicy 'cta-group-shape' with binding 'cta-group-shape' denied request: "


def shaped(text: str, *containers: Json, initial: tuple[Json, ...] = ()) -> Json:
    """Return a pod that says so."""
    return pod(*containers, initial=initial, annotations={ANNOTATION_SHAPE: text})


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("1", 8),
        ("4,2,1", 32),
        (" 2 , 2\n", 8),
        ("008", 8),
        ("4,4,1,non-portable", 48),
        ("2,non-portable", 8),
        ("3", 24),
        ("3", 32),
        ("16,non-portable", 8),
        ("16,non-portable", 40),
        ("", 8),
        ("non-portable", 8),
        ("non-portable,4", 8),
        ("4,non-portable,non-portable", 8),
        ("4,2,1,1", 8),
        ("4,,1", 8),
        ("0,2", 8),
        ("-4", 8),
        ("+4", 8),
        ("4x2", 8),
        ("²", 8),
        ("1000", 8),
        ("4,4,1", 32),
        ("999,999,999", 8),
        ("8,4,1,non-portable", 32),
        (f"4{' ' * 62}", 8),
        (f"4{' ' * 63}", 8),
        ("," * 20_000, 8),
    ],
)
def test_the_policy_says_what_core_says(api: ApiClient, tenants: str, text: str, groups: int) -> None:
    """Let in, or refused by a sentence that names the annotation and what to write."""
    expected = shape_problem(text, [groups])
    told = refusal(api, tenants, shaped(text, container(groups=groups)))
    assert told == (None if expected is None else f'pods "tenant" is forbidden: {_DENIED.strip()} {expected}')


def test_a_text_of_several_lines_is_refused_too(api: ApiClient, tenants: str) -> None:
    """The API server shows no message with a line break: a fixed one stands in."""
    told = refusal(api, tenants, shaped("4\n2", container(groups=8)))
    assert told is not None
    assert "annotation ctagroup.dev/shape is no cluster shape: write one to three whole numbers" in told


def test_every_container_is_judged(api: ApiClient, tenants: str) -> None:
    """A sidecar holds a slice too."""
    sidecar = container("side", groups=40) | {"restartPolicy": "Always"}
    told = refusal(api, tenants, shaped("16,non-portable", container(), initial=(sidecar,)))
    assert "40 groups are no multiple of 16: the nearest are 32 or 48" in (told or "")


def test_who_asks_for_nothing_may_say_anything(api: ApiClient, tenants: str) -> None:
    """The annotation is about groups; a pod without them is not judged."""
    assert refusal(api, tenants, shaped("what", container())) is None
    assert refusal(api, tenants, shaped("what", container(groups=0))) is None
