"""What a pod takes of a node is counted as the scheduler counts it: else it is sent to where it cannot be bound."""

from typing import Any

import msgspec
import pytest

from cta_group_operator.adapters import wire
from cta_group_operator.adapters.convert import Converter
from operator_world import RESOURCE


def asking(cpu: str, memory: str = "0", **more: Any) -> dict[str, Any]:
    """Return a container."""
    return {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}, **more}


MAIN = {"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi", RESOURCE: "32"}}}
SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("spec", "cpu_milli", "memory_mib"),
    [
        ({}, 1000, 1024),
        ({"containers": [MAIN, asking("250m", "1Mi")]}, 1250, 1025),
        ({"initContainers": [asking("500m", "2Gi")]}, 1000, 2048),
        ({"initContainers": [asking("3"), asking("2")]}, 3000, 1024),
        ({"initContainers": [asking("3", "1Gi", **SIDECAR)]}, 4000, 2048),
        ({"initContainers": [asking("3", **SIDECAR), asking("2")]}, 5000, 1024),
        ({"initContainers": [asking("2"), asking("3", **SIDECAR)]}, 4000, 1024),
        ({"overhead": {"cpu": "100m", "memory": "120Mi"}}, 1100, 1144),
        ({"resources": {"requests": {"cpu": "5"}}}, 5000, 1024),
        ({"resources": {"requests": {"cpu": "5"}}, "overhead": {"cpu": "1"}}, 6000, 1024),
        ({"containers": [MAIN, asking("0.0005"), asking("0.0005")]}, 1001, 1024),
        ({"containers": [MAIN, asking("many")]}, 1000, 1024),
    ],
)
def test_cpu_and_memory_are_those_that_the_scheduler_counts(
    spec: dict[str, Any], cpu_milli: int, memory_mib: int
) -> None:
    """Containers with sidecars, or the largest init container beside the sidecars before it; or the pod's own."""
    body = {"metadata": {"name": "p"}, "spec": {"containers": [MAIN], **spec}}
    pod = Converter(RESOURCE).pod(msgspec.json.decode(msgspec.json.encode(body), type=wire.Pod))
    assert pod is not None
    assert (pod.terms.cpu_milli, pod.terms.memory_bytes >> 20) == (cpu_milli, memory_mib)


def test_an_init_container_that_asks_alone_is_what_counts() -> None:
    """Admission gates such a pod where no policy refuses it, so it must be one that is released."""
    first = {"name": "first", "resources": {"requests": {RESOURCE: "32"}}}
    body = {"metadata": {"name": "p"}, "spec": {"containers": [asking("1")], "initContainers": [first, first]}}
    pod = Converter(RESOURCE).pod(msgspec.json.decode(msgspec.json.encode(body), type=wire.Pod))
    assert pod is not None
    assert pod.requests == (32,)
