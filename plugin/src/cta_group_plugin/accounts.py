"""Reads kubelet's account of who holds what, often enough to be true and seldom enough to be polite.

kubelet answers 100 of these calls a second for all programs of the node together.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from cta_group_plugin.errors import KubeletUnavailable
from cta_group_plugin.id_book import IdBook
from cta_group_plugin.logs import EventLog
from cta_group_plugin.ports import PodDevices, PodResources
from cta_group_plugin.state import NodeState
from cta_group_plugin.unlisted import RecordEntry, UnlistedHolders

_log = EventLog(__name__)

_LEAST_SECONDS: Final = 1.0
_GATHER_SECONDS: Final = 0.2
"""After a grant, the other containers of the same pod follow within this time."""


class AccountKeeper:
    """Asks every few seconds, and soon after groups were handed out."""

    def __init__(
        self,
        state: NodeState,
        pod_resources: PodResources,
        *,
        record: Callable[[], tuple[PodDevices, ...] | None] | None = None,
        ids: IdBook | None = None,
        period_seconds: float = 5.0,
    ) -> None:
        """``record`` tells of init containers, which kubelet does not list; ``ids`` learns how kubelet writes ids."""
        self._state = state
        self._record = record
        self._ids = ids or IdBook()
        self._unlisted = UnlistedHolders()
        self._pod_resources = pod_resources
        self._period_seconds = period_seconds
        self._soon = asyncio.Event()
        self._works = True

    def ask_soon(self) -> None:
        """Ask about a second from now at the latest."""
        self._soon.set()

    async def run(self) -> None:
        """Ask for ever; an unanswered question only delays."""
        while True:
            await self._ask()
            self._soon.clear()
            await asyncio.sleep(_LEAST_SECONDS)
            try:
                async with asyncio.timeout(self._period_seconds - _LEAST_SECONDS):
                    await self._soon.wait()
                await asyncio.sleep(_GATHER_SECONDS)
            except TimeoutError:
                pass

    async def _ask(self) -> None:
        asked_at = self._state.now()
        try:
            account = await self._pod_resources.account()
        except KubeletUnavailable as problem:
            if self._works:
                _log.warning("kubelet_account_unavailable", problem=problem)
            self._works = False
            self._state.learn_account_problem(str(problem))
            return
        if not self._works:
            _log.info("kubelet_account_available")
        self._works = True
        record = await asyncio.to_thread(self._read_record)
        self._ids.keep({*account.texts, *(text for one, _ in record or () for text in one.ids)})
        unlisted = self._unlisted.after(record or (), account, sees_all_grants=bool(self._state.view.generation))
        self._state.learn_account(account, asked_at=asked_at, unlisted=unlisted)
        if record is not None and self._state.view.generation:
            self._release_ids(record)
        self._state.learn_texts(self._ids.texts)

    def _read_record(self) -> Sequence[RecordEntry] | None:
        """Read what kubelet has given out; None when nobody can tell. Blocks, and takes a while with a thousand ids."""
        found = self._record() if self._record else None
        if found is None:
            return None
        return [(one, self._ids.groups_in(one.ids)) for one in found]

    def _release_ids(self, record: Iterable[RecordEntry]) -> None:
        """Let go of the texts of groups that nobody holds, by kubelet's record and by what was given out since."""
        if self._ids.texts.kept:
            holders = (*self._state.view.holders, *self._state.view.unlisted)
            self._ids.release(frozenset().union(*(holder.ids for holder in holders), *(ids for _, ids in record)))
