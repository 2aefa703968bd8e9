"""What controllers of serving stacks make of their own kinds: their pods are more than what is written."""

from collections.abc import Mapping
from typing import Any, Final

Json = Mapping[str, Any]

GROUP_OF_PODS: Final[Mapping[str, Mapping[str, str]]] = {
    "LeaderWorkerSet": {"leaderworkerset.sigs.k8s.io/name": "", "leaderworkerset.sigs.k8s.io/group-index": ""},
    "RayCluster": {"ray.io/cluster": ""},
    "RayService": {"ray.io/cluster": ""},
    "RayJob": {"ray.io/cluster": ""},
    "LLMInferenceService": {"kserve.io/component": "workload"},
}
"""Labels that a controller puts on the pods of these kinds, and that say what they are."""
_KSERVE_KIND: Final = "LLMInferenceService"
_KSERVE_CONTAINER: Final = "main"
_KSERVE_COMMAND: Final = (
    "/bin/bash",
    "-c",
    'eval "exec vllm serve /mnt/models --port 8000 ${VLLM_ADDITIONAL_ARGS} $@"',
    "--",
)
"""What of KServe's presets decides which arguments vLLM gets; the rest of their script is about networks and keys."""
_AMOUNT_KEYS: Final = frozenset({"limits", "requests"})
_TYPE_KEYS: Final = frozenset({"gpuType", "requestGPUType"})
_DEEPEST: Final = 12


def as_started(kind: str, spec: Json) -> Json:
    """Return a pod's spec with the command that the kind's controller starts where none is written."""
    if kind != _KSERVE_KIND:
        return spec
    containers = [
        {**one, "command": list(_KSERVE_COMMAND)}
        if one.get("name") == _KSERVE_CONTAINER and "command" not in one
        else one
        for one in spec["containers"]
    ]
    return {**spec, "containers": containers}


def asks_somewhere(value: Any, resource: str, depth: int = 0) -> bool:
    """Tell whether an object asks for a resource wherever its kind has that: limits, requests, or ``gpuType``."""
    if depth > _DEEPEST:
        return False
    if isinstance(value, list):
        return any(asks_somewhere(item, resource, depth + 1) for item in value)
    if not isinstance(value, dict):
        return False
    return any(
        _asks(str(key), item, resource) or asks_somewhere(item, resource, depth + 1) for key, item in value.items()
    )


def _asks(key: str, item: Any, resource: str) -> bool:
    if key in _TYPE_KEYS:
        return bool(item == resource)
    if key not in _AMOUNT_KEYS or not isinstance(item, dict):
        return False
    return any(resource in one for one in (item, *item.values()) if isinstance(one, dict))
