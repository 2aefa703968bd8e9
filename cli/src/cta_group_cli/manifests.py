"""Manifests as text, and the pods that they describe: every object with a pod template, and ``Pod`` itself."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from cta_group_cli.errors import BadInput
from cta_group_core.names import ANNOTATION_BUDGET, ANNOTATION_METRICS_PORT

Json = Mapping[str, Any]

_NAMESPACE = "default"
_LONGEST_PATH = 12
_GROUP_OF_PODS = {
    "LeaderWorkerSet": {"leaderworkerset.sigs.k8s.io/name": "", "leaderworkerset.sigs.k8s.io/group-index": ""},
    "RayCluster": {"ray.io/cluster": ""},
    "RayService": {"ray.io/cluster": ""},
    "RayJob": {"ray.io/cluster": ""},
    "LLMInferenceService": {"kserve.io/component": "workload"},
}
"""Labels that a controller puts on the pods of these kinds, and that say what they are."""


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """A pod that an object describes."""

    kind: str
    namespace: str
    name: str
    spec: Json
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    own_annotations: Mapping[str, str] = field(default_factory=dict)
    """Those of the object that describes the pod."""

    @property
    def every_annotation(self) -> dict[str, str]:
        """Those of both: the template's count, but for the budget, which the object says first."""
        own = self.own_annotations
        budget = {name: own[name] for name in (ANNOTATION_BUDGET, ANNOTATION_METRICS_PORT) if name in own}
        return {**own, **self.annotations, **budget}

    def __str__(self) -> str:
        return f"{self.kind.lower()}/{self.name}"


@dataclass(frozen=True, slots=True)
class Manifests:
    """All objects of an input."""

    objects: Sequence[Json]

    def of_kind(self, kind: str, namespace: str) -> dict[str, Json]:
        """Return the objects of a kind in a namespace by their names."""
        found = [one for one in self.objects if one.get("kind") == kind and namespace_of(one) == namespace]
        return {name_of(one): one for one in found}

    def templates(self) -> Iterator[PodTemplate]:
        """Yield each pod that is described, in the order of the input."""
        for one in self.objects:
            for pod in _pods(one, 0):
                yield _template(one, pod)


def read_manifests(text: str, source: str) -> Manifests:
    """Parse YAML or JSON, several documents too; raise BadInput, which names ``source``."""
    try:
        documents = list(yaml.safe_load_all(text))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadInput(f"{source} is not YAML: {' '.join(str(error).split())}") from error
    objects: list[Json] = []
    for number, document in enumerate(documents, start=1):
        if document is None:
            continue
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            raise BadInput(f"{source}: document {number} is no Kubernetes object: it has no kind")
        objects += _flattened(document, source, number)
    return Manifests(objects)


def _flattened(document: Json, source: str, number: int) -> list[Json]:
    items = document.get("items")
    if not str(document["kind"]).endswith("List") or items is None:
        return [document]
    if not isinstance(items, list) or not all(
        isinstance(one, dict) and isinstance(one.get("kind"), str) for one in items
    ):
        raise BadInput(f"{source}: document {number}: items of a {document['kind']} must be objects with a kind")
    return items


def namespace_of(one: Json) -> str:
    """Return an object's namespace, ``default`` where it says none."""
    return str(mapping(one.get("metadata")).get("namespace") or _NAMESPACE)


def name_of(one: Json) -> str:
    """Return an object's name, or what its name begins with."""
    metadata = mapping(one.get("metadata"))
    return str(metadata.get("name") or metadata.get("generateName") or "")


def mapping(value: Any) -> Json:
    """Return a value that should be a mapping; an empty one for whatever else was written."""
    return value if isinstance(value, dict) else {}


def _pods(value: Any, depth: int) -> Iterator[Json]:
    """Yield each mapping that holds a pod's spec: a template with ``spec``, or a mapping that is a spec itself."""
    if depth > _LONGEST_PATH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _pods(item, depth + 1)
    elif isinstance(value, dict):
        if _is_pod_spec(value.get("spec")):
            yield value
            return
        if _is_pod_spec(value):
            yield {"metadata": value.get("metadata"), "spec": value}
            return
        for item in value.values():
            yield from _pods(item, depth + 1)


def _is_pod_spec(value: Any) -> bool:
    containers = value.get("containers") if isinstance(value, dict) else None
    return isinstance(containers, list) and bool(containers) and all(isinstance(one, dict) for one in containers)


def _template(one: Json, pod: Json) -> PodTemplate:
    metadata = mapping(pod.get("metadata"))
    kind = str(one["kind"])
    return PodTemplate(
        kind=kind,
        namespace=namespace_of(one),
        name=name_of(one),
        spec=pod["spec"],
        labels={**_GROUP_OF_PODS.get(kind, {}), **texts(metadata.get("labels"))},
        annotations=texts(metadata.get("annotations")),
        own_annotations=texts(mapping(one.get("metadata")).get("annotations")),
    )


def texts(value: Any) -> dict[str, str]:
    """Return a mapping of texts, each as the API server would print it."""
    return {str(key): str(text) for key, text in mapping(value).items()}
