"""Which whole GPUs go together: those that are connected best."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.ids import GpuUuid
from cta_group_core.links import NO_LINKS, Closeness, GpuLinks, best_connected
from cta_group_core.placement import choose_gpus
from gpu_strategies import room, uuid_of

CLOSER = [Closeness.NVLINK, Closeness.SWITCH, Closeness.NUMA]


def links(pairs: Mapping[tuple[int, int], Closeness]) -> GpuLinks:
    """Return the links between GPUs given by index."""
    return GpuLinks({frozenset(map(uuid_of, pair)): closeness for pair, closeness in pairs.items()})


def clusters(closeness: Closeness, *sizes: int) -> dict[tuple[int, int], Closeness]:
    """Return the pairs of GPUs that are close in clusters of these sizes, counted by index."""
    pairs: dict[tuple[int, int], Closeness] = {}
    first = 0
    for size in sizes:
        pairs |= dict.fromkeys(combinations(range(first, first + size), 2), closeness)
        first += size
    return pairs


def chosen(free: Iterable[int], count: int, known: GpuLinks, holding: Iterable[int] = ()) -> list[int]:
    """Return the indexes of the GPUs that are chosen out of the free ones."""
    by_uuid = {uuid_of(index): index for index in free}
    return [by_uuid[gpu] for gpu in best_connected(list(by_uuid), count, known, holding=set(map(uuid_of, holding)))]


def test_gpus_that_are_all_alike_are_taken_in_order() -> None:
    """Behind NVSwitch every pair is one of NVLink; without any knowledge none is."""
    assert chosen(range(8), 4, NO_LINKS) == [0, 1, 2, 3]
    assert chosen(range(8), 4, links(clusters(Closeness.NVLINK, 8))) == [0, 1, 2, 3]


def test_pair_by_nvlink_is_found_wherever_it_is() -> None:
    """GPU 0 is in use, so the pair of 0 and 1 is broken; 2 and 3 are the next."""
    bridges = links({(0, 1): Closeness.NVLINK, (2, 3): Closeness.NVLINK})
    assert chosen([1, 2, 3], 2, bridges) == [2, 3]


def test_switch_comes_before_numa_and_nvlink_before_both() -> None:
    """One pair by NVLink is worth more than any number of others."""
    board = clusters(Closeness.NUMA, 4, 4) | clusters(Closeness.SWITCH, 2, 2, 2, 2)
    assert chosen([1, 2, 3], 2, links(board)) == [2, 3]
    assert chosen([0, 2, 4, 6], 2, links(board)) == [0, 2]
    assert chosen([0, 1, 2, 5], 2, links({**board, (2, 5): Closeness.NVLINK})) == [2, 5]


def test_pairs_of_those_that_are_left_are_kept_together() -> None:
    """The third GPU beside a pair is one that has no close neighbour."""
    bridges = links({(0, 1): Closeness.NVLINK, (3, 4): Closeness.NVLINK})
    assert chosen([0, 1, 2, 3, 4], 3, bridges) == [0, 1, 2]
    assert chosen([0, 1, 3, 4, 5], 3, bridges) == [0, 1, 5]


def test_gpus_of_an_init_container_are_part_of_the_choice() -> None:
    """Whatever is closer elsewhere."""
    bridges = links({(0, 1): Closeness.NVLINK, (2, 3): Closeness.NVLINK})
    assert chosen(range(4), 2, bridges, holding=[2]) == [2, 3]
    assert chosen(range(5), 2, bridges, holding=[4]) == [0, 4]


def worth(known: GpuLinks, gpus: Sequence[GpuUuid]) -> tuple[int, ...]:
    """Count the pairs of each kind, the closest first."""
    pairs = [known.between(one, other) for one, other in combinations(gpus, 2)]
    return tuple(pairs.count(closeness) for closeness in CLOSER)


@st.composite
def boards(draw: st.DrawFn, most: int) -> tuple[list[GpuUuid], GpuLinks, int]:
    """Return free GPUs, any links between them, and how many are wanted."""
    count = draw(st.integers(2, most))
    pairs = {pair: draw(st.sampled_from(Closeness)) for pair in combinations(range(count), 2)}
    return [uuid_of(index) for index in range(count)], links(pairs), draw(st.integers(1, count))


@given(boards(most=8))
def test_no_choice_of_up_to_eight_gpus_is_better(board: tuple[list[GpuUuid], GpuLinks, int]) -> None:
    """Every other set is looked at here."""
    gpus, known, count = board
    best = best_connected(gpus, count, known)
    assert len(set(best)) == count
    assert worth(known, best) == max(worth(known, other) for other in combinations(gpus, count))


@given(boards(most=16))
def test_choice_of_many_gpus_is_never_worse_than_the_first_ones(board: tuple[list[GpuUuid], GpuLinks, int]) -> None:
    """Where not every set is looked at, links do no harm."""
    gpus, known, count = board
    best = best_connected(gpus, count, known)
    assert list(best) == [gpu for gpu in gpus if gpu in best]
    assert len(best) == count
    assert worth(known, best) >= worth(known, gpus[:count])


@given(boards(most=16), st.data())
def test_what_is_held_is_always_chosen(board: tuple[list[GpuUuid], GpuLinks, int], data: st.DataObject) -> None:
    """Kubelet gives the reused groups in any case."""
    gpus, known, count = board
    holding = data.draw(st.lists(st.sampled_from(gpus), max_size=count, unique=True))
    assert set(holding) <= set(best_connected(gpus, count, known, holding=holding))


@given(st.lists(st.integers(1, 8), min_size=1, max_size=4).filter(lambda sizes: sum(sizes) <= 16), st.data())
def test_request_that_a_cluster_can_serve_stays_in_one(sizes: list[int], data: st.DataObject) -> None:
    """With up to sixteen GPUs, however they are connected in clusters."""
    known = links(clusters(data.draw(st.sampled_from(CLOSER)), *sizes))
    count = data.draw(st.integers(1, max(sizes)))
    best = best_connected([uuid_of(index) for index in range(sum(sizes))], count, known)
    assert sum(worth(known, best)) == count * (count - 1) // 2


@pytest.mark.parametrize("whole", [2, 3])
def test_placement_gives_whole_gpus_that_go_together(whole: int) -> None:
    """The rule of the node asks for links between entirely free GPUs of one capacity."""
    rooms = [room(index, free) for index, free in enumerate([128, 64, 128, 128, 128])]
    known = links(clusters(Closeness.SWITCH, 2) | {(2, 4): Closeness.NVLINK, (3, 4): Closeness.SWITCH})
    picked = choose_gpus(rooms, 128 * whole, links=known)
    assert [room.index for room in picked] == ([2, 4] if whole == 2 else [2, 3, 4])
