"""Containers of a manifest as the rules look at them: their words, and what surrounds them in the same input."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import yaml

from cta_group_cli.aliases import is_boundless
from cta_group_cli.manifests import Json, Manifests, PodTemplate, mapping, texts
from cta_group_core.request_rules import Asking, Role, asked_count
from cta_group_core.vllm.detect import ContainerFacts
from cta_group_core.vllm.findings import Probes, patience_seconds
from cta_group_core.vllm.shown import shown
from cta_group_core.vllm.surroundings import Surroundings, resolve_variables

_REFERENCE_TEXTS = frozenset({"name", "key", "fieldPath", "resource", "containerName"})
"""What is a text in each kind of ``valueFrom``."""
_PROBE_TIMES = ("initialDelaySeconds", "periodSeconds", "failureThreshold")


@dataclass(frozen=True, slots=True)
class ManifestContainer:
    """One container of a template."""

    facts: ContainerFacts
    probes: Probes
    limits: Mapping[str, str]
    requests: Mapping[str, str]
    mistakes: tuple[str, ...]
    """What the API server refuses in its words."""
    is_sidecar: bool = False
    """An init container that goes on beside the others."""

    def asks(self, resource: str) -> int:
        """Return how much of a resource it asks for; 0 for what is no whole number."""
        return asked_count(self.limits, self.requests, resource)

    def asking(self, role: Role) -> Asking:
        """Return it as the rules about requests look at it."""
        return Asking(self.facts.name, role, self.limits, self.requests)


def containers_of(template: PodTemplate, manifests: Manifests, field: str = "containers") -> list[ManifestContainer]:
    """Return the containers of a template, read beside the ConfigMaps of the same input."""
    maps = manifests.of_kind("ConfigMap", template.namespace)
    volumes = {str(one.get("name")): one for one in _objects(template.spec.get("volumes"))}
    return [_container(one, maps, volumes) for one in _objects(template.spec.get(field))]


def _container(one: Json, maps: Mapping[str, Json], volumes: Mapping[str, Json]) -> ManifestContainer:
    resources = mapping(one.get("resources"))
    probes = [mapping(one.get(name)) for name in ("startupProbe", "livenessProbe", "readinessProbe")]
    command, mistakes = _words(one, "command")
    args, more_mistakes = _words(one, "args")
    return ManifestContainer(
        facts=ContainerFacts(
            name=str(one.get("name", "")),
            image=str(one.get("image", "")),
            command=command,
            args=args,
            ports=tuple(_whole(port.get("containerPort"), 0) for port in _objects(one.get("ports"))),
            probe_paths=tuple(str(mapping(probe.get("httpGet")).get("path", "")) for probe in probes),
            surroundings=_surroundings(one, maps, volumes),
        ),
        probes=Probes(_patience(probes[0]), _patience(probes[1])),
        limits=texts(resources.get("limits")),
        requests=texts(resources.get("requests")),
        mistakes=(*mistakes, *more_mistakes, *_mistakes(one)),
        is_sidecar=one.get("restartPolicy") == "Always",
    )


def _words(one: Json, field: str) -> tuple[tuple[str, ...], list[str]]:
    value = one.get(field)
    given: Sequence[Any] = value if isinstance(value, list) else [] if value is None else [value]
    mistakes = [
        f"{field}[{index}] is {shown(repr(word))} and no text: write it in quotes"
        for index, word in enumerate(given)
        if not isinstance(word, str)
    ]
    if not isinstance(value, list | None):
        mistakes = [f"{field} is {shown(repr(value))} and no list of texts"]
    return tuple(word if isinstance(word, str) else str(word) for word in given), mistakes


def _mistakes(one: Json) -> Iterator[str]:
    """Yield what the API server refuses in the container's lists of objects, and in the texts of its variables."""
    for field in ("env", "envFrom", "ports", "volumeMounts"):
        value = one.get(field)
        if value is not None and not (isinstance(value, list) and all(isinstance(item, dict) for item in value)):
            yield f"{field} is {shown(repr(value))} and no list of objects: begin each with a dash"
    for variable in _objects(one.get("env")):
        name, text = variable.get("name"), variable.get("value")
        if not isinstance(name, str | None):
            yield f"env has the name {shown(repr(name))} and no text: write it in quotes"
        if not isinstance(text, str | None):
            yield f"env {name} has the value {shown(repr(text))} and no text: write it in quotes"
        for kind, reference in mapping(variable.get("valueFrom")).items():
            for part, given in mapping(reference).items():
                if part in _REFERENCE_TEXTS and not isinstance(given, str | None):
                    yield f"env {name} has the {kind}.{part} {shown(repr(given))} and no text: write it in quotes"


def _patience(probe: Json) -> int | None:
    if not probe:
        return None
    return patience_seconds(*(_number(probe.get(name)) for name in _PROBE_TIMES))


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _surroundings(one: Json, maps: Mapping[str, Json], volumes: Mapping[str, Json]) -> Surroundings:
    given: list[tuple[str, str | None]] = []
    unseen = False
    for source in _objects(one.get("envFrom")):
        data = _data(maps, mapping(source.get("configMapRef")).get("name"))
        unseen = unseen or data is None
        given += [(f"{source.get('prefix', '')}{key}", text.replace("$", "$$")) for key, text in (data or {}).items()]
    for variable in _objects(one.get("env")):
        given.append((str(variable.get("name")), _value(variable, maps)))
    files = dict(_files(one, maps, volumes))
    return Surroundings(resolve_variables(given), unseen, files, dict(_configs(files)))


def _value(variable: Json, maps: Mapping[str, Json]) -> str | None:
    source = variable.get("valueFrom")
    if source is None:
        given = variable.get("value")
        return "" if given is None else str(given)
    reference = mapping(mapping(source).get("configMapKeyRef"))
    text = (_data(maps, reference.get("name")) or {}).get(str(reference.get("key")))
    return None if text is None else text.replace("$", "$$")  # kubelet replaces nothing in it


def _data(maps: Mapping[str, Json], name: Any) -> dict[str, str] | None:
    found = maps.get(str(name))
    return None if found is None else texts(found.get("data"))


def _files(one: Json, maps: Mapping[str, Json], volumes: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield path and text of each file that a ConfigMap of the input brings into the container."""
    for mount in _objects(one.get("volumeMounts")):
        volume = mapping(volumes.get(str(mount.get("name"))))
        sources = [volume.get("configMap"), *_objects(mapping(volume.get("projected")).get("sources"))]
        for source in sources:
            reference = mapping(mapping(source).get("configMap") or source)
            data = _data(maps, reference.get("name")) or {}
            items = {str(item.get("path")): str(item.get("key")) for item in _objects(reference.get("items"))}
            for path, key in (items or {key: key for key in data}).items():
                place = _place(mount, path)
                if place is not None and key in data:
                    yield place, data[key]


def _place(mount: Json, path: str) -> str | None:
    folder, part = str(mount.get("mountPath", "")), mount.get("subPath")
    if part is None:
        return str(PurePosixPath(folder) / path)
    return folder if str(part) == path else None


def _configs(files: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, object]]]:
    for path, text in files.items():
        if not path.endswith((".yaml", ".yml", ".json")):
            continue
        try:
            content = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError):
            continue
        if isinstance(content, dict) and not is_boundless(content) and _is_json(content):
            yield path, content


def _is_json(content: object) -> bool:
    """Tell whether JSON can say it, which is what vLLM makes of mappings in its file."""
    try:
        json.dumps(content, default=str)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _objects(value: Any) -> list[Json]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _whole(value: Any, default: int) -> int:
    number = _number(value)
    return default if number is None else number
