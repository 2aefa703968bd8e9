"""What decides between nodes where a pod fits: nothing stranded, scarce models spared, best fit, patterns, names."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.access_pattern import AccessPattern, disturb, parse_pattern
from cta_group_core.demand import NVIDIA_PRODUCT_LABEL, Demand, insisted_model
from cta_group_core.ids import GpuUuid, NodeName
from cta_group_core.moves import Tenant
from cta_group_core.names import LABEL_GPU_PRODUCT
from cta_group_core.node_choice import NodeOffer, judge, safe_nodes
from cta_group_core.rooms import GpuRoom
from cta_group_core.scheduling import Load, NodeFacts, NodeTerm, PodTerms
from cta_group_core.selectors import Operator, Requirement
from cta_group_core.units import GpuUnits

H100 = GpuUnits(sm_count=132, capacity=128, minimum=8, step=8)
EACH = Demand(asked=Load(cpu_milli=4000, memory_bytes=32 << 30, pods=1, groups=32))
"""Pods of 32 groups ask for 4 cores and 32 GiB."""
BANDWIDTH, LATENCY = AccessPattern.BANDWIDTH_BOUND, AccessPattern.LATENCY_SENSITIVE


def offer(name: str, *free: int, model: str = "A", cpu: int = 10**6, used: int = 0, demand: Demand = EACH) -> NodeOffer:
    """Return a node with these free groups, ``cpu`` thousandths of a core of which ``used`` are taken, much memory."""
    rooms = tuple(GpuRoom(GpuUuid(f"GPU-{name}-{index}"), index, H100, room) for index, room in enumerate(free))
    labels = {LABEL_GPU_PRODUCT: model}
    facts = NodeFacts(NodeName(name), labels, cpu_milli=cpu, memory_bytes=1 << 50, pods=100, groups=128 * len(free))
    return NodeOffer(facts, rooms, load=Load(cpu_milli=used, groups=facts.groups - sum(free)), demand=demand)


def test_a_pod_that_needs_much_cpu_goes_where_cpu_is_left() -> None:
    """It would leave the better fitting node with groups that no pod has cpu for."""
    poor, rich = offer("poor", 64, cpu=8000), offer("rich", 128)
    assert safe_nodes(PodTerms(cpu_milli=8000), (32,), [poor, rich]) == ("rich", "poor")


def test_a_pod_that_needs_little_uses_what_others_cannot() -> None:
    """Groups that are stranded already are for pods that ask for less than the average."""
    stranded, fits = offer("stranded", 128, cpu=1000), offer("fits", 32)
    assert safe_nodes(PodTerms(cpu_milli=500), (32,), [fits, stranded]) == ("stranded", "fits")


def test_an_average_pod_strands_nothing() -> None:
    """Where everybody asks for the same in proportion, best fit decides."""
    offers = [offer("roomy", 128, cpu=16000), offer("tight", 32, cpu=4000)]
    assert safe_nodes(PodTerms(cpu_milli=4000), (32,), offers) == ("tight", "roomy")


def test_memory_is_stranded_too() -> None:
    """What is true of cpu is true of memory."""
    poor, rich = offer("poor", 64), offer("rich", 128)
    poor = replace(poor, facts=replace(poor.facts, memory_bytes=64 << 30))
    assert safe_nodes(PodTerms(memory_bytes=64 << 30), (32,), [poor, rich]) == ("rich", "poor")


def test_nothing_is_stranded_where_nobody_asks_for_more_than_groups() -> None:
    """Without requests of cpu and memory best fit decides, on nodes of which neither is known too."""
    nothing = Demand(asked=Load(pods=3, groups=96))
    bare = NodeFacts(NodeName("n"), groups=128)
    assert nothing.stranded(PodTerms(), 32, bare, Load()) == 0
    assert Demand().stranded(PodTerms(cpu_milli=1), 32, bare, Load()) == 0


def test_a_scarce_model_is_spared() -> None:
    """A pod that takes any model leaves the one that others insist on to them, though it would fit better there."""
    demand = Demand(insisted={"H200": 512}, capacity={"H200": 1024, "A100": 1024})
    scarce, plain = offer("a", 32, model="H200", demand=demand), offer("b", 128, model="A100", demand=demand)
    assert safe_nodes(PodTerms(), (32,), [scarce, plain]) == ("b", "a")
    # Who insists on it gets it.
    insists = PodTerms(node_selector=((LABEL_GPU_PRODUCT, "H200"),))
    assert safe_nodes(insists, (32,), [scarce, plain]) == ("a",)


def test_a_few_who_insist_do_not_make_a_model_scarce() -> None:
    """Below a tenth of all groups of the model best fit decides."""
    demand = Demand(insisted={"H200": 100}, capacity={"H200": 1024})
    scarce, plain = offer("a", 32, model="H200", demand=demand), offer("b", 128, model="A100", demand=demand)
    assert safe_nodes(PodTerms(), (32,), [scarce, plain]) == ("a", "b")


def test_the_label_of_feature_discovery_counts() -> None:
    """Who insists by NVIDIA's label makes the model scarce as well."""
    demand = Demand(insisted={"NVIDIA-H200": 1024}, capacity={"H200": 1024})
    labels = {LABEL_GPU_PRODUCT: "H200", NVIDIA_PRODUCT_LABEL: "NVIDIA-H200"}
    assert demand.scarcity(NodeFacts(NodeName("n"), labels)) == 10
    assert demand.scarcity(NodeFacts(NodeName("n"), {})) == 0


