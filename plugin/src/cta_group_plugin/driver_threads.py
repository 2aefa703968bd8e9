"""Threads that ask the driver, so that nothing else ever waits for it.

The driver's calls block, for ever when a GPU is in the wrong kind of trouble. Such a call cannot be ended, so its
thread is left to it, and another one asks on about the other GPUs. The threads are daemons: none keeps the process from
ending.
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from cta_group_plugin.errors import DriverHangs
from cta_group_plugin.logs import EventLog

_log = EventLog(__name__)

Answer = TypeVar("Answer")


class DriverThread:
    """One thread that makes one call after the other. It starts with the first."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._started = False

    def ask(self, call: Callable[[], Answer]) -> "asyncio.Future[Answer]":
        """Let the thread make ``call``; the future has its answer or its error."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()

        def make() -> None:
            try:
                settle = _setter(answer, "set_result", call())
            except BaseException as error:  # noqa: BLE001 - every error belongs to whoever asked
                settle = _setter(answer, "set_exception", error)
            with suppress(RuntimeError):  # nobody waits any more: the event loop is closed
                loop.call_soon_threadsafe(settle)

        self._put(make)
        return answer

    def do(self, call: Callable[[], None]) -> None:
        """Let the thread make ``call``, of which nobody wants to hear again; it must not raise."""
        self._put(call)

    def end(self) -> None:
        """End the thread once it has made the calls that it was given."""
        self._calls.put(None)

    def _put(self, call: Callable[[], None]) -> None:
        self._calls.put(call)
        if not self._started:
            self._started = True
            threading.Thread(target=self._make_calls, name=self._name, daemon=True).start()

    def _make_calls(self) -> None:
        while (make := self._calls.get()) is not None:
            make()


def _setter(future: "asyncio.Future[Any]", method: str, value: object) -> Callable[[], None]:
    def settle() -> None:
        if not future.done():
            getattr(future, method)(value)

    return settle


class Asker:
    """Asks in one thread at a time. Who does not answer keeps the thread, and is asked nothing more until it does."""

    def __init__(self, *, limit_seconds: float = 10.0) -> None:
        """Wait ``limit_seconds`` for each answer: a GPU that is well takes milliseconds, seconds at its first use."""
        self._limit_seconds = limit_seconds
        self._thread = DriverThread("driver")
        self._hanging: dict[Hashable, float] = {}
        self._one_at_a_time = asyncio.Lock()

    @property
    def hanging(self) -> Mapping[Hashable, float]:
        """Who has not answered a question, with the moment of the event loop's clock at which it was asked."""
        return self._hanging

    async def ask_patiently(self, call: Callable[[], Answer]) -> Answer:
        """Return the answer of ``call``, however long it takes; raise what it raises."""
        async with self._one_at_a_time:
            return await self._thread.ask(call)

    async def ask(self, about: Hashable, call: Callable[[], Answer]) -> Answer:
        """Return the answer of ``call``; raise DriverHangs when it takes too long, and what it raises itself."""
        async with self._one_at_a_time:
            if about in self._hanging:
                raise self._hangs(about)
            began = asyncio.get_running_loop().time()
            answer = self._thread.ask(call)
            try:
                done, _ = await asyncio.wait([answer], timeout=self._limit_seconds)
            except asyncio.CancelledError:
                # The call goes on, and the next question must not be taken for slow because of it.
                self._leave_to(about, answer, began)
                raise
            if done:
                return answer.result()
            _log.warning("driver_hangs", about=about, seconds=self._limit_seconds)
            self._leave_to(about, answer, began)
            raise self._hangs(about)

    def end(self) -> None:
        """Ask nothing more."""
        self._thread.end()

    def _hangs(self, about: Hashable) -> DriverHangs:
        seconds = asyncio.get_running_loop().time() - self._hanging[about]
        return DriverHangs(f"the driver has not answered a question about it for {seconds:.0f} s")

    def _leave_to(self, about: Hashable, answer: "asyncio.Future[Any]", began: float) -> None:
        self._hanging[about] = began
        left, self._thread = self._thread, DriverThread("driver")

        def answered(late: "asyncio.Future[Any]") -> None:
            seconds = asyncio.get_running_loop().time() - self._hanging.pop(about)
            failed = None if late.cancelled() else late.exception()
            _log.info("driver_answered_late", about=about, seconds=round(seconds, 1), problem=failed)

        left.end()
        answer.add_done_callback(answered)
