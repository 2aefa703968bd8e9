"""Writes the node's account to its CTANode: at most once a second, and only what changed.

An API server that is away delays this and nothing else; the newest account is written once it is back.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final, NoReturn

from cta_group_core.backoff import wait_seconds
from cta_group_plugin.errors import ApiUnavailable
from cta_group_plugin.logs import EventLog
from cta_group_plugin.metrics import Metrics
from cta_group_plugin.ports import NodeApi
from cta_group_plugin.report import NodeReport
from cta_group_plugin.state import NodeState, NodeView
from cta_group_plugin.status import with_times

_log = EventLog(__name__)

_LONGEST_PAUSE_SECONDS: Final = 30.0


class Publisher:
    """Keeps the CTANode of this node equal to what this process knows."""

    def __init__(
        self,
        state: NodeState,
        api: NodeApi,
        status_of: Callable[[NodeView], NodeReport],
        metrics: Metrics,
        *,
        least_seconds: float = 1.0,
        confirm_seconds: float = 60.0,
        trouble_seconds: float = 15.0,
        wall_clock: Callable[[], float] = time.time,
        on_word: Callable[[str], None] | None = None,
    ) -> None:
        """Apply an unchanged account again after ``confirm_seconds``, so that an object that was deleted comes back.

        While a GPU is in trouble it is after ``trouble_seconds``, since each apply also reads what people wrote on the
        object, which ``on_word`` is told. The API server writes nothing when an apply changes nothing.
        """
        self._state = state
        self._api = api
        self._status_of = status_of
        self._metrics = metrics
        self._least_seconds = least_seconds
        self._confirm_seconds = confirm_seconds
        self._trouble_seconds = trouble_seconds
        self._wall_clock = wall_clock
        self._on_word = on_word
        self._written: NodeReport | None = None
        self._failures = 0

    async def run(self) -> NoReturn:
        """Publish for ever, from the moment the driver or its absence is known."""
        view = self._state.view
        while view.inventory is None and not view.driver_problem:
            view = await self._state.change_after(view)
        while True:
            while view.other_in_charge:
                view = await self._state.change_after(view)
            view = self._state.view
            await self._write(self._status_of(view))
            await asyncio.sleep(self._pause_seconds())
            await self._until_there_is_news(view)
            view = self._state.view

    async def _until_there_is_news(self, view: NodeView) -> None:
        if self._failures:
            return
        try:
            async with asyncio.timeout(self._trouble_seconds if view.faults else self._confirm_seconds):
                while self._timed(self._status_of(view)) == self._written:
                    view = await self._state.change_after(view)
        except TimeoutError:
            return

    async def _write(self, status: NodeReport) -> None:
        timed = self._timed(status)
        try:
            word = await self._api.apply(timed)
        except ApiUnavailable as problem:
            self._metrics.publish_failures.inc()
            if not self._failures:
                _log.warning("publish_failed", problem=problem)
            self._failures += 1
            return
        if self._failures:
            _log.info("publish_works_again", after_failures=self._failures)
        self._metrics.published.inc()
        self._failures = 0
        self._written = timed
        if word and self._on_word:
            self._on_word(word)

    def _timed(self, status: NodeReport) -> NodeReport:
        return with_times(status, self._written, now=self._wall_clock())

    def _pause_seconds(self) -> float:
        return wait_seconds(1 + self._failures, self._least_seconds, _LONGEST_PAUSE_SECONDS)
