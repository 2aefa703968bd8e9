"""Where the nodes' default runtime brings no GPU, no pod runs with the environment of a slice alone unnoticed."""

from typing import Any

import pytest

from admission_pods import H100, admitted, server_pod
from cta_group_core.names import ANNOTATION_RUNTIME_ADVICE
from cta_group_operator.admission.settings import PodRules

REPORTS = PodRules(runtime_class="nvidia")
SETS = PodRules(runtime_class="nvidia", sets_runtime_class=True)


def named(pod: dict[str, Any], runtime_class: str) -> dict[str, Any]:
    """Return the pod with a runtime class."""
    pod["spec"]["runtimeClassName"] = runtime_class
    return pod


def test_a_pod_without_a_class_gets_the_one_that_brings_the_gpu() -> None:
    """By the setting, and whoever creates it is told."""
    pod, decided = admitted(server_pod("m"), H100, SETS)
    assert pod["spec"]["runtimeClassName"] == "nvidia"
    assert "set runtimeClassName: nvidia (was not given)" in decided.answer.warnings
    again, second = admitted(pod, H100, SETS)
    assert again == pod
    assert not [warning for warning in second.answer.warnings if "runtimeClassName" in warning]


@pytest.mark.parametrize("rules", [REPORTS, SETS])
def test_a_class_that_the_pod_names_is_never_overwritten(rules: PodRules) -> None:
    """Whoever names one knows why; doctor tells of one that cannot work."""
    pod, decided = admitted(named(server_pod("m"), "kata"), H100, rules)
    assert pod["spec"]["runtimeClassName"] == "kata"
    assert ANNOTATION_RUNTIME_ADVICE not in pod["metadata"].get("annotations", {})
    assert not [warning for warning in decided.answer.warnings if "runtimeClassName" in warning]


def test_by_default_it_is_only_told() -> None:
    """To whoever creates the pod, and on the pod, where explain finds it."""
    pod, decided = admitted(server_pod("m"), H100, REPORTS)
    assert "runtimeClassName" not in pod["spec"]
    told = pod["metadata"]["annotations"][ANNOTATION_RUNTIME_ADVICE]
    assert "set runtimeClassName: nvidia in the pod template" in told
    assert "the environment of a slice and no GPU" in told
    assert told in decided.answer.warnings


@pytest.mark.parametrize("rules", [PodRules(), SETS])
def test_advice_that_does_not_hold_is_taken_away(rules: PodRules) -> None:
    """What a template claims is not the operator's word."""
    pod = server_pod("m")
    pod["metadata"]["annotations"] = {ANNOTATION_RUNTIME_ADVICE: "mine"}
    assert ANNOTATION_RUNTIME_ADVICE not in admitted(pod, H100, rules)[0]["metadata"]["annotations"]


def test_a_pod_that_asks_for_no_groups_keeps_its_runtime() -> None:
    """Other pods are not touched."""
    pod, _ = admitted(server_pod("m", groups=None), H100, SETS)
    assert "runtimeClassName" not in pod["spec"]
