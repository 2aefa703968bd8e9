"""Questions to a driver that may hang."""

import threading

import pytest

from cta_group_plugin.errors import DriverError
from cta_group_plugin.mps.driver_calls import DriverCalls
from simulated_mps import eventually


async def test_answers_and_errors_come_back() -> None:
    """What the question returns or raises is what the caller gets, one question after the other."""
    calls = DriverCalls(timeout_seconds=20)

    def refuse() -> int:
        raise DriverError("no permission")

    assert await calls.ask(lambda: 1) == 1
    with pytest.raises(DriverError, match="no permission"):
        await calls.ask(refuse)
    assert await calls.ask(lambda: 2) == 2


async def test_a_question_without_answer_ends_after_its_time() -> None:
    """The time limit is told, and the next question waits for the driver, not for the caller."""
    calls = DriverCalls(timeout_seconds=0.5)
    answers, answered = threading.Event(), threading.Event()

    def hang() -> None:
        answers.wait(60)
        answered.set()

    with pytest.raises(DriverError, match=r"does not answer in 0\.5 s"):
        await calls.ask(hang)
    with pytest.raises(DriverError, match="before this one"):
        await calls.ask(lambda: 1)
    answers.set()
    assert answered.wait(60)

    async def is_asked() -> bool:
        try:
            return await calls.ask(lambda: 1) == 1
        except DriverError:  # the thread has done its work and not noted it yet
            return False

    await eventually(is_asked, "the driver, which answers again, is asked")
