"""Which GPU serves a request, and in which words it is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.errors import ContradictoryGpu, DoesNotFit, RequestNotAllowed, RequestRefused
from cta_group_core.placement import choose_gpus
from cta_group_core.profiles import PROFILES
from cta_group_core.rooms import GpuRoom, largest_fit
from gpu_strategies import H200, T400, nodes, requests_on, room, sizes_on_one, uuid_of

A100 = PROFILES["a100-80"].units
A10 = PROFILES["a10"].units


def indices(chosen: tuple[GpuRoom, ...]) -> list[int]:
    """Return the indices of the GPUs that were chosen."""
    return [gpu.index for gpu in chosen]


def expected(rooms: list[GpuRoom], groups: int) -> list[int] | type[RequestRefused]:
    """Return what the rule must answer, found by trying every GPU and every capacity in turn."""
    alone = [gpu for gpu in rooms if groups in sizes_on_one(gpu.units)]
    if alone:
        fitting = sorted((gpu.free, gpu.index) for gpu in alone if gpu.free >= groups)
        return [fitting[0][1]] if fitting else DoesNotFit
    answer: list[int] | type[RequestRefused] = RequestNotAllowed
    for capacity in sorted({gpu.units.capacity for gpu in rooms}):
        same = [gpu for gpu in rooms if gpu.units.capacity == capacity]
        free = [gpu.index for gpu in same if gpu.free == capacity]
        for count in range(2, len(same) + 1):
            if groups == count * capacity and count <= len(free):
                answer = sorted(free)[:count]
            elif groups == count * capacity and answer is RequestNotAllowed:
                answer = DoesNotFit
    return answer


@given(st.data(), nodes())
def test_choice_is_the_rule(data: st.DataObject, rooms: list[GpuRoom]) -> None:
    """For any node and any request the answer, or the sort of refusal, is the one found by trying everything."""
    groups = data.draw(requests_on(rooms))
    answer = expected(rooms, groups)
    if isinstance(answer, list):
        assert indices(choose_gpus(rooms, groups)) == answer
    else:
        with pytest.raises(answer, match=rf"^asked for {groups} groups"):
            choose_gpus(rooms, groups)


@given(st.data(), nodes())
def test_order_of_the_gpus_does_not_matter(data: st.DataObject, rooms: list[GpuRoom]) -> None:
    """The plugin and the operator may list the same GPUs in another order: answer and words stay the same."""
    groups = data.draw(requests_on(rooms))
    shuffled = data.draw(st.permutations(rooms))
    assert answer_or_words(rooms, groups) == answer_or_words(shuffled, groups)


def answer_or_words(rooms: list[GpuRoom], groups: int) -> tuple[GpuRoom, ...] | str:
    """Return the GPUs chosen, or the text of the refusal."""
    try:
        return choose_gpus(rooms, groups)
    except RequestRefused as refused:
        return str(refused)


@given(nodes())
def test_largest_fit_is_the_border(rooms: list[GpuRoom]) -> None:
    """The largest request told to people fits now, and every larger one that one GPU could serve does not."""
    largest = largest_fit(rooms)
    assert largest == 0 or len(choose_gpus(rooms, largest)) == 1
    for groups in {size for gpu in rooms for size in sizes_on_one(gpu.units) if size > largest}:
        with pytest.raises(DoesNotFit):
            choose_gpus(rooms, groups)


def test_best_fit_takes_the_fullest_gpu_with_room() -> None:
    """32 groups go to the GPU that has 40 free, not to the empty one nor to the one with 24."""
    assert indices(choose_gpus([room(0, 128), room(1, 24), room(2, 40)], 32)) == [2]


def test_tie_goes_to_the_lowest_index() -> None:
    """Of equally full GPUs the one with the lowest index is taken, wherever it stands in the list."""
    assert indices(choose_gpus([room(3, 64), room(1, 64), room(2, 64)], 32)) == [1]


def test_tie_of_index_goes_to_the_lowest_uuid() -> None:
    """Should two GPUs claim one index, the UUID decides, so that the choice is still the same every time."""
    twins = [GpuRoom(uuid=uuid_of(number), index=0, units=H200, free=64) for number in (2, 1)]
    assert choose_gpus(twins, 32)[0].uuid == uuid_of(1)


def test_four_quarters_fill_one_gpu_and_the_fifth_takes_the_next() -> None:
    """Five requests of 32 on empty H200s end with four on one GPU and one on another."""
    free = [128] * 8
    placed = []
    for _ in range(5):
        (chosen,) = choose_gpus([room(index, groups) for index, groups in enumerate(free)], 32)
        free[chosen.index] -= 32
        placed.append(chosen.index)
    assert placed == [0, 0, 0, 0, 1]


def test_request_is_never_spread_over_gpus_with_room_together() -> None:
    """96 groups do not fit where eight GPUs have 64 free each, and the refusal says asked, free and what fits."""
    with pytest.raises(DoesNotFit) as refused:
        choose_gpus([room(index, 64) for index in range(8)], 96)
    assert str(refused.value) == (
        "asked for 96 groups, but no GPU has room: free per GPU: GPU 0-7: 64 of 128 each; "
        "the largest request that fits now is 64 on one GPU"
    )


def test_refusal_tells_unequal_gpus_one_by_one() -> None:
    """GPUs with different room are told apart, and a GPU that is missing between two equal ones is not claimed."""
    rooms = [room(0, 8), room(1, 8), room(3, 8), room(4, 24, A100), room(5, 24)]
    with pytest.raises(DoesNotFit) as refused:
        choose_gpus(rooms, 32)
    assert "GPU 0-1: 8 of 128 each, GPU 3: 8 of 128, GPU 4: 24 of 108, GPU 5: 24 of 128; " in str(refused.value)


def test_full_node_says_that_nothing_fits() -> None:
    """With less than the smallest request free anywhere, the refusal says that nothing fits."""
    with pytest.raises(DoesNotFit, match=r"nothing fits now$"):
        choose_gpus([room(0, 0), room(1, 0)], 8)


def test_single_free_gpu_is_not_told_as_several() -> None:
    """One whole GPU that is free is told as the largest request only."""
    with pytest.raises(DoesNotFit, match=r"the largest request that fits now is 128 on one GPU$"):
        choose_gpus([room(0, 128), room(1, 120)], 256)


def test_nothing_fits_on_no_gpu() -> None:
    """Without GPUs the largest request is none."""
    assert largest_fit([]) == 0


def test_several_gpus_are_whole_and_entirely_free() -> None:
    """256 groups take two GPUs that nobody uses, in order of index, and leave the used ones alone."""
    rooms = [room(0, 120), room(1, 128), room(2, 0), room(3, 128), room(4, 128)]
    assert indices(choose_gpus(rooms, 256)) == [1, 3]


def test_refusal_of_whole_gpus_says_how_many_are_free() -> None:
    """Three whole GPUs where two are free: the refusal tells that two whole ones would fit."""
    with pytest.raises(DoesNotFit) as refused:
        choose_gpus([room(0, 128), room(1, 120), room(2, 128)], 384)
    assert str(refused.value) == (
        "asked for 384 groups, but too few whole GPUs are free: "
        "free per GPU: GPU 0: 128 of 128, GPU 1: 120 of 128, GPU 2: 128 of 128; "
        "the largest request that fits now is 128 on one GPU, or 256 as 2 whole GPUs"
    )


@pytest.mark.parametrize("groups", [-8, 0, 4, 12, 127, 136, 192, 1032])
def test_shape_that_no_gpu_allows_can_never_be(groups: int) -> None:
    """Sizes off the steps, and mixtures such as 128 + 64, are refused for good, with what to ask for instead."""
    with pytest.raises(RequestNotAllowed) as refused:
        choose_gpus([room(index, 128) for index in range(8)], groups)
    assert "ask for 8 to 128 in steps of 8 (one GPU), or a multiple of 128 (whole GPUs)" in str(refused.value)
    assert "free per GPU: GPU 0-7: 128 of 128 each" in str(refused.value)


def test_more_gpus_than_there_are_can_never_be() -> None:
    """1152 groups on eight H200s are refused for good, not as if waiting could help."""
    with pytest.raises(RequestNotAllowed, match="asked for 1152 groups, more than the GPUs here have"):
        choose_gpus([room(index, 0) for index in range(8)], 1152)


def test_node_without_gpus_says_so() -> None:
    """A node that offers nothing refuses in words that do not pretend there were GPUs."""
    with pytest.raises(RequestNotAllowed, match="asked for 8 groups, but this node has no GPU that offers any"):
        choose_gpus([], 8)


class TestDisplayCardBesideDataCentreGpus:
    """A node with a T400 (capacity 6) before eight H200s (capacity 128 each)."""

    rooms = (room(0, 6, T400), *(room(index, 128) for index in range(1, 9)))

    def test_all_groups_of_the_h200s(self) -> None:
        """1024 groups are the eight H200s; the display card takes no part."""
        assert indices(choose_gpus(self.rooms, 1024)) == list(range(1, 9))

    @pytest.mark.parametrize("groups", [8, 24, 96, 120])
    def test_slice_of_an_h200(self, groups: int) -> None:
        """A slice goes to an H200, also where its size is a multiple of the display card's capacity."""
        assert indices(choose_gpus(self.rooms, groups)) == [1]

    @pytest.mark.parametrize("groups", [2, 4, 6])
    def test_size_that_only_the_display_card_allows(self, groups: int) -> None:
        """Below the smallest slice of an H200 only the display card serves."""
        assert indices(choose_gpus(self.rooms, groups)) == [0]

    def test_whole_gpus_of_two_capacities_are_never_mixed(self) -> None:
        """134 groups would be an H200 and the display card together: refused for good."""
        with pytest.raises(RequestNotAllowed, match=r"6 \(whole GPUs\).*; or .*128 \(whole GPUs\)"):
            choose_gpus(self.rooms, 134)

    def test_small_gpus_are_no_substitute_for_a_slice(self) -> None:
        """24 groups wait for a slice of the full H200 rather than get four display cards."""
        rooms = [*(room(index, 6, T400) for index in range(4)), room(4, 0)]
        with pytest.raises(DoesNotFit, match="asked for 24 groups"):
            choose_gpus(rooms, 24)


