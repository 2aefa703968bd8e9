"""What the cluster's pods ask for, as the operator counts it."""

from dataclasses import replace

from cta_group_core.access_pattern import AccessPattern
from cta_group_core.names import LABEL_GPU_PRODUCT
from cta_group_core.scheduling import PodTerms
from cta_group_operator.reconcile.demand_reader import FRESH_SECONDS, DemandReader, demand_of
from operator_world import SPACE, FakeClock, a_node, a_pod, a_view


def test_pods_are_summed_and_those_that_ended_are_not() -> None:
    """Cpu, memory and groups of all pods that ask, waiting or not; who ended counts no more."""
    view = a_view()
    terms = PodTerms(cpu_milli=2000, memory_bytes=5, pattern=AccessPattern.BANDWIDTH_BOUND)
    for pod in (a_pod("a", 32, terms=terms), a_pod("b", 64, gates=()), a_pod("c", 8, phase="Failed", terms=terms)):
        view.pods.put(pod)
    demand = demand_of(view)
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
    demand = demand_of(view)
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
