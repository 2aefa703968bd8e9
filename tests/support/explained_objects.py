"""Objects of a cluster that ``kubectl cta explain`` reads, and its answer about them."""

import json
from typing import Any

import pytest

from cta_group_cli.explain import show_explanation
from cta_group_cli.objects import Controller, Pod
from fake_cluster_reader import FakeClusterReader, metadata, pod_spec


def controller(kind: str, name: str, groups: int | None = 32, **more: Any) -> tuple[str, Controller]:
    """Return something that wants two pods of 32 groups, changed as said."""
    spec = {"replicas": 2, "template": {"spec": pod_spec(groups)}}
    return kind, Controller.model_validate({"metadata": metadata(name), "spec": spec, **more})


def replica_set(
    name: str, *, failing: str | None = None, created: str = "2026-11-29T20:00:00Z"
) -> tuple[str, Controller]:
    """Return a ReplicaSet of Deployment web, with the condition of one that is refused."""
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": failing}
    return controller(
        "ReplicaSet",
        name,
        metadata=metadata(name, owner=("Deployment", "web"), creationTimestamp=created),
        status={"conditions": [condition] if failing else []},
    )


def pod(
    name: str, status: dict[str, Any], *, owner: tuple[str, str] | None = ("ReplicaSet", "web-1"), **spec: Any
) -> Pod:
    """Return a pod of 32 groups."""
    return Pod.model_validate({"metadata": metadata(name, owner=owner), "spec": pod_spec(**spec), "status": status})


def answer(capsys: pytest.CaptureFixture[str], reader: FakeClusterReader, text: str) -> dict[str, Any]:
    """Return the JSON form of the answer, and check that the exit status says the same."""
    status = show_explanation(reader, text, namespace="team-a", as_json=True)
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert status == (1 if facts["blocked"] else 0)
    return facts
