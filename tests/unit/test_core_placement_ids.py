"""Which groups exactly a container gets, and which it may not get."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.errors import DoesNotFit, RequestNotAllowed, RequestRefused
from cta_group_core.ids import GroupId, by_gpu
from cta_group_core.placement import check_ids, choose_gpus, choose_ids, largest_fit
from cta_group_core.rooms import GpuRoom
from gpu_strategies import H200, T400, ids_of, indexed, nodes, requests_on, room, sizes_on_one, units_only, uuid_of

TWO_H200 = {uuid_of(0): (0, H200), uuid_of(1): (1, H200)}


def draw_available(data: st.DataObject, rooms: list[GpuRoom]) -> list[GroupId]:
    """Draw which groups are the free ones, in any order; as many per GPU as its room says."""
    ids = [
        group_id
        for gpu in rooms
        for group_id in ids_of(gpu.index, data.draw(st.permutations(range(gpu.units.capacity)))[: gpu.free])
    ]
    return data.draw(st.permutations(ids)) if len(ids) < 300 else ids[::-1]


@given(st.data(), nodes(max_gpus=4))
def test_ids_are_as_many_as_asked_on_the_chosen_gpus(data: st.DataObject, rooms: list[GpuRoom]) -> None:
    """The ids are exactly as many as asked, all available, in order, and on the GPUs that the placement rule names."""
    groups, available = data.draw(requests_on(rooms)), draw_available(data, rooms)
    try:
        chosen = choose_ids(indexed(rooms), available=available, must_include=[], groups=groups)
    except RequestRefused as refused:
        with pytest.raises(type(refused), match=f"^{re.escape(str(refused))}$"):
            choose_gpus(rooms, groups)
        return
    assert len(set(chosen)) == len(chosen) == groups
    assert set(chosen) <= set(available)
    assert list(chosen) == sorted(chosen)
    assert set(by_gpu(chosen)) == {gpu.uuid for gpu in choose_gpus(rooms, groups)}


@given(st.data(), nodes(max_gpus=3))
def test_chosen_ids_are_those_that_may_be_given(data: st.DataObject, rooms: list[GpuRoom]) -> None:
    """Whatever is chosen passes the check before allocation, so the two never contradict."""
    groups, available = data.draw(requests_on(rooms)), draw_available(data, rooms)
    try:
        chosen = choose_ids(indexed(rooms), available=available, must_include=[], groups=groups)
    except RequestRefused:
        return
    assert set(check_ids(units_only(rooms), chosen)) == set(by_gpu(chosen))


@given(st.data(), nodes(max_gpus=3))
def test_order_of_ids_does_not_matter(data: st.DataObject, rooms: list[GpuRoom]) -> None:
    """Kubelet lists ids in random order; the answer does not depend on it."""
    available = draw_available(data, rooms)
    groups = largest_fit(rooms)
    if groups:
        chosen = choose_ids(indexed(rooms), available=available, must_include=[], groups=groups)
        other_way = choose_ids(indexed(rooms[::-1]), available=available[::-1], must_include=[], groups=groups)
        assert chosen == other_way


@given(st.data(), nodes(max_gpus=3))
def test_reused_ids_are_part_of_the_answer(data: st.DataObject, rooms: list[GpuRoom]) -> None:
    """Ids that kubelet reuses are in the answer or the request is refused; they are never dropped."""
    groups, available = data.draw(requests_on(rooms)), draw_available(data, rooms)
    reused = data.draw(st.lists(st.sampled_from(available), unique=True, max_size=16)) if available else []
    others = [group_id for group_id in available if data.draw(st.booleans()) or group_id not in reused]
    try:
        chosen = choose_ids(indexed(rooms), available=others, must_include=reused, groups=groups)
    except RequestRefused:
        return
    assert set(reused) <= set(chosen)
    assert len(set(chosen)) == groups
    assert set(chosen) <= set(available)


def test_lowest_free_numbers_are_taken() -> None:
    """Of the GPU that fits best, the free groups with the lowest numbers are taken, as numbers."""
    available = ids_of(0, range(128)) + ids_of(1, range(100, 7, -1))
    chosen = choose_ids(TWO_H200, available=available, must_include=[], groups=8)
    assert chosen == tuple(ids_of(1, range(8, 16)))


def test_reused_ids_come_first_even_with_high_numbers() -> None:
    """Reused groups with high numbers stay in, and the rest is filled up from the lowest."""
    chosen = choose_ids(TWO_H200, available=ids_of(1, range(100)), must_include=ids_of(1, [127, 126]), groups=8)
    assert chosen == tuple(ids_of(1, [0, 1, 2, 3, 4, 5, 126, 127]))


def test_reused_ids_count_as_room() -> None:
    """A GPU whose free groups and reused ones together are enough serves the request."""
    chosen = choose_ids(TWO_H200, available=ids_of(0, range(8)), must_include=ids_of(0, range(8, 16)), groups=16)
    assert chosen == tuple(ids_of(0, range(16)))


def test_exactly_the_reused_ids_are_enough() -> None:
    """A container that asks for as many as it reuses gets those, on a GPU where nothing else is free."""
    reused = ids_of(0, range(40, 48))
    assert choose_ids(TWO_H200, available=[], must_include=reused, groups=8) == tuple(reused)


def test_more_reused_than_asked_is_refused() -> None:
    """Sixteen groups to reuse never become eight: dropping some would give kubelet a list it does not accept."""
    with pytest.raises(RequestNotAllowed, match="asked for 8 groups that reuse 16; ask for 16 or more"):
        choose_ids(TWO_H200, available=[], must_include=ids_of(0, range(16)), groups=8)


@pytest.mark.parametrize("number", [0, 3])
def test_reused_ids_of_a_gpu_that_is_gone_are_refused(number: int) -> None:
    """Groups of a GPU that is not served now cannot be reused; the refusal names the first one."""
    told = f"reuse {uuid_of(7)}::{number}, but this GPU is not served by this node now"
    with pytest.raises(DoesNotFit, match=told):
        choose_ids(TWO_H200, available=ids_of(0, range(128)), must_include=ids_of(7, [4, number]), groups=8)


def test_reused_id_beyond_the_gpu_is_refused() -> None:
    """A group that the GPU does not have cannot be reused."""
    with pytest.raises(DoesNotFit, match=f"reuse {uuid_of(0)}::128, but this GPU has no such group"):
        choose_ids(TWO_H200, available=ids_of(0, range(128)), must_include=ids_of(0, [128]), groups=8)


def test_ids_that_no_gpu_has_are_never_chosen() -> None:
    """Groups beyond the capacity, and of GPUs that are not served, do not count as room."""
    available = ids_of(0, range(120, 200)) + ids_of(7, range(128))
    assert choose_ids(TWO_H200, available=available, must_include=[], groups=8) == tuple(ids_of(0, range(120, 128)))
    with pytest.raises(DoesNotFit, match=r"GPU 0: 8 of 128, GPU 1: 0 of 128"):
        choose_ids(TWO_H200, available=available, must_include=[], groups=16)


def test_whole_gpus_are_given_with_all_their_groups() -> None:
    """256 groups are all groups of two GPUs, reused ones among them counted once."""
    available = ids_of(0, range(128)) + ids_of(1, range(128))
    chosen = choose_ids(TWO_H200, available=available, must_include=ids_of(1, range(8)), groups=256)
    assert chosen == tuple(available)


class TestCheck:
    """What kubelet wants to give to a container, checked before the slice is made."""

    units = units_only([room(0, 128), room(1, 128), room(2, 6, T400)])

    @pytest.mark.parametrize("groups", sizes_on_one(H200))
    def test_any_groups_of_one_gpu_in_an_allowed_size(self, groups: int) -> None:
        """Kubelet may pick other numbers than were preferred: any of one GPU will do."""
        assert check_ids(self.units, ids_of(1, range(128 - groups, 128))) == (uuid_of(1),)

    def test_whole_gpus(self) -> None:
        """All groups of two equal GPUs are given."""
        assert check_ids(self.units, ids_of(1, range(128)) + ids_of(0, range(128))) == (uuid_of(0), uuid_of(1))

    def test_spread_over_two_gpus(self) -> None:
        """16 + 16 over two GPUs is refused in words that say how many lie where."""
        with pytest.raises(RequestNotAllowed, match=rf"^32 groups .*16 of 128 on {uuid_of(0)}, 16 of 128 on"):
            check_ids(self.units, ids_of(0, range(16)) + ids_of(1, range(16)))

    def test_whole_gpu_and_a_part_of_another(self) -> None:
        """128 + 64 is refused although the first GPU is whole."""
        with pytest.raises(RequestNotAllowed, match="on several GPUs"):
            check_ids(self.units, ids_of(0, range(128)) + ids_of(1, range(64)))

    def test_whole_gpus_of_two_capacities(self) -> None:
        """A whole H200 and a whole display card together are refused, as the placement rule would."""
        with pytest.raises(RequestNotAllowed, match="whole GPUs of one capacity only"):
            check_ids(self.units, ids_of(0, range(128)) + ids_of(2, range(6)))

    @pytest.mark.parametrize("groups", [1, 4, 12, 127])
    def test_size_off_the_steps(self, groups: int) -> None:
        """A size that the GPU does not allow is refused, though every group exists."""
        with pytest.raises(RequestNotAllowed, match=f"^{groups} groups are not allowed"):
            check_ids(self.units, ids_of(0, range(groups)))

    def test_one_group_named_eight_times_is_one(self) -> None:
        """Repeating a group does not make a slice of eight."""
        with pytest.raises(RequestNotAllowed, match=r"^1 groups are not allowed"):
            check_ids(self.units, ids_of(0, [5] * 8))

    def test_group_beyond_the_capacity(self) -> None:
        """A number that the GPU does not have is refused by name, with the numbers it has."""
        with pytest.raises(RequestNotAllowed, match=f"{uuid_of(0)}::128: this GPU has groups 0 to 127"):
            check_ids(self.units, ids_of(0, range(121, 129)))

    def test_gpu_that_is_not_served(self) -> None:
        """A group of a GPU that vanished, or is unhealthy, is refused as something that may come back."""
        with pytest.raises(DoesNotFit, match=f"^{uuid_of(7)}::0: GPU {uuid_of(7)} is not served"):
            check_ids(self.units, ids_of(7, range(8)))

    def test_nothing(self) -> None:
        """No id at all is refused."""
        with pytest.raises(RequestNotAllowed, match="no device id was given"):
            check_ids(self.units, [])
