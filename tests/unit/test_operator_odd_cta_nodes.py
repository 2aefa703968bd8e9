"""CTANodes that nobody meant: whatever can be read of one is used without an error, and the rest is refused at once.

One node's plugin writes its object by itself. An error that comes later than the reading would stop the placement of
every pod of the cluster, or the process.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from cta_group_core.errors import RequestRefused
from cta_group_core.ids import NodeName
from cta_group_core.kept_room import keepable
from cta_group_core.node_choice import refusal, safe_nodes
from cta_group_core.scheduling import NodeFacts, PodTerms
from cta_group_core.vllm.gpu import kinds_of
from cta_group_operator.adapters import wire_own
from cta_group_operator.adapters.convert_own import cta_node
from cta_group_operator.ports import CtaNodeView, NodeView
from cta_group_operator.reconcile.in_flight import Offers
from cta_group_operator.reconcile.node_labels import labels_of
from operator_world import RESOURCE, a_node, a_view

_NAMES = st.sampled_from(["", "a", "b"])
_HOLDERS = st.fixed_dictionaries(
    {
        "namespace": _NAMES,
        "pod": _NAMES,
        "container": _NAMES,
        "groups": st.sampled_from([0, 1, 32, 1024]),
        "memoryMiB": st.just(0),
    }
)
_GPUS = st.fixed_dictionaries(
    {
        "uuid": st.sampled_from(["GPU-a", "GPU-b", "MIG-1", ""]),
        "index": st.sampled_from([0, 1, 255]),
        "product": st.sampled_from(["", "NVIDIA H100"]),
        "computeCapability": st.sampled_from(["", "9.0", "7.0", "nine"]),
        "capacity": st.sampled_from([0, 128, 1024]),
        "smCount": st.sampled_from([0, 132]),
        "minimum": st.just(8),
        "step": st.just(8),
        "free": st.sampled_from([0, 1, 96, 128]),
        "largestFit": st.just(0),
        "health": st.sampled_from(["Healthy", "MPSNotReady"]),
    },
    optional={"withheld": _NAMES, "allocations": st.lists(_HOLDERS, max_size=2)},
)
_NODES = st.fixed_dictionaries(
    {"resourceName": st.just(RESOURCE), "gpus": st.lists(_GPUS, max_size=3)},
    optional={"enforcement": st.sampled_from([{"mode": "strict-uniform"}, {"mode": "of a newer plugin"}])},
)


def read(status: dict[str, Any]) -> CtaNodeView:
    """Return the CTANode of node ``odd``; raises ValidationError."""
    body = {"metadata": {"name": "odd", "resourceVersion": "1"}, "status": status}
    found = cta_node(msgspec.json.decode(msgspec.json.encode(body), type=wire_own.Told))
    assert found is not None
    return found


def gpu(uuid: str, **changes: Any) -> dict[str, Any]:
    """Return an H100 of which nothing is given out."""
    facts = {"uuid": uuid, "index": 0, "product": "H100", "computeCapability": "9.0", "health": "Healthy"}
    return {**facts, "smCount": 132, "capacity": 128, "minimum": 8, "step": 8, "free": 128, **changes}


@settings(max_examples=200)
@given(_NODES, st.sampled_from([(8,), (32,), (128,), (256,), (32, 8)]))
def test_what_can_be_read_can_be_used(status: dict[str, Any], requests: Sequence[int]) -> None:
    """Planning, keeping room, labels and sizes take every CTANode that was read; a good node beside it is found."""
    try:
        odd = read(status)
    except ValidationError:
        return
    view = a_view()
    view.nodes.put(NodeView(NodeFacts(NodeName("odd"), pods=100, groups=4096), "1"))
    view.cta_nodes.put(odd)
    assert all(kind.units.capacity for kind in kinds_of(odd.status))
    assert all(len(value) <= 63 for value in labels_of(odd.status).values())
    assert view.largest_fit(4096) is None
    offers = Offers(view, {})
    if not safe_nodes(PodTerms(), requests, offers.all()):
        assert isinstance(refusal(PodTerms(), requests, offers.all()), RequestRefused)
        for kept in keepable(PodTerms(), requests, offers.all()):
            offers.keep(kept, "somebody")
    a_node(view, "good", 128, 128)
    assert "good" in safe_nodes(PodTerms(), requests, Offers(view, {}).all())


_HELD = [{"namespace": "a", "pod": "p", "container": "c", "groups": 8, "memoryMiB": 0}]


@pytest.mark.parametrize(
    ("gpus", "told"),
    [
        ([gpu("GPU-a"), gpu("GPU-a", index=1)], "GPU-a: 2 GPUs of one node cannot have the same UUID"),
        ([gpu("MIG-1", capacity=0, free=0, allocations=_HELD)], "'MIG-1'"),
    ],
)
def test_what_no_rule_can_use_is_refused_when_it_is_read(gpus: list[dict[str, Any]], told: str) -> None:
    """Two GPUs of one UUID, and a holder on a GPU that has none, are errors of the object that says so."""
    with pytest.raises(ValidationError) as refused:
        read({"resourceName": RESOURCE, "gpus": gpus})
    assert told in str(refused.value)
