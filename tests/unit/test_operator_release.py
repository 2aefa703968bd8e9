"""The patch that releases a pod, applied to pods of every shape that affinity can have."""

import copy
from typing import Any

import msgspec
import pytest

from cta_group_core.ids import NodeName
from cta_group_core.names import GATE_PLACEMENT
from cta_group_operator.adapters import wire
from cta_group_operator.adapters.convert import Converter
from cta_group_operator.reconcile.in_flight import pinned_nodes
from cta_group_operator.reconcile.release import nodes_to_pin, release_patch

Json = dict[str, Any]
NODES = (NodeName("b"), NodeName("a"), NodeName("c"))
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ZONE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["x"]}]}
NAMED = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
LIKED = {"weight": 1, "preference": ZONE}


def pod(affinity: Json | None = None, annotations: Json | None = None, gates: tuple[str, ...] = ()) -> Json:
    """Return a gated pod as the API server has it."""
    spec: Json = {
        "containers": [{"name": "c", "resources": {"requests": {"nvidia.com/cta-group": "32"}}}],
        "schedulingGates": [{"name": name} for name in (*gates, GATE_PLACEMENT)],
    }
    if affinity is not None:
        spec["affinity"] = affinity
    metadata: Json = {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7"}
    if annotations is not None:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": spec}


def apply(made: Json, operations: list[Json]) -> Json:
    """Apply a JSON patch as RFC 6902 says, as far as these patches go; a failed test raises AssertionError."""
    result = copy.deepcopy(made)
    for operation in operations:
        *way, last = [part.replace("~1", "/") for part in operation["path"].split("/")[1:]]
        place: Any = result
        for part in way:
            place = place[int(part)] if isinstance(place, list) else place[part]
        key: Any = last if isinstance(place, dict) else (len(place) if last == "-" else int(last))
        if operation["op"] == "test":
            assert place[key] == operation["value"]
        elif operation["op"] == "remove":
            del place[key]
        elif isinstance(place, list):
            place.insert(key, operation["value"])
        else:
            place[key] = operation["value"]
    return result


def released(made: Json) -> Json:
    """Return the pod after its release to all of NODES that it can express."""
    view = Converter("nvidia.com/cta-group").pod(msgspec.convert(made, wire.Pod))
    assert view is not None
    return apply(made, release_patch(view, nodes_to_pin(view, NODES)))


def node_affinity(made: Json) -> Json:
    """Return a pod's node affinity."""
    found: Json = made["spec"]["affinity"]["nodeAffinity"]
    return found


@pytest.mark.parametrize(
    "affinity", [None, {}, {"podAffinity": {}}, {"nodeAffinity": {}}, {"nodeAffinity": {PREFERRED: [LIKED]}}]
)
def test_a_pod_without_terms_gets_one_a_node(affinity: Json | None) -> None:
    """Each candidate is a term, the order is said by weights, and what was there stays."""
    after = node_affinity(released(pod(affinity)))
    assert [term["matchFields"][0]["values"] for term in after[REQUIRED]["nodeSelectorTerms"]] == [["b"], ["a"], ["c"]]
    weights = [(one["weight"], one["preference"]) for one in after[PREFERRED] if one != LIKED]
    assert [weight for weight, _ in weights] == [100, 50]
    assert weights[0][1] == NAMED
    assert (LIKED in after[PREFERRED]) is bool(affinity and affinity.get("nodeAffinity"))


def test_terms_that_are_there_each_get_the_best_node() -> None:
    """The number of terms is fixed while a pod is gated, so each of them gets the best node, and nothing is lost."""
    own = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["z"]}]}
    after = node_affinity(released(pod({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [ZONE, own]}}})))
    first, second = after[REQUIRED]["nodeSelectorTerms"]
    assert first == {**ZONE, **NAMED}
    assert second["matchFields"] == [*own["matchFields"], *NAMED["matchFields"]]
    assert PREFERRED not in after


def test_an_empty_term_is_left_alone() -> None:
    """It holds for no node, and the API server refuses whoever adds to it."""
    terms = released(pod({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}, ZONE]}}}))
    assert terms["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] == [{}, {**ZONE, **NAMED}]


@pytest.mark.parametrize("annotations", [None, {"a/b": "kept"}])
def test_gate_and_annotation(annotations: Json | None) -> None:
    """Only our gate is taken off, and the nodes are noted beside the annotations that are there."""
    after = released(pod(annotations=annotations, gates=("theirs",)))
    assert after["spec"]["schedulingGates"] == [{"name": "theirs"}]
    assert after["metadata"]["annotations"] == {**(annotations or {}), "ctagroup.dev/placement-nodes": "b,a,c"}


@pytest.mark.parametrize(("key", "value"), [("uid", "another"), ("resourceVersion", "8")])
def test_another_pod_or_version_is_not_patched(key: str, value: str) -> None:
    """A pod that was made again or changed fails the patch's tests, so nothing of it is applied."""
    view = Converter("nvidia.com/cta-group").pod(msgspec.convert(pod(), wire.Pod))
    assert view is not None
    changed = pod()
    changed["metadata"][key] = value
    with pytest.raises(AssertionError):
        apply(changed, release_patch(view, NODES))


def test_candidates_are_read_back_from_the_pod() -> None:
    """What was promised can be read from the released pod itself, so a restart loses nothing."""
    view = Converter("nvidia.com/cta-group").pod(msgspec.convert(released(pod()), wire.Pod))
    assert view is not None
    assert pinned_nodes(view.terms) == NODES


def test_release_without_nodes_only_takes_the_gate_off() -> None:
    """With placement off the pod is let go as it is."""
    view = Converter("nvidia.com/cta-group").pod(msgspec.convert(pod(), wire.Pod))
    assert view is not None
    after = apply(pod(), release_patch(view, ()))
    assert after["spec"].pop("schedulingGates") == []
    assert "affinity" not in after["spec"]
