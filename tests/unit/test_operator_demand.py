"""What the cluster's pods ask for, as the operator counts it."""

from dataclasses import replace

from cta_group_core.access_pattern import AccessPattern
from cta_group_core.demand import NO_DEMAND, Demand
from cta_group_core.names import LABEL_GPU_PRODUCT
from cta_group_core.scheduling import Load, PodTerms
from cta_group_operator.reconcile.demand_reader import FRESH_SECONDS, DemandReader
from operator_world import SPACE, FakeClock, a_node, a_pod, a_view


def test_pods_are_summed_and_those_that_ended_are_not() -> None:
    """Cpu, memory and groups of all pods that ask, waiting or not; who ended counts no more."""
    view = a_view()
    terms = PodTerms(cpu_milli=2000, memory_bytes=5, pattern=AccessPattern.BANDWIDTH_BOUND)
    for pod in (a_pod("a", 32, terms=terms), a_pod("b", 64, gates=()), a_pod("c", 8, phase="Failed", terms=terms)):
        view.pods.put(pod)
    demand = DemandReader(view, FakeClock()).now()
    assert (demand.asked.cpu_milli, demand.asked.memory_bytes, demand.asked.groups) == (2000, 5, 96)
    assert demand.patterns == {(SPACE, "a"): AccessPattern.BANDWIDTH_BOUND}
    assert demand.capacity == {}


def test_models_that_are_insisted_on() -> None:
    """Groups by the model that pods insist on, and the groups that there are of each model."""
    view = a_view()
    for name, model in (("n1", "H200"), ("n2", "H200"), ("n3", "A100")):
        a_node(view, name, 128, 0)
        node = view.nodes.get(name)
        assert node is not None
        labelled = replace(node.facts, labels={LABEL_GPU_PRODUCT: model})
        view.nodes.put(replace(node, facts=labelled, resource_version="100"))
    view.pods.put(a_pod("picky", 32, terms=PodTerms(node_selector=((LABEL_GPU_PRODUCT, "H200"),))))
    view.pods.put(a_pod("any", 32))
    demand = DemandReader(view, FakeClock()).now()
    assert demand.insisted == {"H200": 32}
    assert demand.capacity == {"H200": 512, "A100": 256}


def test_it_is_counted_anew_after_a_moment() -> None:
    """Rounds that follow each other quickly share one count."""
    view, clock = a_view(), FakeClock()
    reader = DemandReader(view, clock)
    assert reader.now().asked.groups == 0
    view.pods.put(a_pod("a", 32))
    assert reader.now().asked.groups == 0
    clock.now += FRESH_SECONDS
    assert reader.now().asked.groups == 32


def test_sums_follow_every_change_of_the_pods() -> None:
    """Pods that come, end, change and go leave the sums of those that are there, as a reader that begins now counts."""
    view, clock = a_view(), FakeClock()
    reader = DemandReader(view, clock)
    plain = PodTerms(cpu_milli=1000, memory_bytes=7)
    picky = PodTerms(
        ((LABEL_GPU_PRODUCT, "H200"),), cpu_milli=2000, memory_bytes=5, pattern=AccessPattern.BANDWIDTH_BOUND
    )
    for number in range(6):
        view.pods.put(a_pod(f"p{number}", 8 * (number + 1), terms=picky if number % 2 else plain))
    ended = view.pods.get("p1", SPACE)
    changed = view.pods.get("p2", SPACE)
    assert ended is not None
    assert changed is not None
    view.pods.put(replace(ended, phase="Succeeded", resource_version="100"))
    view.pods.put(replace(changed, terms=picky, resource_version="101"))
    view.pods.remove((SPACE, "p3"))
    demand = reader.now()
    assert demand == DemandReader(view, clock).now()
    assert demand.asked == Load(1000 * 2 + 2000 * 2, 7 * 2 + 5 * 2, 4, 8 + 24 + 40 + 48)
    assert demand.patterns.keys() == {(SPACE, "p2"), (SPACE, "p5")}
    for name in ("p0", "p1", "p2", "p4", "p5"):
        view.pods.remove((SPACE, name))
    clock.now += FRESH_SECONDS
    assert reader.now() == NO_DEMAND


def test_a_demand_that_is_the_same_is_the_same_object() -> None:
    """Whoever is told another one ranks every node anew."""
    view, clock = a_view(), FakeClock()
    view.pods.put(a_pod("a", 32))
    reader = DemandReader(view, clock)
    first = reader.now()
    clock.now += FRESH_SECONDS
    assert reader.now() is first


def test_a_demand_that_hardly_differs_is_the_same_object() -> None:
    """One pod among hundreds changes no rank; one that insists on a model, and many of another kind, may."""
    view, clock = a_view(), FakeClock()
    terms = PodTerms(cpu_milli=4000, memory_bytes=2**35)
    for number in range(200):
        view.pods.put(a_pod(f"p{number}", 32, terms=terms))
    reader = DemandReader(view, clock)

    def after(*pods: PodTerms) -> Demand:
        for place, its in enumerate(pods):
            view.pods.put(a_pod(f"more-{clock.now:.0f}-{place}", 32, terms=its))
        clock.now += FRESH_SECONDS
        return reader.now()

    first = reader.now()
    assert after(replace(terms, cpu_milli=5000)) is first
    many = after(*[replace(terms, cpu_milli=8000)] * 20)
    assert many is not first
    insisted = after(replace(terms, node_selector=((LABEL_GPU_PRODUCT, "H200"),)))
    assert insisted is not many
    assert insisted.insisted == {"H200": 32}
    assert after(replace(terms, pattern=AccessPattern.BANDWIDTH_BOUND)) is not insisted


def test_small_drifts_add_up() -> None:
    """What is told is compared with what was told, so that many small changes are a change."""
    view, clock = a_view(), FakeClock()
    terms = PodTerms(cpu_milli=4000)
    for number in range(200):
        view.pods.put(a_pod(f"p{number}", 32, terms=terms))
    reader = DemandReader(view, clock)
    first = reader.now()
    for number in range(50):
        view.pods.put(a_pod(f"more-{number}", 32, terms=replace(terms, cpu_milli=6000)))
        clock.now += FRESH_SECONDS
        told = reader.now()
    assert told is not first