@pytest.mark.parametrize(
    ("terms", "model"),
    [
        (PodTerms(), None),
        (PodTerms(node_selector=(("pool", "gpu"), (LABEL_GPU_PRODUCT, "A"))), "A"),
        (PodTerms(node_selector=((NVIDIA_PRODUCT_LABEL, "B"),)), "B"),
        (
            PodTerms(
                node_terms=(NodeTerm((Requirement(key=LABEL_GPU_PRODUCT, operator=Operator.IN, values=("A",)),)),)
            ),
            "A",
        ),
        (
            PodTerms(
                node_terms=(NodeTerm((Requirement(key=LABEL_GPU_PRODUCT, operator=Operator.IN, values=("A", "B")),)),)
            ),
            None,
        ),
        (
            PodTerms(
                node_terms=(NodeTerm((Requirement(key=LABEL_GPU_PRODUCT, operator=Operator.NOT_IN, values=("A",)),)),)
            ),
            None,
        ),
        (
            PodTerms(
                node_terms=tuple(
                    NodeTerm((Requirement(key=LABEL_GPU_PRODUCT, operator=Operator.IN, values=(one,)),)) for one in "AB"
                )
            ),
            None,
        ),
    ],
)
def test_who_insists_on_a_model(terms: PodTerms, model: str | None) -> None:
    """A pod insists on a model when it takes no other: by node selector, or by each alternative of its affinity."""
    assert insisted_model(terms) == model


def test_patterns_decide_between_equal_fits_only() -> None:
    """Who is bound by bandwidth goes where it disturbs nobody, if it fits as well there; it is never kept waiting."""
    demand = Demand(patterns={("team", "decoder"): BANDWIDTH, ("team", "chat"): LATENCY})
    free_of = {"a": "decoder", "b": "chat", "c": "silent"}
    offers = [
        replace(offer(name, 64, demand=demand), tenants={GpuUuid(f"GPU-{name}-0"): (Tenant(64, "team", tenant),)})
        for name, tenant in free_of.items()
    ]
    assert safe_nodes(PodTerms(pattern=BANDWIDTH), (32,), offers) == ("c", "a", "b")
    assert safe_nodes(PodTerms(pattern=LATENCY), (32,), offers) == ("b", "c", "a")
    assert safe_nodes(PodTerms(), (32,), offers) == ("a", "b", "c")
    tighter = [*offers[:1], offer("d", 128, demand=demand)]
    assert safe_nodes(PodTerms(pattern=BANDWIDTH), (32,), tighter) == ("a", "d")


def test_which_patterns_disturb_each_other() -> None:
    """Bandwidth disturbs its like and latency; those that say nothing, or care for latency both, are no conflict."""
    assert disturb(BANDWIDTH, BANDWIDTH)
    assert disturb(BANDWIDTH, LATENCY)
    assert disturb(LATENCY, BANDWIDTH)
    assert not disturb(LATENCY, LATENCY)
    assert not disturb(BANDWIDTH, None)
    assert (parse_pattern("bandwidth-bound"), parse_pattern("fast"), parse_pattern("")) == (BANDWIDTH, None, None)


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 16).map(lambda eights: eights * 8), min_size=1, max_size=3),
            st.integers(0, 40).map(lambda cores: cores * 1000),
            st.sampled_from("AB"),
        ),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from((8, 32, 96, 128)),
    st.integers(0, 16).map(lambda cores: cores * 1000),
)
def test_the_glance_is_right_whatever_decides(
    nodes: list[tuple[list[int], int, str]], groups: int, cpu_milli: int
) -> None:
    """With demand too, ranking by a glance names the same nodes in the same order as judging every one in full."""
    demand = replace(EACH, insisted={"A": 64}, capacity={"A": 256, "B": 256})
    pod = PodTerms(cpu_milli=cpu_milli)
    offers = [
        offer(f"n{place}", *free, model=model, cpu=cpu, demand=demand) for place, (free, cpu, model) in enumerate(nodes)
    ]
    best = sorted(one.rank for one in (judge(pod, (groups,), here) for here in offers) if one.rank is not None)[:3]
    assert safe_nodes(pod, (groups,), offers) == tuple(rank[-1] for rank in best)
