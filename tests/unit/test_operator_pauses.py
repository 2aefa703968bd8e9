"""What the operator asks of Python so that no thread is held up for long."""

import gc
import sys
from collections.abc import Iterator

import pytest

from cta_group_operator import pauses


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    thresholds, seconds = gc.get_threshold(), sys.getswitchinterval()
    yield
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(seconds)
    gc.unfreeze()


class Link:
    """Something that can be garbage only a collector finds."""

    def __init__(self) -> None:
        self.other: Link | None = None


def test_a_first_list_brings_no_look_at_everything() -> None:
    """Three hundred thousand objects that stay, as of 10,000 pods, and the old ones are not searched even once."""
    pauses.keep_short()
    gc.collect()
    before = gc.get_stats()[2]["collections"]
    kept = [Link() for _ in range(300_000)]
    assert gc.get_stats()[2]["collections"] == before
    assert len(kept) == 300_000


def test_what_was_there_is_spared_and_goes_all_the_same() -> None:
    """It is not searched any more; it goes with its last holder, and garbage of later is found as ever."""
    there = Link()
    pauses.spare_what_is_there()
    assert not any(one is there for one in gc.get_objects())
    later = Link()
    later.other = later
    del later
    assert gc.collect() > 0


def test_a_thread_gets_its_turn_ten_times_within_what_an_answer_may_take() -> None:
    """An answer needs about five."""
    pauses.keep_short()
    assert sys.getswitchinterval() * 10 < 0.01
