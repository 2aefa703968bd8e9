"""The chart's values: each documented, checked and used; what contradicts is refused in words."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from chart_rendering import CHART, HELM_VERSIONS, SCENARIOS, of_kind, refusal, render, scenario_file

VALUES = CHART / "values.yaml"
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
# Written by Helm for a chart that is part of another one.
_NOT_OURS = {"global"}


def _values() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(VALUES.read_text())
    return loaded


def _leaves(node: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of each value of the chart; a map of the user's own is one value."""
    for key, child in node.items():
        here = (*path, key)
        if isinstance(child, dict) and child and here not in _MAPS_OF_THE_USER:
            yield from _leaves(child, here)
        else:
            yield here


_MAPS_OF_THE_USER = {
    ("plugin", "resources"),
    ("plugin", "updateStrategy"),
    ("mps", "resources"),
    ("operator", "resources"),
}


def _templates() -> str:
    return "\n".join(path.read_text() for path in sorted((CHART / "templates").rglob("*")) if path.is_file())


def _object_schemas(node: object) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if node.get("type") == "object":
            yield node
        for child in node.values():
            yield from _object_schemas(child)


def test_the_defaults_fit_the_schema_and_the_schema_is_one() -> None:
    """Draft 7, which every Helm understands."""
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.validate(_values(), SCHEMA)


def test_the_schema_is_closed_wherever_it_names_keys() -> None:
    """A misspelt key is refused at every level, except in maps whose keys belong to the user."""
    for node in _object_schemas(SCHEMA):
        if "properties" in node:
            assert node["additionalProperties"] is False, list(node["properties"])


