"""By which texts kubelet knows the groups of a node, over restarts, lost files and changes of the setting."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from cta_group_core.ids import GpuUuid, GroupId, IdForm
from cta_group_plugin.errors import StateUnavailable
from cta_group_plugin.id_book import IdBook
from cta_group_plugin.ports import PodDevices
from plugin_values import gpu, groups, uuid_of


class Kept:
    """A store that a test looks into."""

    def __init__(self, numbers: Mapping[GpuUuid, int] | None = None, *, broken: bool = False) -> None:
        self.numbers = dict(numbers or {})
        self.broken = broken

    def load_numbers(self) -> Mapping[GpuUuid, int]:
        """Return what was saved."""
        self._check()
        return self.numbers

    def keeps_numbers(self) -> bool:
        """Tell whether there is anything."""
        return bool(self.numbers)

    def save_numbers(self, numbers: Mapping[GpuUuid, int]) -> None:
        """Keep it."""
        self._check()
        self.numbers = dict(numbers)

    def _check(self) -> None:
        if self.broken:
            raise StateUnavailable("/state/gpu-numbers.json: the disk is full")


def held(texts: Iterable[object], *gpus: GpuUuid, uid: str = "uid-a") -> PodDevices:
    """Return a container of kubelet's record."""
    return PodDevices(uid, "main", frozenset(map(str, texts)), gpus)


async def book_of(
    form: IdForm, store: Kept | None, *record: PodDevices, indexes: Iterable[tuple[int, int]] = ((0, 0), (1, 1))
) -> IdBook:
    """Return the book of a process that starts with these GPUs, each by its index now and its UUID's number."""
    book = IdBook(form, store)
    book.recall(record)
    facts = [replace(gpu(which), index=index) for index, which in indexes]
    if await book.lacks(facts):
        await book.number(facts)
    return book


async def test_numbers_are_kept_before_an_id_is_written() -> None:
    """The file has what the first list says, so a crash in between leaves no id without a meaning."""
    store = Kept()
    book = await book_of(IdForm.SHORT, store)
    assert store.numbers == {uuid_of(0): 0, uuid_of(1): 1}
    assert book.texts.text_of(GroupId(uuid_of(1), 5)) == "g1-005"


async def test_long_ids_need_no_file() -> None:
    """Whoever never sets the short form has no file of numbers."""
    store = Kept()
    book = await book_of(IdForm.UUID, store)
    assert (store.numbers, book.texts.text_of(GroupId(uuid_of(1), 5))) == ({}, f"{uuid_of(1)}::5")


async def test_gpu_keeps_its_number_when_another_vanishes() -> None:
    """After a reboot without GPU 0 the driver counts from the second one; its ids go on meaning it."""
    store = Kept()
    await book_of(IdForm.SHORT, store)
    book = await book_of(IdForm.SHORT, store, indexes=[(0, 1)])
    assert book.texts.text_of(GroupId(uuid_of(1), 5)) == "g1-005"
    assert book.meaning_of("g0-005") == GroupId(uuid_of(0), 5)


async def test_lost_numbers_are_found_in_kubelets_record() -> None:
    """Pods hold ids of the GPU that was number 1 and has index 0 now: kubelet remembers which GPU they were told."""
    book = await book_of(IdForm.SHORT, Kept(), held(["g1-000", "g1-001"], uuid_of(1)), indexes=[(0, 1), (1, 2)])
    assert book.texts.numbers == {uuid_of(1): 1, uuid_of(2): 0}


async def test_lost_numbers_of_whole_gpus_are_found_together() -> None:
    """A container with two GPUs does not say which is which, and has both: the rest gets other numbers."""
    record = held(["g4-000", "g2-000"], uuid_of(1), uuid_of(0))
    book = await book_of(IdForm.SHORT, Kept(), record, indexes=[(0, 0), (1, 1), (2, 2)])
    assert {book.texts.numbers[uuid_of(0)], book.texts.numbers[uuid_of(1)]} == {2, 4}
    assert book.texts.numbers[uuid_of(2)] == 0


async def test_number_that_nobody_can_explain_is_not_given_to_another_gpu() -> None:
    """The file is lost and the answer is not readable: ids of that number mean no GPU rather than a wrong one."""
    book = await book_of(IdForm.SHORT, Kept(broken=True), held(["g0-000"]))
    assert book.texts.numbers == {uuid_of(1): 1, uuid_of(0): 2}


async def test_node_serves_though_the_numbers_cannot_be_kept() -> None:
    """A full disk is told in the log and delays nothing."""
    book = await book_of(IdForm.SHORT, Kept(broken=True))
    assert book.texts.numbers == {uuid_of(0): 0, uuid_of(1): 1}


async def test_numbers_that_somebody_removed_are_kept_again() -> None:
    """The node knows them as long as this process lives, and the next one must not count from the start."""
    store = Kept({uuid_of(0): 7})
    book = await book_of(IdForm.SHORT, store, indexes=[(0, 0)])
    assert not await book.lacks([gpu(0)])
    store.numbers = {}
    assert await book.lacks([gpu(0)])
    await book.number([gpu(0)])
    assert store.numbers == {uuid_of(0): 7}


async def test_group_that_kubelet_knows_keeps_its_text_after_the_setting_was_changed() -> None:
    """From long to short and back: a second text for a held group would hand it out twice."""
    long = held([GroupId(uuid_of(0), 5)], uuid_of(0))
    book = await book_of(IdForm.SHORT, Kept(), long)
    assert [book.texts.text_of(GroupId(uuid_of(0), number)) for number in (5, 6)] == [f"{uuid_of(0)}::5", "g0-006"]
    short = held(["g0-006"], uuid_of(0), uid="uid-b")
    back = await book_of(IdForm.UUID, Kept({uuid_of(0): 0}), short)
    assert [back.texts.text_of(GroupId(uuid_of(0), number)) for number in (5, 6)] == [f"{uuid_of(0)}::5", "g0-006"]


async def test_texts_that_are_seen_later_are_kept_too() -> None:
    """The account of kubelet tells them where its record could not be read; ids of other plugins say nothing."""
    book = await book_of(IdForm.SHORT, Kept())
    book.keep(["g0-000", "nvidia0", "MIG-1::0"])
    assert book.texts.kept == {}
    book.keep([f"{uuid_of(1)}::7"])
    assert book.texts.kept.keys() == groups(1, [7])


async def test_every_id_that_kubelet_knows_is_kept_until_nobody_holds_it() -> None:
    """A process of before may give out any of them until this one is registered."""
    book = IdBook(IdForm.SHORT)
    book.recall((), [f"{uuid_of(0)}::{number}" for number in range(3)])
    await book.number([gpu(0)])
    assert book.texts.kept.keys() == groups(0, range(3))
    book.release(groups(0, [1]))
    assert [book.texts.text_of(one)[:3] for one in sorted(groups(0, range(3)))] == ["g0-", "GPU", "g0-"]


async def test_id_that_kubelet_takes_decides_the_text() -> None:
    """It was in a list of before, and came back while the next list was under way."""
    book = await book_of(IdForm.SHORT, Kept())
    book.adopt([f"{uuid_of(0)}::5"])
    assert book.texts.text_of(GroupId(uuid_of(0), 5)) == f"{uuid_of(0)}::5"
    book.adopt(["g0-005"])
    assert book.texts.text_of(GroupId(uuid_of(0), 5)) == "g0-005"
