"""Follows the GPUs: one thread waits for events and one asks, the event loop learns what they say.

An event reaches kubelet at once; a poll of all GPUs every few seconds finds what no event told. Neither waits for the
other: a GPU that hangs in a poll delays no event of its neighbours.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final, NoReturn

from cta_group_core.health.inputs import Seen
from cta_group_core.health.xid_catalogue import XidRule
from cta_group_core.ids import GpuUuid
from cta_group_core.links import GpuLinks
from cta_group_plugin.claims import claims_of
from cta_group_plugin.driver_threads import Asker, DriverThread
from cta_group_plugin.errors import DriverAbsent, DriverError, DriverGone
from cta_group_plugin.gpu_choice import EVERY_GPU, GpuChoice
from cta_group_plugin.gpu_source import GpuSource
from cta_group_plugin.health import seen_in_absence, seen_in_event
from cta_group_plugin.id_book import IdBook
from cta_group_plugin.inventory import Offer, offer_of
from cta_group_plugin.logs import EventLog
from cta_group_plugin.lookout import Lookout
from cta_group_plugin.neighbours import Neighbours
from cta_group_plugin.occupants import GpuLook
from cta_group_plugin.poll import Poll, Poller
from cta_group_plugin.ports import GpuEvent, GpuEventKind
from cta_group_plugin.state import NodeState

_log = EventLog(__name__)

_WAIT_SECONDS: Final = 1.0
"""One wait for events."""
_LOOK_FOR_DRIVER_SECONDS: Final = 30.0
_LEAST_POLL_SECONDS: Final = 0.5
"""Between two polls, however many events ask for one."""
_ASKED_SECONDS: Final = 1.0
_LASTING_FAILURES: Final = 2
"""Polls in a row that fail before that is more than the driver's hiccup."""