def test_every_value_is_in_the_schema_and_the_reverse() -> None:
    """Nothing can be set that values.yaml does not show."""

    def schema_keys(node: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        node = SCHEMA["definitions"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
        if "properties" not in node or path in _MAPS_OF_THE_USER or path[-1:] in _OPTIONAL_MAPS:
            yield path
            return
        for key, child in node["properties"].items():
            yield from schema_keys(child, (*path, key))

    assert set(schema_keys(SCHEMA, ())) == {*_leaves(_values()), *((key,) for key in _NOT_OURS)}


# Maps that are empty by default and have keys of Kubernetes.
_OPTIONAL_MAPS = {("affinity",), ("seLinuxOptions",)}


def test_every_value_has_a_sentence_above_it() -> None:
    """``# --`` stands over each value, and each top-level part has a section."""
    lines = VALUES.read_text().splitlines()
    undocumented = []
    for number, line in enumerate(lines):
        if re.match(r"\s*(- |#|$)", line) or not re.match(r"\s*[A-Za-z]+:", line):
            continue
        is_map = line.rstrip().endswith(":") and not _is_documented(lines, number)
        if not is_map and not _is_documented(lines, number):
            undocumented.append(line)
    # What lies inside a documented default, such as the parts of `resources`.
    inner = {"requests", "limits", "type", "rollingUpdate", "operator"}
    assert [line for line in undocumented if line.split(":")[0].strip() not in inner] == []


def _is_documented(lines: list[str], number: int) -> bool:
    above = number - 1
    while lines[above].lstrip().startswith("#"):
        if lines[above].lstrip().startswith("# --"):
            return True
        above -= 1
    return False


def test_no_value_is_an_orphan_and_no_template_reads_one_that_is_not_there() -> None:
    """Each value is read by a template under its path, or under the path of a map that is passed on as a whole."""
    templates = _templates()
    read = {tuple(match.split(".")) for match in re.findall(r"\.Values\.([A-Za-z.]+[A-Za-z])", templates)}
    # `$operator`, `$settings` and dictionaries that helpers get stand for maps of values.
    short = {"operator": ("operator",), "image": ("image",)}
    for name, path in short.items():
        read |= {(*path, key) for key in re.findall(rf"\${name}\.([A-Za-z]+)", templates)}
    for part in ("podMonitor", "serviceMonitor"):
        read |= {("monitoring", part, key) for key in re.findall(r"\.([A-Za-z]+)", _file("_monitors.tpl"))}
    for part, file in (("prometheusRule", "prometheusrule"), ("dashboards", "dashboards")):
        text = _file(f"monitoring/{file}.yaml")
        keys = re.findall(r"\$settings\.([A-Za-z]+)", text) + ["enabled"] * ("{{- if .enabled }}" in text)
        read |= {("monitoring", part, key) for key in keys}
    read |= {("plugin", key) for key in ("privileged", "seLinuxOptions")}  # `pick` in the DaemonSet
    leaves = set(_leaves(_values()))
    unread = {leaf for leaf in leaves if not any(leaf[: len(path)] == path or path == leaf for path in read)}
    assert unread == set()
    known = leaves | {leaf[:depth] for leaf in leaves for depth in range(1, len(leaf))}
    inside_maps = {path for path in read if any(path[: len(leaf)] == leaf for leaf in leaves)}
    assert {path for path in read if path not in known} - inside_maps - _not_paths(read) == set()


def _not_paths(read: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Return words that only look like values: fields of what helpers build."""
    return {path for path in read if path[:2] in {("monitoring", "podMonitor"), ("monitoring", "serviceMonitor")}}


def _file(name: str) -> str:
    return (CHART / "templates" / name).read_text()


@pytest.mark.parametrize("program", HELM_VERSIONS, ids=HELM_VERSIONS.values())
@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("plugin.imagee=x", "imagee"),
        ("gpus.source=fake", "gpus"),
        ("gpus.simulated.count=0", "count"),
        ("operator.alignment=maybe", "alignment"),
        ("mps.root=relative/path", "root"),
        ("resourceName=cta-group", "resourceName"),
        ("policies.units.gpus[0].capacity=128", "minimum"),
        ("webhook.timeoutSeconds=2s", "timeoutSeconds"),
        ("unknown=1", "unknown"),
    ],
)
def test_a_wrong_value_is_refused_by_name(setting: str, words: str, program: str) -> None:
    """Both versions of Helm check the schema and name the key."""
    assert words in refusal(setting, program=program)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("mps.enabled=false",), "set enforcement.compute=false and enforcement.memory=false too"),
        (("mps.enabled=false", "enforcement.memory=false"), "nothing can limit a slice"),
        (("nodes.driverRoot=/x", "nodes.runtimeClassName=nvidia"), "leave the other one empty"),
        (("nodes.driverRoot=/x",), "set plugin.privileged=true"),
        (("webhook.enabled=false",), "set operator.placement=off, or webhook.enabled=true"),
        (("webhook.enabled=false", "operator.placement=off"), "set operator.alignment=report or off"),
        (("webhook.port=9402",), "webhook.port and operator.metricsPort are both 9402"),
        (
            ("operator.podDisruptionBudget.enabled=true", "operator.podDisruptionBudget.minAvailable=2"),
            "minAvailable is 2 of 2 replicas, so no node could ever be drained",
        ),
        (
            (
                "policies.units.gpus[0].capacity=108",
                "policies.units.gpus[0].minimum=4",
                "policies.units.gpus[0].step=8",
            ),
            "minimum 4, step 8: the minimum must not be above the capacity, and the step must divide both",
        ),
    ],
)
def test_values_that_contradict_are_refused_with_what_to_set(settings: tuple[str, ...], words: str) -> None:
    """Helm stops before anything is installed, and the sentence names the values."""
    assert words in refusal(*settings)


def test_the_release_may_not_be_in_kube_system() -> None:
    """Neither the webhook nor a policy would look at it there."""
    assert "--namespace cta-group --create-namespace" in refusal(namespace="kube-system")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_scenario_sets_only_values_that_exist(scenario: str) -> None:
    """The files in ci/ are examples too: each begins with a sentence."""
    path: Path = scenario_file(scenario)
    assert path.read_text().startswith("# ")
    jsonschema.validate(yaml.safe_load(path.read_text()), SCHEMA)


def test_every_switch_of_a_policy_takes_that_policy_away() -> None:
    """One value for each policy, under the policy's own name."""
    everything = set(of_kind(render("default"), "ValidatingAdmissionPolicy"))
    for name in set(_values()["policies"]) - {"validationActions"}:
        rest = set(of_kind(render("default", f"policies.{name}.enabled=false"), "ValidatingAdmissionPolicy"))
        kebab = re.sub("[A-Z]", lambda found: f"-{found[0].lower()}", name)
        assert everything - rest == {f"cta-group-{kebab}"}
