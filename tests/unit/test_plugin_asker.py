"""Questions to a driver that may hang."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from conditions import until
from cta_group_plugin.driver_threads import Asker
from cta_group_plugin.errors import DriverError, DriverHangs


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Return what a hanging call waits for; open in the end, so that no thread is left behind."""
    event = threading.Event()
    yield event
    event.set()


async def test_answers_and_errors_come_back() -> None:
    """The caller gets what the call returns or raises."""
    asker = Asker()
    assert await asker.ask("a", lambda: 7) == 7

    def fail() -> None:
        raise DriverError("no")

    with pytest.raises(DriverError, match="no"):
        await asker.ask("a", fail)
    asker.end()


async def test_all_questions_are_asked_by_one_thread() -> None:
    """As long as none of them hangs."""
    asker = Asker()
    threads = {await asker.ask(number, threading.get_ident) for number in range(5)}
    assert len(threads) == 1
    assert threads != {threading.get_ident()}
    asker.end()


async def test_one_that_hangs_is_left_alone_and_the_others_are_asked(gate: threading.Event) -> None:
    """It costs the limit once; then it is refused at once until it answers, and works again."""
    asker = Asker(limit_seconds=1.0)  # for those that answer too, and the machine may be busy
    with pytest.raises(DriverHangs, match="has not answered"):
        await asker.ask("a", gate.wait)
    assert await asker.ask("b", lambda: "fine") == "fine"
    asked: list[str] = []
    with pytest.raises(DriverHangs):
        await asker.ask("a", lambda: asked.append("again"))
    assert asked == []
    assert asker.hanging.keys() == {"a"}
    gate.set()
    await until(lambda: not asker.hanging)
    assert await asker.ask("a", lambda: "back") == "back"
    asker.end()


async def test_caller_that_goes_away_does_not_make_the_next_one_slow(gate: threading.Event) -> None:
    """The call of a caller that was cancelled goes on beside the next question."""
    asker = Asker()
    first = asyncio.create_task(asker.ask("a", gate.wait))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    assert await asker.ask("b", lambda: 1) == 1
    asker.end()


async def test_patient_question_has_no_limit(gate: threading.Event) -> None:
    """Loading the driver may take longer than any question."""
    asker = Asker(limit_seconds=0.001)
    patient = asyncio.create_task(asker.ask_patiently(gate.wait))
    await until(lambda: bool(asker._one_at_a_time.locked()))
    gate.set()
    assert await patient is True
    asker.end()
