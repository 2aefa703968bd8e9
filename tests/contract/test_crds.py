"""The three kinds: chart, types and schema say the same, and the schema takes what it should and nothing else."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import BaseModel

from chart_rendering import CHART, ROOT, of_kind, render
from cta_group_core.names import API_GROUP, API_VERSION
from cta_group_core.nodes import Allocation, Condition, ConditionStatus, GpuStatus, NodeStatus, PcieLink
from cta_group_core.quota import NamespaceShare, PerPod, QuotaSpec, QuotaStatus
from cta_group_core.workload import (
    BudgetMeasured,
    BudgetStatus,
    CeilingStatus,
    MemoryPlan,
    RolloutStatus,
    ServerStatus,
    WorkloadOwner,
    WorkloadStatus,
)

Json = dict[str, Any]
SOURCE = ROOT / "crds"
KINDS = {"CTANode": "ctanodes", "CTAQuota": "ctaquotas", "CTAWorkload": "ctaworkloads"}

_READY = Condition(type="Ready", status=ConditionStatus.TRUE, reason="Enforced", message="in both namespaces")
_GPU = GpuStatus(
    uuid="GPU-0",
    index=0,
    product="NVIDIA H100 80GB HBM3",
    compute_capability="9.0",
    sm_count=132,
    capacity=128,
    minimum=8,
    step=8,
    memory_mib=81079,
    reserve_mib=1024,
    pci_bus_id="0000:1b:00.0",
    link=PcieLink(width=16, width_max=16, generation=1, generation_max=5),
    numa_node=-1,
    free=96,
    largest_fit=96,
    allocations=(Allocation(namespace="a", pod="p", container="c", groups=32, memory_mib=20013),),
)
_PLAN = MemoryPlan(
    product="NVIDIA H100 80GB HBM3",
    slice_mib=20013,
    context_mib=148,
    reserve_mib=3072,
    utilization="0.2071",
    weights_mib=7629,
    cache_mib=7984,
)
SAMPLES: dict[str, Json] = {
    "CTANode": {
        "status": NodeStatus(resource_name="nvidia.com/cta-group", gpus=(_GPU,), conditions=(_READY,))
        .with_totals()
        .as_api()
    },
    "CTAQuota": {
        "spec": {
            "groups": 256,
            "namespaces": ["team-a", "team-a-dev"],
            "perPod": {"max": 128},
            "cohort": "research",
            "borrowingLimit": 128,
            "reclaim": "delete",
        },
        "status": QuotaStatus(
            observed_generation=2,
            groups=256,
            used=96,
            lent=56,
            namespaces=(NamespaceShare(name="team-a", hard=200, used=96, pending=32),),
            conditions=(_READY,),
        ).as_api(),
    },
    "CTAWorkload": {
        "status": WorkloadStatus(
            owner=WorkloadOwner(api_version="apps/v1", kind="Deployment", name="qwen"),
            message="needs 32, quota 256, used 240, short 16",
            groups_per_pod=32,
            replicas_wanted=2,
            replicas_running=1,
            ceiling=CeilingStatus(replicas=10, groups=320, set_by="HorizontalPodAutoscaler qwen"),
            rollout=RolloutStatus(surge_replicas=1, surge_groups=32, unavailable_replicas=0),
            server=ServerStatus(
                engine="vLLM",
                container="vllm",
                version="0.27.1",
                arguments_form="list",
                arguments=("--model=Qwen/Qwen3-4B",),
                memory=(_PLAN,),
            ),
            budget=BudgetStatus(
                wanted="ttft-p95=400ms",
                measured=(
                    BudgetMeasured(
                        name="ttft-p95", limit_microseconds=400_000, observed_microseconds=312_500, observations=1200
                    ),
                ),
                recommended_groups=32,
                advice="32 groups keep the budget",
            ),
            conditions=(_READY,),
        ).as_api()
    },
}


def crd(kind: str) -> Json:
    """Return the definition of a kind."""
    loaded: Json = yaml.safe_load((SOURCE / f"{API_GROUP}_{KINDS[kind]}.yaml").read_text())
    return loaded


def schema(kind: str) -> Json:
    """Return the schema of a kind."""
    found: Json = crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def _nodes(schema_node: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    yield path, schema_node
    for name, child in schema_node.get("properties", {}).items():
        yield from _nodes(child, f"{path}.{name}")
    if "items" in schema_node:
        yield from _nodes(schema_node["items"], f"{path}[]")


def all_nodes() -> list[tuple[str, Json]]:
    """Return every schema of the three kinds below their roots, each with its path."""
    return [(kind + path, node) for kind in KINDS for path, node in _nodes(schema(kind)) if path]


def _at(node: Json, path: str) -> Json:
    for step in path.split("."):
        name = step.removesuffix("[]")
        node = node["properties"][name]
        node = node["items"] if step.endswith("[]") else node
    return node


def test_the_chart_carries_the_same_bytes() -> None:
    """What Helm installs is what lies in crds/; scripts/copy-crds brings it there."""

    def files(folder: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    assert files(CHART / "files" / "crds") == files(SOURCE)


@pytest.mark.parametrize("kind", KINDS)
def test_the_chart_renders_the_definition_unchanged(kind: str) -> None:
    """Templating adds labels and the annotation that keeps it, and leaves the rest alone."""
    rendered = of_kind(render("default"), "CustomResourceDefinition")[f"{KINDS[kind]}.{API_GROUP}"]
    assert rendered["spec"] == crd(kind)["spec"]
    assert rendered["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    unkept = of_kind(render("default", "crds.keep=false"), "CustomResourceDefinition")[f"{KINDS[kind]}.{API_GROUP}"]
    assert "annotations" not in unkept["metadata"]


@pytest.mark.parametrize("kind", KINDS)
def test_names_follow_the_project(kind: str) -> None:
    """Group, version, plural and the category by which ``kubectl get cta`` lists all of them."""
    definition = crd(kind)
    names = definition["spec"]["names"]
    assert definition["metadata"]["name"] == f"{names['plural']}.{API_GROUP}"
    assert names["kind"] == kind
    assert names["categories"] == ["cta"]
    assert names["shortNames"] == ["cta" + kind.removeprefix("CTA")[0].lower()]
    assert [version["name"] for version in definition["spec"]["versions"]] == [API_VERSION]
    assert definition["spec"]["versions"][0]["subresources"] == {"status": {}}


@pytest.mark.parametrize(
    ("kind", "path", "model"),
    [
        ("CTANode", "status", NodeStatus),
        ("CTANode", "status.gpus[]", GpuStatus),
        ("CTANode", "status.gpus[].link", PcieLink),
        ("CTANode", "status.gpus[].allocations[]", Allocation),
        ("CTANode", "status.conditions[]", Condition),
        ("CTAQuota", "spec", QuotaSpec),
        ("CTAQuota", "spec.perPod", PerPod),
        ("CTAQuota", "status", QuotaStatus),
        ("CTAQuota", "status.namespaces[]", NamespaceShare),
        ("CTAQuota", "status.conditions[]", Condition),
        ("CTAWorkload", "status", WorkloadStatus),
        ("CTAWorkload", "status.owner", WorkloadOwner),
        ("CTAWorkload", "status.ceiling", CeilingStatus),
        ("CTAWorkload", "status.rollout", RolloutStatus),
        ("CTAWorkload", "status.server", ServerStatus),
        ("CTAWorkload", "status.server.memory[]", MemoryPlan),
        ("CTAWorkload", "status.conditions[]", Condition),
    ],
)
def test_types_and_schema_have_the_same_fields(kind: str, path: str, model: type[BaseModel]) -> None:
    """A field that one side knows and the other does not would be dropped without a word."""
    node = _at(schema(kind), path)
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    assert set(node["properties"]) == set(fields)
    always_there = {name for name, field in fields.items() if field.is_required() or field.default is not None}
    assert set(node.get("required", ())) <= always_there
    assert {name for name, field in fields.items() if field.is_required()} <= set(node.get("required", ()))


@pytest.mark.parametrize(("path", "node"), all_nodes(), ids=[path for path, _ in all_nodes()])
def test_every_field_is_bounded_described_and_typed(path: str, node: Json) -> None:
    """Descriptions begin with the field's name; strings, lists and numbers have limits; lists say how they merge."""
    name = path.rpartition(".")[2].removesuffix("[]")
    if path.count(".") > 1:
        assert node["description"].startswith(f"{name} "), node.get("description")
    bounded = {"string": {"maxLength", "enum", "format"}, "array": {"maxItems"}, "integer": {"minimum"}}
    if name not in {"apiVersion", "kind"} or "owner" in path:
        assert bounded.get(node["type"], {"type"}) & set(node)
    assert node["type"] in {"string", "array", "integer", "object", "boolean"}
    if node["type"] == "array":
        assert node["x-kubernetes-list-type"] in {"map", "set", "atomic"}
    if name == "conditions" and not path.endswith("[]"):
        assert node["x-kubernetes-list-map-keys"] == ["type"]
    assert all(rule["message"] for rule in node.get("x-kubernetes-validations", ()))


