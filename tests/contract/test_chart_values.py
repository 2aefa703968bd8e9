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
_OPTIONAL_MAPS = {("affinity",), ("seLinuxOptions",), ("issuerRef",)}


def test_every_value_has_a_sentence_above_it() -> None:
    """``# --`` stands over each value, or over the map of the user's own that it is a part of."""
    told = {path for path, sentence in _sentences() if sentence}
    untold = [leaf for leaf in _leaves(_values()) if leaf not in told]
    assert untold == []


def _sentences() -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield the path of each key in values.yaml, and whether a sentence about it stands above."""
    path: tuple[str, ...] = ()
    sentence = False
    for line in VALUES.read_text().splitlines():
        key = re.match(r"( *)([A-Za-z]+):", line)
        if key:
            path = (*path[: len(key[1]) // 2], key[2])
            yield path, sentence
        sentence = line.lstrip().startswith("# --") or (sentence and line.lstrip().startswith("#"))


def test_no_value_is_an_orphan_and_no_template_reads_one_that_is_not_there() -> None:
    """Each value is read by its path, or as a part of a map that a template reads as a whole."""
    read, leaves = _read(), set(_leaves(_values()))
    assert leaves - read == set()
    assert read - leaves == set()


def _read() -> set[tuple[str, ...]]:
    """Return the paths of the values that templates read, also through the short names that templates give to maps."""
    text = "\n".join(path.read_text() for path in sorted((CHART / "templates").rglob("*")) if path.is_file())
    read = {tuple(found.split(".")) for found in re.findall(r"\.Values\.([A-Za-z.]+[A-Za-z])", text)}
    maps = {leaf[:depth] for leaf in _leaves(_values()) for depth in range(1, len(leaf))}
    whole = {path for path in read if path in maps}  # `with`, `pick` or a helper takes the map; its keys follow
    return (read - whole) | {(*path, key) for path in whole for key in _keys(path, text)}


def _keys(path: tuple[str, ...], text: str) -> set[str]:
    """Return the keys of a map of values that some template reads in short: ``.key``, ``$name.key``, ``"key"``."""
    node: Any = _values()
    for step in path:
        node = node[step]
    return {key for key in node if re.search(rf'(?:[ (]|\$[a-z]+)\.{key}\b|"{key}"', text)}


@pytest.mark.parametrize("program", HELM_VERSIONS, ids=HELM_VERSIONS.values())
@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("plugin.imagee=x", "imagee"),
        ("gpus.source=fake", "gpus"),
        ("gpus.simulated.count=0", "count"),
        ("operator.alignment=maybe", "alignment"),
        ("operator.replicas=0", "replicas"),
        ("operator.budgetSeconds=-1", "budgetSeconds"),
        ("operator.budgetSeconds=never", "budgetSeconds"),
        ("gpus.overrides[0].gpu=H100", "overrides"),
        ("gpus.exclude[0]=a\\,b", "exclude"),
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
        (("webhook.port=10250", "operator.hostNetwork=true"), "port 10250, which the kubelet has on every node"),
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
        (
            ("policies.validationActions={Deny,Warn}",),
            "policies.validationActions: the API server takes Deny and Warn not together",
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


_BESIDE = {"operatorWrites": ("cta-group-operator-wakes", "cta-group-operator-deletes", "cta-group-operator-reports")}
"""Further policies of one switch."""


def test_every_switch_of_a_policy_takes_that_policy_away() -> None:
    """One value for each policy, under the policy's own name."""
    everything = set(of_kind(render("default"), "ValidatingAdmissionPolicy"))
    for name in set(_values()["policies"]) - {"validationActions"}:
        rest = set(of_kind(render("default", f"policies.{name}.enabled=false"), "ValidatingAdmissionPolicy"))
        kebab = re.sub("[A-Z]", lambda found: f"-{found[0].lower()}", name)
        assert everything - rest == {f"cta-group-{kebab}", *_BESIDE.get(name, ())}
