"""Leads again and again: what a leader runs begins with the lease and ends with it.

Nothing here may end without a word. A task of a TaskGroup that is cancelled by anything but its group is taken for one
that ended well, and a process that has lost its leading task that way looks alive for ever and does nothing. Cancelled
by nobody it can be: before Python 3.13 a task in which a TaskGroup failed counts as being cancelled from then on, and
in 3.11.2 no ``asyncio.timeout`` of it ends as a TimeoutError any more. So what may fail and be survived runs in a task
of its own, and a task that is never to end tells when it was cancelled all the same.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, NoReturn, Protocol

from cta_group_operator.errors import LeadershipLost, TaskEnded
from cta_group_operator.logs import EventLog

_log = EventLog(__name__)

Loop = Callable[[], Coroutine[Any, Any, Any]]


class Lease(Protocol):
    """What is needed of the lease."""

    async def acquire(self) -> None:
        """Return when this replica leads."""


class Leadership(Protocol):
    """What is done while this replica leads."""

    def begin(self) -> None:
        """Start afresh."""

    def end(self) -> None:
        """Forget everything: another replica may decide otherwise meanwhile."""


async def lead(lease: Lease, work: Leadership, loops: Callable[[], Mapping[str, Loop]]) -> NoReturn:
    """Run ``loops`` whenever the lease is held, for ever. An error of theirs that is no LeadershipLost is raised."""
    while True:
        await lease.acquire()
        work.begin()
        try:
            await asyncio.create_task(_run_all(loops()), name="leading")
        except* LeadershipLost as lost:
            _log.warning("leadership_lost", reason=next(leaves(lost)))
        finally:
            work.end()


async def _run_all(loops: Mapping[str, Loop]) -> None:
    """Run all loops until one of them ends, which none does by itself."""
    async with asyncio.TaskGroup() as group:
        for name, loop in loops.items():
            group.create_task(never_ending(name, loop()), name=name)


async def never_ending(name: str, work: Coroutine[Any, Any, Any]) -> NoReturn:
    """Run ``work``; raises TaskEnded when it ends, also by a cancellation that nobody asked for here."""
    running = asyncio.create_task(work, name=name)
    try:
        await running
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise TaskEnded(f"task {name!r} was cancelled, which nobody asked for") from None
    raise TaskEnded(f"task {name!r} ended, which it never should")


def leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """Yield the errors of a group and of the groups in it."""
    for one in group.exceptions:
        if isinstance(one, BaseExceptionGroup):
            yield from leaves(one)
        else:
            yield one
