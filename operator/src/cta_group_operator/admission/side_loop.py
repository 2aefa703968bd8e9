"""An event loop in a thread of its own, for what must be answered at once whatever the rest of the process is doing."""

import asyncio
import threading
import time
from collections.abc import Coroutine
from selectors import DefaultSelector
from typing import Any, Final, TypeVar

_BEAT_SECONDS: Final = 1.0
_JOIN_SECONDS: Final = 5.0
_LAST_TURNS: Final = 100
_LAST_TURN_SECONDS: Final = 0.01
"""So that connections which are closed, aborted or refused while they begin are gone; that takes two or three turns."""
_OWN_SOCKETS: Final = 1
"""What the loop itself listens to, to be woken."""
Result = TypeVar("Result")


class SideLoop:
    """The thread lives until :meth:`stop`; that and :meth:`run` are called from another loop."""

    def __init__(self, name: str) -> None:
        self._selector = DefaultSelector()
        self._loop = asyncio.SelectorEventLoop(self._selector)
        self._beaten = time.monotonic()
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._loop.call_soon(self._beat)
        self._thread.start()

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run something there and return what comes of it; raises what it raises."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def idle_seconds(self) -> float:
        """Return for how long the loop did nothing though something was due: at most a second while it lives."""
        return time.monotonic() - self._beaten

    async def stop(self) -> None:
        """End the loop and its thread; what still runs there is not waited for."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join, _JOIN_SECONDS)

    def _live(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._end())
        finally:
            self._loop.close()

    async def _end(self) -> None:
        for _ in range(_LAST_TURNS):
            await asyncio.sleep(_LAST_TURN_SECONDS)
            if len(self._selector.get_map()) <= _OWN_SOCKETS:
                return

    def _beat(self) -> None:
        self._beaten = time.monotonic()
        self._loop.call_later(_BEAT_SECONDS, self._beat)
