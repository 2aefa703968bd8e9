"""Pods on their way through admission: made, judged, and patched as the API server would."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from cta_group_core.ids import NodeName
from cta_group_core.names import DEFAULT_RESOURCE_NAME
from cta_group_core.nodes import Enforcement, GpuStatus, NodeStatus
from cta_group_core.profiles import profile_named
from cta_group_operator.admission.decision import Mutation, mutate
from cta_group_operator.admission.gpu_kinds import KnownGpus, SliceFacts
from cta_group_operator.admission.pod import Pod
from cta_group_operator.admission.settings import PodRules
from cta_group_operator.ports import CtaNodeView

Json = dict[str, Any]

FLAG = "--gpu-memory-utilization"
FITS_H100_QUARTER = "0.207"
ALSO_SET = ["--max-num-seqs=256", "--max-num-batched-tokens=2048", "--max-model-len=auto"]
"""What is set with it in a quarter of an H100, where the release is new enough."""


def cta_node(name: str, *profiles: str, limits_memory: bool = True) -> CtaNodeView:
    """Return a CTANode with one GPU of each profile."""
    gpus = [
        GpuStatus(
            uuid=f"GPU-00000000-0000-0000-0000-{index:012}",
            index=index,
            product=profile.product,
            compute_capability=str(profile.capability),
            sm_count=profile.units.sm_count,
            capacity=profile.units.capacity,
            minimum=profile.units.minimum,
            step=profile.units.step,
            memory_mib=profile.memory_total_mib,
            reserve_mib=1024,
        )
        for index, profile in enumerate(map(profile_named, profiles))
    ]
    status = NodeStatus(
        resource_name=DEFAULT_RESOURCE_NAME, enforcement=Enforcement(memory=limits_memory), gpus=tuple(gpus)
    )
    return CtaNodeView(name=NodeName(name), resource_version="1", status=status)


def known_gpus(*nodes: CtaNodeView, labels: Mapping[str, Mapping[str, str]] | None = None) -> KnownGpus:
    """Return what admission knows of a cluster with these nodes."""
    known = KnownGpus((labels or {}).get)
    for node in nodes:
        known.follow(None, node)
    return known


H100 = known_gpus(cta_node("node-a", "h100-sxm"))


def server_pod(*args: str, groups: int | str | None = 32, **container: Any) -> Json:
    """Return a pod of one vLLM container, as the API server shows it to a webhook."""
    made: Json = {"name": "vllm", "image": "vllm/vllm-openai:v0.27.1", "args": list(args), "resources": {}, **container}
    if groups is not None:
        amount = {DEFAULT_RESOURCE_NAME: str(groups)}
        made["resources"] = {"limits": dict(amount), "requests": dict(amount)}
    return {"metadata": {"name": "server"}, "spec": {"containers": [made]}}


def annotated(pod: Json, **annotations: str) -> Json:
    """Return the pod with annotations below the project's prefix."""
    pod["metadata"]["annotations"] = {f"ctagroup.dev/{name}": text for name, text in annotations.items()}
    return pod


def args_of(pod: Json) -> list[str]:
    """Return the arguments of the first container."""
    return list(pod["spec"]["containers"][0].get("args", []))


def decode(pod: Json) -> Pod:
    """Return a pod as admission reads it."""
    return msgspec.json.decode(msgspec.json.encode(pod), type=Pod)


def admitted(pod: Json, facts: SliceFacts = H100, rules: PodRules | None = None) -> tuple[Json, Mutation]:
    """Return the pod as it comes in, and the decision."""
    decided = mutate(decode(pod), rules or PodRules(), facts)
    return patched(pod, decided.answer.patch), decided


def patched(pod: Json, operations: Sequence[Json]) -> Json:
    """Apply a JSON patch of additions, replacements and removals; a missing parent is an error."""
    result = copy.deepcopy(pod)
    for operation in operations:
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        target: Any = result
        for part in parents:
            target = target[int(part) if isinstance(target, list) else part]
        _apply(operation, target, last)
    return result


def _apply(operation: Json, target: Any, last: str) -> None:
    if operation["op"] == "remove":
        del target[last]
    elif operation["op"] == "replace":
        place: Any = int(last) if isinstance(target, list) else last
        target[place] = operation["value"]
    elif operation["op"] != "add":
        raise ValueError(f"operation {operation['op']}: only add, replace and remove are made")
    elif isinstance(target, list):
        target.insert(len(target) if last == "-" else int(last), operation["value"])
    else:
        target[last] = operation["value"]
