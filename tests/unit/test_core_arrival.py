"""Pods on their way may arrive in any order; a promise is made only when every order ends well."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.arrival import arrive, every_order_fits, has_room_for_any_order
from cta_group_core.errors import RequestRefused
from cta_group_core.ids import GpuUuid
from cta_group_core.rooms import GpuRoom
from cta_group_core.units import GpuUnits

H100 = GpuUnits(sm_count=132, capacity=128, minimum=8, step=8)


def gpus(*free: int) -> tuple[GpuRoom, ...]:
    """Return one H100 per number of free groups."""
    return tuple(GpuRoom(GpuUuid(f"GPU-{index}"), index, H100, room) for index, room in enumerate(free))


def fits_in_order(rooms: tuple[GpuRoom, ...], order: tuple[int, ...]) -> bool:
    """Return whether the requests fit one after the other."""
    try:
        for groups in order:
            rooms = arrive(rooms, groups)
    except RequestRefused:
        return False
    return True


@given(
    st.lists(st.integers(0, 16).map(lambda eights: eights * 8), min_size=1, max_size=3),
    st.lists(st.sampled_from((8, 16, 32, 64, 96, 128, 256)), max_size=4),
)
def test_same_answer_as_trying_every_order(free: list[int], requests: list[int]) -> None:
    """The answer is the same as that of every permutation tried one by one."""
    rooms = gpus(*free)
    every = all(fits_in_order(rooms, order) for order in permutations(requests))
    assert every_order_fits(rooms, requests) is every


@given(
    st.lists(st.integers(0, 16).map(lambda eights: eights * 8), min_size=1, max_size=4),
    st.lists(st.sampled_from((8, 16, 32, 64, 96, 128)), min_size=1, max_size=5),
)
def test_plenty_of_room_is_judged_right(free: list[int], requests: list[int]) -> None:
    """What is taken for plenty of room without trying is really enough for every order."""
    rooms = gpus(*free)
    if has_room_for_any_order(rooms, requests):
        assert all(fits_in_order(rooms, order) for order in permutations(requests))


def test_plenty_of_room_needs_no_trying() -> None:
    """Many pods of different sizes on an empty node are proven at once."""
    assert every_order_fits(gpus(*[128] * 8), [8, 16, 24, 32] * 8, max_steps=0)


def test_one_order_wastes_what_another_needs() -> None:
    """48 arriving last finds both GPUs with 32 or less, though 48 arriving first would have done."""
    assert fits_in_order(gpus(64, 48), (48, 32, 32))
    assert not fits_in_order(gpus(64, 48), (32, 32, 48))
    assert not every_order_fits(gpus(64, 48), (48, 32, 32))


def test_equal_requests_are_cheap() -> None:
    """Many equal pods at once are judged in as many steps as there are pods."""
    assert every_order_fits(gpus(*[128] * 8), [32] * 32, max_steps=32)


def test_unproven_is_no() -> None:
    """When the steps do not suffice to tell, the answer is no: the pod waits until some have arrived."""
    assert not every_order_fits(gpus(*[128] * 2), (8, 16, 24, 32, 40, 48, 56), max_steps=10)


def test_arrival_takes_whole_gpus() -> None:
    """A request of several whole GPUs takes all of each."""
    assert [room.free for room in arrive(gpus(128, 96, 128), 256)] == [0, 96, 0]