class Watcher:
    """Keeps :class:`NodeState` told of the GPUs."""

    def __init__(
        self,
        state: NodeState,
        source: GpuSource,
        asker: Asker,
        *,
        reserve_mib: int,
        choice: GpuChoice = EVERY_GPU,
        ids: IdBook | None = None,
        limits_memory: bool = True,
        poll_seconds: float = 10.0,
        withdraw_seconds: float = 1.5,
        on_program_fault: Callable[[], None] = lambda: None,
        look: Callable[[GpuUuid], GpuLook] | None = None,
        on_looks: Callable[[Mapping[GpuUuid, GpuLook]], None] = lambda _looks: None,
    ) -> None:
        """``ids`` tells how groups are written; None: by UUID.

        ``on_program_fault`` is called after an error of a program, which may have ended others under MPS.

        ``look`` finds out who uses a GPU, and ``on_looks`` is told it after each poll.

        ``withdraw_seconds`` is how long everybody has to hear that the driver is gone before the process ends.
        """
        self._state = state
        self._source = source
        self._asker = asker
        self._ids = ids or IdBook()
        self._offer_of = partial(offer_of, reserve_mib=reserve_mib, choice=choice, limits_memory=limits_memory)
        self._poll_seconds = poll_seconds
        self._withdraw_seconds = withdraw_seconds
        self._on_program_fault = on_program_fault
        self._on_looks = on_looks
        self._poller = Poller(source, asker, self._may_ask, look or Lookout(source, None, None).look)
        self._neighbours = Neighbours(source, asker)
        self._events = DriverThread("driver events")
        self._poll_soon = asyncio.Event()
        self._failures = 0

    async def run(self) -> NoReturn:
        """Watch for ever. Raises DriverGone, after the GPUs were withdrawn, when only a fresh process can go on."""
        try:
            await self._open()
            await self._until_kubelet_was_asked()
            await self._watch()
        except DriverGone as gone:
            _log.error("driver_gone", problem=gone)
            self._state.withdraw(str(gone))
            await asyncio.sleep(self._withdraw_seconds)
            raise
        finally:
            if not self._asker.hanging:
                self._events.do(self._source.close)
            self._events.end()
            self._asker.end()

    def look_soon(self) -> None:
        """Poll without waiting for the next period."""
        self._poll_soon.set()

    async def _open(self) -> None:
        """Open the driver; a node without one is idle, and looked at again from time to time."""
        while True:
            try:
                await self._asker.ask_patiently(self._source.open)
            except DriverAbsent as absent:
                _log.info("no_driver", problem=absent)
                self._state.learn_driver_problem(str(absent))
                await asyncio.sleep(_LOOK_FOR_DRIVER_SECONDS)
            else:
                return

    async def _until_kubelet_was_asked(self) -> None:
        """Wait a moment for who else serves GPUs here: what is offered first should not have to be taken back."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_ASKED_SECONDS):
                view = self._state.view
                while view.other_devices is None:
                    view = await self._state.change_after(view)

    async def _watch(self) -> NoReturn:
        """Poll and follow events until one of both cannot go on."""
        parts = [asyncio.create_task(self._poll_for_ever()), asyncio.create_task(self._follow_events())]
        try:
            done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for part in done:
                part.result()
            raise AssertionError("neither part ends by itself")
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)

    async def _poll_for_ever(self) -> NoReturn:
        while True:
            self._poll_soon.clear()
            await self._poll()
            await asyncio.sleep(min(_LEAST_POLL_SECONDS, self._poll_seconds))
            with suppress(TimeoutError):
                async with asyncio.timeout(self._poll_seconds - _LEAST_POLL_SECONDS):
                    await self._poll_soon.wait()

    async def _poll(self) -> None:
        """Look at every GPU. A driver that fails this once keeps what was known; one that is gone ends the process."""
        try:
            poll = await self._poller.poll()
        except DriverGone:
            raise
        except DriverError as problem:
            self._failures += 1
            _log.warning("gpu_poll_failed", problem=problem)
            if self._failures >= _LASTING_FAILURES:
                self._state.learn_driver_trouble(str(problem))
            return
        self._failures = 0
        if await self._ids.lacks(poll.inventory.gpus):
            await self._ids.number(poll.inventory.gpus)
        askable = [gpu for gpu in poll.inventory.gpus if self._may_ask(gpu.uuid)]
        self._learn(poll, await self._neighbours.links_between(askable))

    def _learn(self, poll: Poll, links: GpuLinks) -> None:
        view = self._state.view
        claims = claims_of(view.other_devices or {}, poll.inventory.gpus)
        owners = {gpu: ", ".join(sorted(resources)) for gpu, resources in claims.items()}
        offer = self._offer_of(poll.inventory, owners=owners, texts=self._ids.texts, links=links)
        offer = _with_silent(offer, view.offer)
        for gpu in offer.withheld:
            if gpu not in view.offer.withheld:
                _log.warning("gpu_withheld", gpu=gpu.facts.uuid, product=gpu.facts.product, reason=gpu.reason)
        absent = seen_in_absence([gpu.facts.uuid for gpu in offer.served], poll.listed)
        self._state.learn_devices(poll.inventory, offer, {**poll.seen, **absent})
        self._on_looks(poll.looks)

    def _may_ask(self, gpu: GpuUuid | None) -> bool:
        return self._state.view.health.may_call_driver(gpu)

    async def _follow_events(self) -> NoReturn:
        while True:
            self._pass_on(await self._events.ask(lambda: self._source.wait_events(_WAIT_SECONDS)))

    def _pass_on(self, events: Sequence[GpuEvent]) -> None:
        """Tell the state, and see to it that whatever an event leaves open is asked for."""
        seen: dict[GpuUuid, list[Seen]] = {}
        for event in events:
            for uuid, each in seen_in_event(event).items():
                seen.setdefault(uuid, []).extend(each)
            rule = self._rule(event)
            _log.warning("gpu_event", kind=event.kind.value, gpu=event.uuid, xid=event.xid, detail=_words(event, rule))
            if event.uuid is None or event.kind is not GpuEventKind.XID or (rule and rule.asks_the_driver):
                self._poll_soon.set()
            if rule and rule.asks_mps:
                self._on_program_fault()
        if seen:
            self._state.observe(seen)

    def _rule(self, event: GpuEvent) -> XidRule | None:
        return None if event.xid is None else self._state.view.health.rules.policy.rule_of(event.xid)


def _words(event: GpuEvent, rule: XidRule | None) -> str:
    return f"{rule.meaning} ({rule.xid_class})" if rule else event.detail


def _with_silent(offer: Offer, before: Offer) -> Offer:
    """Return ``offer`` together with GPUs of ``before`` that do not answer now: unhealthy is not the same as gone."""
    answering = {gpu.facts.uuid for gpu in offer.served} | {gpu.facts.uuid for gpu in offer.withheld}
    silent = [gpu for gpu in before.served if gpu.facts.uuid not in answering]
    if not silent:
        return before if offer == before else offer
    served = sorted([*offer.served, *silent], key=lambda gpu: (gpu.facts.index, gpu.facts.uuid))
    return replace(offer, served=tuple(served))
