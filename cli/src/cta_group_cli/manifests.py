"""Manifests as text, and the pods that they describe: every object with a pod template, and ``Pod`` itself."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from cta_group_cli.aliases import is_boundless
from cta_group_cli.errors import BadInput
from cta_group_cli.plain_scalars import documents_of
from cta_group_cli.stack_kinds import GROUP_OF_PODS, as_started, asks_somewhere
from cta_group_core.names import ANNOTATION_BUDGET, ANNOTATION_METRICS_PORT
from cta_group_core.vllm.shown import shown

Json = Mapping[str, Any]

_NAMESPACE = "default"
_LONGEST_PATH = 12
_PLACES = {
    ("v1", "Pod"): ("spec",),
    ("v1", "PodTemplate"): ("template", "spec"),
    ("v1", "ReplicationController"): ("spec", "template", "spec"),
    **{
        ("apps/v1", kind): ("spec", "template", "spec")
        for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")
    },
    ("batch/v1", "Job"): ("spec", "template", "spec"),
    ("batch/v1", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
}
"""Where a pod's spec stands in objects of Kubernetes' own kinds."""


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
    mistakes: tuple[str, ...] = ()
    """What the API server refuses in labels and annotations."""

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

    def mistaken(self) -> Iterator[tuple[Json, str]]:
        """Yield each object of Kubernetes' own kinds whose containers the API server refuses, with a sentence."""
        for one in self.objects:
            path = _PLACES.get((str(one.get("apiVersion")), str(one["kind"])))
            spec: Any = one
            for part in path or ():
                spec = mapping(mapping(spec).get(part))
            if path and "containers" in spec and not _is_pod_spec(spec):
                where = ".".join((*path, "containers"))
                yield one, f"{where} must be a list of one or more containers: begin each with a dash"

    def unseen(self, resource: str) -> Iterator[Json]:
        """Yield each object that asks for a resource and describes no pod: its controller makes the pods."""
        for one in self.objects:
            if next(_pods(one, 0), None) is None and asks_somewhere(one, resource):
                yield one

    def templates(self) -> Iterator[PodTemplate]:
        """Yield each pod that is described, in the order of the input."""
        for one in self.objects:
            for pod in _pods(one, 0):
                yield _template(one, pod)


def read_manifests(text: str, source: str) -> Manifests:
    """Parse YAML or JSON, several documents too; raise BadInput, which names ``source``."""
    try:
        documents = list(documents_of(text))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadInput(f"{source} is not YAML: {' '.join(str(error).split())}") from error
    objects: list[Json] = []
    for number, document in enumerate(documents, start=1):
        if document is None:
            continue
        place = f"{source}: document {number}"
        if is_boundless(document):
            raise BadInput(f"{place} repeats itself by aliases without end: write out what it means")
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            raise BadInput(f"{place} is no Kubernetes object: it has no kind")
        objects += _flattened(document, place)
    return Manifests(objects)


def _flattened(document: Json, place: str) -> Iterator[Json]:
    """Yield an object, or those of a list; in a list of one kind, as the API serves it, they do not repeat it."""
    kind, items = str(document["kind"]), document.get("items")
    if not kind.endswith("List") or items is None:
        yield document
        return
    of_all = kind.removesuffix("List") or None
    if not isinstance(items, list) or not all(
        isinstance(one, dict) and isinstance(one.get("kind", of_all), str) for one in items
    ):
        raise BadInput(f"{place}: items of a {kind} must be objects with a kind")
    for one in items:
        yield from _flattened({"kind": of_all, **one}, place)


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
        if isinstance(only := value.get("container"), dict) and "image" in only:  # a step of an Argo Workflow
            yield {"metadata": value.get("metadata"), "spec": {"containers": [{"name": "main", **only}]}}
            return
        for item in value.values():
            yield from _pods(item, depth + 1)


def _is_pod_spec(value: Any) -> bool:
    containers = value.get("containers") if isinstance(value, dict) else None
    return isinstance(containers, list) and bool(containers) and all(isinstance(one, dict) for one in containers)


def _template(one: Json, pod: Json) -> PodTemplate:
    metadata, own = mapping(pod.get("metadata")), mapping(one.get("metadata"))
    kind = str(one["kind"])
    return PodTemplate(
        kind=kind,
        namespace=namespace_of(one),
        name=name_of(one),
        spec=as_started(kind, pod["spec"]),
        labels={**GROUP_OF_PODS.get(kind, {}), **texts(metadata.get("labels"))},
        annotations=texts(metadata.get("annotations")),
        own_annotations=texts(own.get("annotations")),
        mistakes=tuple(dict.fromkeys([*_untexts(metadata), *_untexts(own)])),
    )


def texts(value: Any) -> dict[str, str]:
    """Return a mapping of texts, each as the API server would print it."""
    return {str(key): "" if text is None else str(text) for key, text in mapping(value).items()}


def _untexts(metadata: Json) -> Iterator[str]:
    """Yield what the API server refuses in labels and annotations: whatever is no text."""
    for field_name in ("labels", "annotations"):
        value = metadata.get(field_name)
        if not isinstance(value, dict | None):
            yield f"{field_name} are {shown(repr(value))} and no mapping of texts"
        for key, text in mapping(value).items():
            if not isinstance(text, str | None):
                kind = field_name.removesuffix("s")
                yield f"{kind} {shown(str(key))} is {shown(repr(text))} and no text: write it in quotes"
