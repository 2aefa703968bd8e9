"""What is kept of nodes from round to round is what counting everything says, and only what changed is counted."""

import random
from collections.abc import Callable, Iterable
from dataclasses import replace

from cta_group_core.demand import NO_DEMAND
from cta_group_core.ids import NodeName
from cta_group_core.node_choice import NodeOffer
from cta_group_core.nodes import Allocation
from cta_group_core.scheduling import Load, PodTerms
from cta_group_operator.ports import PodView
from cta_group_operator.reconcile.in_flight import Offers, Snapshots
from cta_group_operator.reconcile.view import ClusterView
from operator_world import SPACE, FakeClock, a_node, a_pod, a_view, on

NODES = tuple(f"n{number}" for number in range(4))


def change_others(view: ClusterView, chance: random.Random, number: int) -> None:
    """Count anew what pods without groups take of the nodes."""
    counted = {NodeName(name): Load(cpu_milli=100 * chance.randrange(3), pods=1) for name in NODES}
    view.others.replace(counted if number % 2 else {})


def snapshots_of(view: ClusterView, clock: FakeClock) -> Snapshots:
    """Return what Placement makes its rounds' offers with."""
    return Snapshots(view, clock, None, lambda _: False)


def put(view: ClusterView, pod: PodView, number: int) -> None:
    """Let the API server tell a pod as its version of that number."""
    view.pods.put(replace(pod, resource_version=str(number)))


def change_a_pod(view: ClusterView, chance: random.Random, number: int) -> None:
    """Create a pod, bind it, have it end, be deleted or go, or be told anew as it is."""
    name = f"p{chance.randrange(12)}"
    pod = view.pods.get(name, SPACE)
    if pod is None:
        terms = chance.choice((PodTerms(cpu_milli=1000), on("n0", "n2"), on("n3")))
        put(view, a_pod(name, chance.choice((8, 16, 32)), gates=(), terms=terms), number)
    elif pod.node is None:
        put(view, replace(pod, node=NodeName(chance.choice(NODES))), number)
    else:
        steps: tuple[Callable[[], None], ...] = (
            lambda: put(view, replace(pod, phase="Succeeded"), number),
            lambda: put(view, replace(pod, deleting=True, ends="2026-01-01T00:02:00Z"), number),
            lambda: put(view, replace(pod, phase="Running"), number),
            lambda: view.pods.remove((SPACE, name)),
        )
        chance.choice(steps)()


def change_a_node(view: ClusterView, chance: random.Random, number: int) -> None:
    """Let a node's plugin tell something else, the node change, or both go."""
    name = chance.choice(NODES)
    node, machine = view.cta_nodes.get(name), view.nodes.get(name)
    if node is None or machine is None:
        held = Allocation(namespace=SPACE, pod=f"p{chance.randrange(12)}", container="c", groups=8, memory_mib=1)
        a_node(view, name, chance.choice((32, 96, 128)), tenants=[held])
    elif chance.random() < 0.3:
        view.cta_nodes.remove(("", name))
        view.nodes.remove(("", name))
    else:
        view.nodes.put(replace(machine, facts=replace(machine.facts, cpu_milli=number), resource_version=str(number)))


def seen_for_the_first_time(view: ClusterView) -> ClusterView:
    """Return a view that was told everything once, as it is now."""
    fresh = ClusterView()
    for pod in view.pods:
        fresh.pods.put(pod)
    for machine in view.nodes:
        fresh.nodes.put(machine)
    for node in view.cta_nodes:
        fresh.cta_nodes.put(node)
    fresh.others.replace({NodeName(name): view.others.of(NodeName(name)) for name in NODES})
    return fresh


def told(offers: Iterable[NodeOffer]) -> dict[NodeName, NodeOffer]:
    """Return offers by node without the demand, and with pods in an order that does not depend on their story."""
    return {
        one.facts.name: replace(
            one.amid(NO_DEMAND),
            in_flight=tuple(sorted(one.in_flight)),
            ending=tuple(sorted(one.ending, key=lambda pod: pod.name)),
        )
        for one in offers
    }


def test_kept_counts_are_what_counting_everything_says() -> None:
    """Whatever happens to pods and nodes, in any order."""
    for seed in range(20):
        chance = random.Random(seed)  # noqa: S311 - a story, no secret
        view, clock = a_view(), FakeClock()
        snapshots = snapshots_of(view, clock)
        for number in range(100, 200):
            chance.choice((change_a_pod, change_a_pod, change_a_node, change_others))(view, chance, number)
            clock.now += chance.choice((0.0, 3.0))
            assert told(snapshots.now({}).all()) == told(Offers(seen_for_the_first_time(view), {}).all()), (
                seed,
                number,
            )


def test_only_nodes_of_which_something_changed_are_counted_anew() -> None:
    """A pod that is bound, and a pod that is on its way, leave the other nodes' offers the very same objects."""
    view, clock = a_view(), FakeClock()
    for name in NODES:
        a_node(view, name, 128)
    snapshots = snapshots_of(view, clock)
    before = {str(one.facts.name): one for one in snapshots.now({}).all()}
    view.pods.put(a_pod("bound", gates=(), node=NodeName("n1")))
    view.pods.put(a_pod("going", gates=(), terms=on("n2")))
    after = {str(one.facts.name): one for one in snapshots.now({}).all()}
    assert {name for name in before if before[name] is not after[name]} == {"n1", "n2"}
    assert (after["n1"].in_flight, after["n2"].in_flight) == ((32,), (32,))
    again = {str(one.facts.name): one for one in snapshots.now({}).all()}
    assert [name for name in again if again[name] is not after[name]] == []


def test_another_demand_leaves_what_was_found_out_about_gpus() -> None:
    """The look at a node's GPUs is not taken again because pods elsewhere ask for something else."""
    view, clock = a_view(), FakeClock()
    a_node(view, "n1", 128)
    snapshots = snapshots_of(view, clock)
    (before,) = snapshots.now({}).all()
    glance = before.glance
    view.pods.put(a_pod("elsewhere", 64))
    clock.now += 60
    (after,) = snapshots.now({}).all()
    assert (before.demand.asked.groups, after.demand.asked.groups) == (0, 64)
    assert after.glance is glance


def test_what_an_earlier_pod_of_the_name_holds_is_not_the_new_ones() -> None:
    """A larger pod of the same name on the same node is on its way until the node reports what it asks for."""
    view = a_view()
    a_node(view, "n", 96, tenants=[Allocation(namespace=SPACE, pod="web-0", container="c", groups=32, memory_mib=1)])
    larger = a_pod("web-0", 64, gates=(), node=NodeName("n"))
    view.pods.put(larger)
    assert [one.in_flight for one in Offers(view, {}).all()] == [(64,)]
    view.pods.put(replace(larger, resource_version="2", phase="Running"))
    assert [one.in_flight for one in Offers(view, {}).all()] == [()]


def test_a_pod_that_goes_before_it_is_bound_keeps_no_room() -> None:
    """Nobody binds a pod that is being deleted, and somebody's finalizer may keep it for long."""
    view = a_view()
    a_node(view, "n", 128)
    view.pods.put(a_pod("stays", 96, gates=(), terms=on("n"), deleting=True))
    assert [one.in_flight for one in Offers(view, {}).all()] == [()]
