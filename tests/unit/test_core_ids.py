"""The text form of groups, as kubelet sees and stores it."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.errors import CtaGroupError, InvalidText
from cta_group_core.ids import GpuUuid, GroupId, by_gpu, parse_gpu_uuid
from gpu_strategies import ids_of, uuid_of

UUID = "GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77"

uuids = st.builds(
    lambda first, rest: GpuUuid(f"GPU-{first}{rest}"),
    st.sampled_from(string.ascii_letters + string.digits),
    st.text(string.ascii_letters + string.digits + "-", max_size=40),
)
group_ids = st.builds(GroupId, gpu=uuids, number=st.integers(0, 99_999))


@given(group_ids)
def test_id_reads_back_what_it_prints(group_id: GroupId) -> None:
    """The text form of a group parses to the same group, and prints to the same text."""
    text = str(group_id)
    assert GroupId.parse(text) == group_id
    assert str(GroupId.parse(text)) == text


@given(st.one_of(st.text(), st.from_regex(r"GPU-\w*::?\d*")))
def test_text_that_is_accepted_prints_as_it_was(text: str) -> None:
    """No text is read as a group that would be written in another way: kubelet compares the text."""
    try:
        parsed = GroupId.parse(text)
    except InvalidText:
        return
    assert str(parsed) == text


def test_id_has_the_form_that_monitoring_splits() -> None:
    """A group is written as the GPU's UUID, two colons and its number."""
    assert str(GroupId(gpu=GpuUuid(UUID), number=7)) == f"{UUID}::7"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "::",
        UUID,
        f"{UUID}::",
        f"{UUID}::01",
        f"{UUID}::00",
        f"{UUID}::-1",
        f"{UUID}::+1",
        f"{UUID}::1.0",
        f"{UUID}::1 ",
        f"{UUID}::1\n",
        f"{UUID}::1_0",
        f"{UUID}::100000",
        f"{UUID}::٣",
        f"{UUID}::1::2",
        f"{UUID}:::1",
        f"{UUID}:1",
        f" {UUID}::1",
        f"{UUID.lower()}::1",
        "GPU-::1",
        "GPU--a::1",
        "GPU-é::1",
        f"GPU-{'a' * 60}::1",
        "MIG-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77::1",
        "MIG-GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77/1/0::1",
    ],
)
def test_other_text_is_no_id(text: str) -> None:
    """Text of any other form is refused with an error that is the project's own and names the text."""
    with pytest.raises(InvalidText, match=re.escape(repr(text))) as refused:
        GroupId.parse(text)
    assert isinstance(refused.value, CtaGroupError)
    assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize(
    "text", ["", "GPU-", "MIG-5d5ba0d6", "5d5ba0d6", f"{UUID}::1", f"{UUID}\n", "GPU-a b", "gpu-a"]
)
def test_other_text_is_no_gpu(text: str) -> None:
    """A GPU's UUID starts with GPU- and holds letters, digits and dashes; a MIG device is refused."""
    with pytest.raises(InvalidText, match=re.escape(repr(text))):
        parse_gpu_uuid(text)


def test_uuid_of_nvml_is_taken_as_it_is() -> None:
    """What NVML returns stays letter by letter the same, because kubelet stores it."""
    assert parse_gpu_uuid(UUID) == UUID


def test_negative_number_cannot_be_built() -> None:
    """Nor does a group with a negative number exist when it was not read from text."""
    with pytest.raises(InvalidText, match=f"-1 of {UUID}"):
        GroupId(gpu=GpuUuid(UUID), number=-1)


@given(st.lists(st.builds(lambda index, number: ids_of(index, [number])[0], st.integers(0, 3), st.integers(0, 20))))
def test_by_gpu_keeps_every_id_in_order(ids: list[GroupId]) -> None:
    """Sorting into GPUs loses nothing, mixes nothing up, and orders numbers as numbers."""
    sorted_ids = by_gpu(ids)
    assert sorted(group_id for members in sorted_ids.values() for group_id in members) == sorted(ids)
    for gpu, members in sorted_ids.items():
        assert {group_id.gpu for group_id in members} == {gpu}
        numbers = [group_id.number for group_id in members]
        assert numbers == sorted(numbers)


def test_by_gpu_orders_ten_after_nine() -> None:
    """Group 10 comes after group 9, which sorted text would not do."""
    assert by_gpu(ids_of(0, [10, 9])) == {uuid_of(0): tuple(ids_of(0, [9, 10]))}
