"""An event loop in a thread of its own, for what must be answered at once whatever the rest of the process is doing."""

import asyncio
import threading
import time
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

_BEAT_SECONDS: Final = 1.0
_JOIN_SECONDS: Final = 5.0
_LAST_TURNS: Final = 10
"""So that connections which are closed or aborted are gone; that takes two or three."""
Result = TypeVar("Result")


class SideLoop:
    """The thread lives until :meth:`stop`; that and :meth:`run` are called from another loop."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
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
            for _ in range(_LAST_TURNS):
                self._loop.run_until_complete(asyncio.sleep(0))
        finally:
            self._loop.close()

    def _beat(self) -> None:
        self._beaten = time.monotonic()
        self._loop.call_later(_BEAT_SECONDS, self._beat)
