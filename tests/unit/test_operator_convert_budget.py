"""Latency budgets of pods and of what makes them, as the watch decodes them."""

from typing import Any

import msgspec
import pytest

from cta_group_core.budget.target import MetricsTarget
from cta_group_core.names import ANNOTATION_BUDGET
from cta_group_operator.adapters import wire
from cta_group_operator.adapters.convert import Converter
from cta_group_operator.adapters.convert_controllers import ControllerConverter
from cta_group_operator.resources import DEPLOYMENTS
from cta_group_operator.server_metrics import BudgetView
from operator_world import RESOURCE

Json = dict[str, Any]
READ = Converter(RESOURCE)
MAKERS = ControllerConverter(READ)
SERVER = {
    "name": "vllm",
    "image": "vllm/vllm-openai:v0.27.1",
    "args": ["Qwen/Qwen3-4B", "--port=$(PORT)"],
    "env": [
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "EMPTY"},
        {"name": "PORT", "value": "8200"},
    ],
    "envFrom": [{"configMapRef": {"name": "settings"}}],
    "ports": [{"containerPort": 8000}],
    "resources": {"limits": {RESOURCE: "32"}},
}
OURS = {ANNOTATION_BUDGET: "ttft=1s"}
THEIRS = {ANNOTATION_BUDGET: "ttft=2s"}


def metadata(annotations: Json | None, owner: str | None = None) -> Json:
    """Return metadata; ``owner``: apiVersion and kind of the controller."""
    api_version, _, kind = (owner or "").rpartition("/")
    owners = [{"apiVersion": api_version, "kind": kind, "name": "o", "uid": "o", "controller": True}] if owner else []
    named = {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7", "ownerReferences": owners}
    return {**named, "annotations": annotations}


def of_pod(annotations: Json | None, *, owner: str | None = None, container: Json = SERVER) -> BudgetView | None:
    """Return the budget of a pod."""
    body = {
        "metadata": metadata(annotations, owner),
        "spec": {"containers": [container]},
        "status": {"podIP": "10.0.0.1"},
    }
    pod = READ.pod(msgspec.json.decode(msgspec.json.encode(body), type=wire.Pod))
    assert pod is not None
    assert pod.address == "10.0.0.1"
    return pod.budget


def of_deployment(own: Json | None, template: Json | None) -> BudgetView | None:
    """Return the budget of a Deployment."""
    spec = {"template": {"metadata": {"annotations": template}, "spec": {"containers": [SERVER]}}}
    text = msgspec.json.encode({"metadata": metadata(own), "spec": spec})
    made = MAKERS.controller(DEPLOYMENTS, msgspec.json.decode(text, type=wire.Controller))
    assert made is not None
    return made.budget


@pytest.mark.parametrize("owner", [None, "kubeai.org/v1/Model"])
def test_a_pod_that_no_followed_template_speaks_for(owner: str | None) -> None:
    """Its budget, and the port out of its arguments and variables."""
    found = of_pod(OURS, owner=owner)
    assert found is not None
    assert (found.text, found.served.target) == ("ttft=1s", MetricsTarget(8200))


@pytest.mark.parametrize("annotations", [None, {}, {"other": "x"}])
def test_most_pods_have_no_budget(annotations: Json | None) -> None:
    """Nothing of them is looked at."""
    assert of_pod(annotations) is None


def test_pods_of_a_followed_template_are_not_read_each() -> None:
    """A Deployment of a thousand is read once."""
    assert of_pod(OURS, owner="apps/v1/ReplicaSet") is None


def test_lists_that_are_null() -> None:
    """Any list of a container may be null or absent."""
    for container in (
        {**SERVER, "args": None, "env": None, "envFrom": None, "ports": None, "command": None},
        {"image": SERVER["image"], "resources": SERVER["resources"]},
    ):
        found = of_pod(OURS, container=container)
        assert found is not None
        assert found.served.target == MetricsTarget(8000)


def test_a_workload_s_own_budget_wins_over_its_template_s() -> None:
    """Whichever is there; none without either."""
    texts = [
        found.text if (found := of_deployment(own, template)) is not None else None
        for own, template in ((OURS, None), (None, THEIRS), (OURS, THEIRS), (None, None))
    ]
    assert texts == ["ttft=1s", "ttft=2s", "ttft=1s", None]
