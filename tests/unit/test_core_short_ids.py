"""Ids in short form: what they mean on a node, and how long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.errors import InvalidText
from cta_group_core.ids import GpuUuid, GroupId, IdForm, IdTexts, ShortId, numbers_with
from gpu_strategies import uuid_of

gpus = st.lists(st.integers(0, 30), unique=True, max_size=16).map(lambda them: [uuid_of(index) for index in them])


@given(st.integers(0, 9999), st.integers(0, 9999))
def test_short_id_reads_back_what_it_prints(gpu_number: int, number: int) -> None:
    """The text parses to the same numbers."""
    assert ShortId.parse(str(ShortId(gpu_number, number))) == ShortId(gpu_number, number)


@given(st.one_of(st.text(), st.from_regex(r"g\d+-\d+")))
def test_short_text_that_is_accepted_prints_as_it_was(text: str) -> None:
    """No text is read as a group that would be written in another way: kubelet compares the text."""
    parsed = ShortId.parse(text)
    assert parsed is None or str(parsed) == text


def test_short_form_is_the_one_of_the_documents() -> None:
    """Group 17 of the GPU with the number 3."""
    texts = IdTexts(IdForm.SHORT, {uuid_of(7): 3})
    assert texts.text_of(GroupId(uuid_of(7), 17)) == "g3-017"
    assert texts.parse("g3-017") == GroupId(uuid_of(7), 17)


@pytest.mark.parametrize("form", IdForm)
def test_both_forms_are_understood_whichever_is_written(form: IdForm) -> None:
    """Pods of before a change of the setting hold ids of the other form."""
    texts, group = IdTexts(form, {uuid_of(0): 0}), GroupId(uuid_of(0), 5)
    assert texts.parse("g0-005") == texts.parse(f"{uuid_of(0)}::5") == group
    assert texts.parse(texts.text_of(group)) == group


def test_group_that_kubelet_knows_by_another_text_keeps_it() -> None:
    """One group has one text, or kubelet would count it twice and hand it out twice."""
    group = GroupId(uuid_of(0), 5)
    texts = IdTexts(IdForm.SHORT, {uuid_of(0): 0}, {group: str(group)})
    assert texts.text_of(group) == f"{uuid_of(0)}::5"
    assert texts.text_of(GroupId(uuid_of(0), 6)) == "g0-006"


def test_number_of_no_gpu_is_refused_by_name() -> None:
    """An id whose GPU nobody remembers is not taken for another GPU's."""
    with pytest.raises(InvalidText, match="'g4-000': no GPU of this node has the number 4"):
        IdTexts(IdForm.SHORT, {uuid_of(0): 0}).parse("g4-000")


def test_gpu_without_a_number_is_written_by_its_uuid() -> None:
    """A group always has a text."""
    assert IdTexts(IdForm.SHORT).text_of(GroupId(uuid_of(0), 1)) == f"{uuid_of(0)}::1"


def test_new_gpus_have_their_index_as_number() -> None:
    """So that people find the GPU of an id on a node where nothing was ever exchanged."""
    assert numbers_with({}, [(1, uuid_of(1)), (0, uuid_of(0))]) == {uuid_of(0): 0, uuid_of(1): 1}


def test_number_stays_when_the_index_becomes_another_one() -> None:
    """GPU 0 vanished, so the driver counts anew; ids that pods hold go on meaning the same GPU."""
    before = numbers_with({}, enumerate(map(uuid_of, (10, 11, 12))))
    assert numbers_with(before, [(0, uuid_of(11)), (1, uuid_of(12))]) == before
    assert numbers_with(before, [(0, uuid_of(13)), (1, uuid_of(11))])[uuid_of(13)] == 3


def test_number_that_is_in_use_for_an_unknown_gpu_is_left_alone() -> None:
    """A pod may hold ids with it."""
    assert numbers_with({}, [(0, uuid_of(0)), (1, uuid_of(1))], taken=[0]) == {uuid_of(1): 1, uuid_of(0): 2}


@given(st.lists(gpus, max_size=6))
def test_no_two_gpus_ever_have_one_number(lives: list[list[GpuUuid]]) -> None:
    """Whatever comes and goes over the life of a node, and in whatever order the driver counts."""
    numbers: dict[GpuUuid, int] = {}
    for present in lives:
        after = dict(numbers_with(numbers, enumerate(present)))
        assert numbers.items() <= after.items()
        assert set(present) <= after.keys()
        assert len(set(after.values())) == len(after)
        numbers = after