@pytest.mark.parametrize("kind", KINDS)
def test_samples_made_by_the_types_fit_the_schema(kind: str) -> None:
    """What the plugin and the operator write is what the API server takes."""
    jsonschema.validate(SAMPLES[kind], schema(kind))


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("CTANode", ("status", "gpus", 0, "health"), "Sick"),
        ("CTANode", ("status", "gpus", 0, "capacity"), -8),
        ("CTANode", ("status", "conditions", 0, "status"), True),
        ("CTANode", ("status", "resourceName"), ""),
        ("CTAQuota", ("spec", "groups"), -1),
        ("CTAQuota", ("spec", "groups"), "256"),
        ("CTAQuota", ("spec", "groups"), 1.5),
        ("CTAQuota", ("spec", "perPod", "max"), 0),
        ("CTAQuota", ("spec", "borrowingLimit"), -8),
        ("CTAQuota", ("spec", "reclaim"), "evict"),
        ("CTAQuota", ("spec", "cohort"), "Research"),
        ("CTAQuota", ("spec", "namespaces"), []),
        ("CTAQuota", ("spec", "namespaces", 0), "team_a"),
        ("CTAQuota", ("spec", "namespaceSelector"), {"matchExpressions": [{"key": "a", "operator": "Like"}]}),
        ("CTAWorkload", ("status", "replicasWanted"), None),
        ("CTAWorkload", ("status", "owner"), {"kind": "Deployment"}),
    ],
)
def test_what_is_wrong_does_not_fit_the_schema(kind: str, path: tuple[str | int, ...], value: object) -> None:
    """Each of these is one step away from a good object."""
    bad = copy.deepcopy(SAMPLES[kind])
    node: Any = bad
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(bad, schema(kind))


def test_printer_columns_point_at_fields() -> None:
    """A column whose path leads nowhere would stay empty for ever."""
    for kind in KINDS:
        for column in crd(kind)["spec"]["versions"][0]["additionalPrinterColumns"]:
            path = column["jsonPath"].split("[?")[0].replace("[0]", "[]").removeprefix(".")
            if not path.startswith("metadata."):
                _at(schema(kind), path)
