"""What somebody else's deed must leave alone: pods and workloads of a team, as API server and kubelet have them."""

from typing import Any

from team import Json, Team

_OWN = frozenset({"kubelet"})
"""Whose writes are no change: it goes on saying how containers are."""


def pods_of(team: Team) -> dict[str, Json]:
    """Return each pod as it must stay: what it is, what was written on it and by whom, and its very containers."""
    return {pod["metadata"]["name"]: _pod(pod) for pod in team.pods()}


def _pod(pod: Json) -> Json:
    metadata = pod["metadata"]
    statuses = pod["status"].get("containerStatuses", [])
    return {
        **{key: metadata.get(key) for key in ("uid", "labels", "annotations", "generation")},
        "spec": pod["spec"],
        "containers": [(one["containerID"], one["restartCount"]) for one in statuses],
        "writes": _writes(metadata),
    }


def _writes(metadata: Json) -> list[tuple[Any, ...]]:
    """Return who wrote, how and when; of a pod without a node nobody but the operator and people do."""
    entries = [one for one in metadata["managedFields"] if one["manager"] not in _OWN]
    return [(one["manager"], one["operation"], one.get("subresource"), one["time"]) for one in entries]


def workloads_of(team: Team) -> dict[str, Json]:
    """Return Deployments and ReplicaSets as they must stay: a new template would make a generation, or a set."""
    apps = f"/apis/apps/v1/namespaces/{team.namespace}"
    found = [one for kind in ("deployments", "replicasets") for one in team.tools.api.items(f"{apps}/{kind}")]
    return {one["metadata"]["name"]: _workload(one) for one in found}


def _workload(one: Json) -> Json:
    kept = {key: one["metadata"].get(key) for key in ("uid", "labels", "annotations", "generation")}
    return {**kept, "spec": one["spec"]}