class TestGroupsThatAreHeldAlready:
    """The container must reuse groups that an init container holds."""

    def test_holding_beats_best_fit(self) -> None:
        """The GPU where groups are held is taken although another fits tighter."""
        assert indices(choose_gpus([room(0, 32), room(1, 96)], 32, holding={uuid_of(1)})) == [1]

    def test_no_room_beside_what_is_held(self) -> None:
        """Where the held GPU has no room, the refusal names it; another GPU's room does not help."""
        with pytest.raises(DoesNotFit, match=rf"init container holds on {uuid_of(0)}.*GPU 0: 8 of 128"):
            choose_gpus([room(0, 8), room(1, 128)], 32, holding={uuid_of(0)})

    def test_held_on_two_gpus_cannot_become_one(self) -> None:
        """Groups held on two GPUs never lead to a slice of one."""
        with pytest.raises(DoesNotFit, match="init container holds"):
            choose_gpus([room(0, 128), room(1, 128)], 32, holding={uuid_of(0), uuid_of(1)})

    def test_whole_gpus_include_the_held_one(self) -> None:
        """Of the free whole GPUs the held one is among the chosen, though others come first."""
        assert indices(choose_gpus([room(index, 128) for index in range(4)], 256, holding={uuid_of(3)})) == [0, 3]

    def test_whole_gpus_of_the_held_capacity(self) -> None:
        """Where two capacities could make up the request, the one that was begun is gone on with."""
        rooms = [*(room(index, 108, A100) for index in range(6)), *(room(index, 72, A10) for index in range(6, 15))]
        assert indices(choose_gpus(rooms, 648)) == list(range(6))
        assert indices(choose_gpus(rooms, 648, holding={uuid_of(14)})) == list(range(6, 15))


@pytest.mark.parametrize("free", [-1, 129])
def test_room_beyond_the_gpu_cannot_be_built(free: int) -> None:
    """Less than nothing, or more than the capacity, is never free."""
    with pytest.raises(ContradictoryGpu, match=f"{free} groups cannot be free of 128"):
        room(0, free)
