"""Asks the driver without waiting for it for ever."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

from cta_group_plugin.errors import DriverError

Answer = TypeVar("Answer")

THREAD_NAME: Final = "question to the driver"


class DriverCalls:
    """Blocking questions about one GPU, one at a time, each in a thread of its own.

    A driver that hangs keeps that one thread, and no further question is put to it until it has answered. The threads
    are daemons: an executor's would keep this process from ending.
    """

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._has_answered = threading.Event()
        self._has_answered.set()

    async def ask(self, question: Callable[[], Answer]) -> Answer:
        """Return the answer. Raises DriverError, also when it does not come in time."""
        if not self._has_answered.is_set():
            raise DriverError("the driver has not answered the question before this one")
        self._has_answered.clear()
        answer: Future[Answer] = Future()
        threading.Thread(target=self._answer, name=THREAD_NAME, args=(question, answer), daemon=True).start()
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await asyncio.wrap_future(answer)
        except TimeoutError:
            raise DriverError(f"the driver does not answer in {self._timeout_seconds:g} s") from None

    def _answer(self, question: Callable[[], Answer], answer: "Future[Answer]") -> None:
        if not answer.set_running_or_notify_cancel():  # the time was over before this thread had its turn
            self._has_answered.set()
            return
        try:
            result = question()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to whoever asked
            self._has_answered.set()
            answer.set_exception(error)
        else:
            self._has_answered.set()
            answer.set_result(result)
