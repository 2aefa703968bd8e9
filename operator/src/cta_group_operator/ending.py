"""How the process ends: asked to by a signal, or because one of its tasks could not go on."""

import asyncio
import signal
from collections.abc import Sequence
from typing import NoReturn

from cta_group_operator.errors import BadSetting, OperatorError
from cta_group_operator.logs import EventLog

_log = EventLog("cta_group_operator.app")


class Stop(Exception):
    """Not an error: the way out of a task group."""


async def stop_when(stop: asyncio.Event) -> NoReturn:
    """Wait for the event, then raise Stop."""
    await stop.wait()
    raise Stop


def on_signals(stop: asyncio.Event) -> None:
    """Set the event at SIGTERM and SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)


def exit_code(ends: Sequence[BaseException]) -> int:
    """Say why the process ends and return 1, or 0 if it was asked to; raises BadSetting if that is why."""
    told = [end for end in ends if not isinstance(end, Stop)]
    for end in told:
        if isinstance(end, BadSetting):
            raise end
        _log.error("ended", reason=end, cause=None if isinstance(end, OperatorError) else end)
    if not told:
        _log.info("stopped")
    return 1 if told else 0
