"""Pods that are alike in what admission reads are decided once, and nothing but that makes them alike."""

from dataclasses import dataclass, field

import pytest

from admission_pods import Json, cta_node, decode, known_gpus, server_pod
from cta_group_core.names import DEFAULT_RESOURCE_NAME
from cta_group_operator.admission.decision import Mutation, mutate
from cta_group_operator.admission.gpu_kinds import KnownGpus, SliceFacts
from cta_group_operator.admission.pod import Pod
from cta_group_operator.admission.remembered import Remembered
from cta_group_operator.admission.settings import PodRules


@dataclass
class Decider:
    """Decides as admission does, and counts."""

    facts: KnownGpus = field(default_factory=lambda: known_gpus(cta_node("node-a", "h100-sxm")))
    decided: int = 0

    def __post_init__(self) -> None:
        """Remember what it decides."""
        self.remembered = Remembered(self.decide, self.facts)

    def decide(self, pod: Pod, facts: SliceFacts) -> Mutation:
        """Decide about one pod."""
        self.decided += 1
        return mutate(pod, PodRules(), facts)

    def ask(self, pod: Json) -> Mutation:
        """Ask about a pod, and check that what is remembered is what would be decided now."""
        told = self.remembered(decode(pod))
        assert told == mutate(decode(pod), PodRules(), self.facts)
        return told


def of_template(name: str, *args: str) -> Json:
    """Return a pod with what the API server gives each pod of a template of its own: a name, a uid, a volume."""
    pod = server_pod(*args)
    pod["metadata"] = {"name": name, "uid": f"uid-{name}", "labels": {"app": "web"}}
    pod["spec"]["volumes"] = [{"name": f"kube-api-access-{name}"}]
    return pod


def test_pods_of_one_template_are_decided_once() -> None:
    """Their names, uids and volumes are not read, so they are alike; other arguments are another decision."""
    decider = Decider()
    answers = [decider.ask(of_template(name, "--model=m")) for name in ("a", "b", "c")]
    assert answers[0].changed_flags
    assert answers == [answers[0]] * 3
    assert decider.decided == 1
    decider.ask(of_template("d", "--model=m", "--enforce-eager"))
    assert decider.decided == 2


def test_a_pod_that_asks_by_its_annotation_is_the_same_the_second_time() -> None:
    """Deciding writes the request into the pod that it looks at; the next one still asks by its annotation."""
    decider = Decider()
    pod = server_pod("--model=m", groups=None)
    pod["metadata"]["annotations"] = {"ctagroup.dev/groups": "32"}
    first, second = decider.ask(pod), decider.ask(pod)
    assert first == second
    assert {"op": "add", "path": "/spec/containers/0/resources/limits", "value": {DEFAULT_RESOURCE_NAME: "32"}} in list(
        second.answer.patch
    )


def test_other_gpus_are_another_decision() -> None:
    """When a node brings GPUs of another size, arguments are fitted anew."""
    decider = Decider()
    before = decider.ask(of_template("a", "--model=m"))
    decider.facts.follow(None, cta_node("node-b", "a100-40"))
    assert decider.ask(of_template("b", "--model=m")) != before
    assert decider.decided == 2


def test_a_fault_is_not_remembered() -> None:
    """What cannot be decided now may be decided for the next pod."""
    asked: list[Pod] = []

    def fails_first(pod: Pod, facts: SliceFacts) -> Mutation:
        asked.append(pod)
        if len(asked) == 1:
            raise ValueError("a fault of ours")
        return mutate(pod, PodRules(), facts)

    remembered = Remembered(fails_first, known_gpus(cta_node("node-a", "h100-sxm")))
    with pytest.raises(ValueError, match="a fault of ours"):
        remembered(decode(server_pod("--model=m")))
    assert remembered(decode(server_pod("--model=m"))).answer.patch
