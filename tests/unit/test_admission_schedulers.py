"""Schedulers that do not honour gates: their pods are not gated, but refused for a while after a node refused one."""

from typing import Any

import pytest

from admission_pods import H100, admitted, decode, server_pod
from cta_group_core.names import GATE_PLACEMENT, LABEL_REQUESTS
from cta_group_operator.admission.decision import mutate
from cta_group_operator.admission.settings import PodRules
from cta_group_operator.cli import build_parser, main, settings_of

RULES = PodRules(gateless_schedulers=frozenset({"naive"}))


def of_scheduler(name: str) -> dict[str, Any]:
    """Return a pod of a ReplicaSet that names a scheduler."""
    pod = server_pod("m")
    pod["metadata"]["ownerReferences"] = [{"uid": "other"}, {"uid": "rs", "controller": True}]
    pod["spec"]["schedulerName"] = name
    return pod


def pauses(uid: str) -> str:
    """Return why the next pod of ReplicaSet rs has to wait."""
    return "the one before it was refused by its node" if uid == "rs" else ""


def test_pods_of_schedulers_that_ignore_gates_have_none() -> None:
    """Gated, one would be bound again and again and refused by the API server; others are gated as always."""
    pod, _ = admitted(of_scheduler("naive"), rules=RULES)
    assert "schedulingGates" not in pod["spec"]
    assert pod["metadata"]["labels"] == {LABEL_REQUESTS: "true"}
    for name in ("batch", "default-scheduler"):
        pod, _ = admitted(of_scheduler(name), rules=RULES)
        assert [gate["name"] for gate in pod["spec"]["schedulingGates"]] == [GATE_PLACEMENT]


def test_what_no_gate_can_hold_back_is_refused_for_a_while() -> None:
    """Only of a controller whose pod was refused just now, and only where there is no gate."""
    decided = mutate(decode(of_scheduler("naive")), RULES, H100, pauses)
    assert not decided.answer.allowed
    assert decided.answer.message == (
        "scheduler naive does not honour gates: no GPU is chosen for its pods, so not yet: "
        "the one before it was refused by its node"
    )
    assert mutate(decode(of_scheduler("batch")), RULES, H100, pauses).answer.allowed
    assert mutate(decode(of_scheduler("naive")), RULES, H100).answer.allowed
    alone = server_pod("m")
    alone["spec"]["schedulerName"] = "naive"
    assert mutate(decode(alone), RULES, H100, pauses).answer.allowed


def test_names_come_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Separated by commas; the default scheduler and what is no name are refused in words."""
    parsed = build_parser({}).parse_args(["run", "--gateless-schedulers=naive, my.batch"])
    assert settings_of(parsed).gateless_schedulers == {"naive", "my.batch"}
    for wrong, words in (("default-scheduler", "honours gates"), ("Naive", "no name of a scheduler")):
        with pytest.raises(SystemExit):
            main(["run", f"--gateless-schedulers={wrong}"])
        assert words in capsys.readouterr().err
