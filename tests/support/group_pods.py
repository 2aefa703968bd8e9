"""Pods that ask for groups, as a person would write them."""

from collections.abc import Mapping, Sequence
from typing import Any

from cta_group_core.names import DEFAULT_RESOURCE_NAME

Json = dict[str, Any]


def container(name: str = "main", groups: int | str | None = None, env: Mapping[str, str] | None = None) -> Json:
    """Return a container; ``groups`` None asks for nothing."""
    made: Json = {"name": name, "image": "localhost/none:1"}
    if groups is not None:
        made["resources"] = {"limits": {DEFAULT_RESOURCE_NAME: str(groups)}}
    if env:
        made["env"] = [{"name": key, "value": value} for key, value in env.items()]
    return made


def pod(
    *containers: Json,
    name: str = "tenant",
    initial: Sequence[Json] = (),
    annotations: Mapping[str, str] | None = None,
    gates: Sequence[str] = (),
) -> Json:
    """Return a pod of these containers; ``initial`` are its init containers."""
    spec: Json = {"containers": list(containers)}
    if initial:
        spec["initContainers"] = list(initial)
    if gates:
        spec["schedulingGates"] = [{"name": gate} for gate in gates]
    return {"metadata": {"name": name, "annotations": dict(annotations or {})}, "spec": spec}


def asking(groups: int | str) -> Json:
    """Return the usual pod: one container that asks for groups."""
    return pod(container(groups=groups))
