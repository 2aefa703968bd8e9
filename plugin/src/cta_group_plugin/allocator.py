"""Answers kubelet's questions about groups by the rules of :mod:`.allocation`, over what this process knows.

Where to refuse: an error of GetPreferredAllocation or Allocate fails the pod for good and its controller makes another
one at once, so these two refuse only what cannot be right. PreStartContainer is asked again every 11 to 15 seconds with
the text on the pod, so whatever may get better waits there.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Final

from cta_group_core.errors import RequestRefused
from cta_group_core.ids import GpuUuid
from cta_group_core.rooms import SharePolicy
from cta_group_plugin.allocation import (
    Shares,
    check_clients,
    check_start,
    checked_gpus,
    clients_allowed,
    clients_on,
    ids_of_container,
    is_fraction,
    parse_ids,
    preferred_ids,
    shares_held,
    strays_taken,
    understood,
)
from cta_group_plugin.answers import ContainerAnswer, Rules, answer_for
from cta_group_plugin.ceilings import CeilingKeeper
from cta_group_plugin.health import is_out
from cta_group_plugin.id_book import IdBook
from cta_group_plugin.inventory import ServedGpu
from cta_group_plugin.kubelet_api import deviceplugin_v1beta1_pb2 as api
from cta_group_plugin.metrics import Metrics
from cta_group_plugin.occupancy_keeper import OccupancyKeeper
from cta_group_plugin.state import NodeState, NodeView

_LEARN_LATER_SECONDS: Final = 0.25
_OFFERS_KEPT: Final = 4  # of those that come faster than they are learnt


class Allocator:
    """Answers kubelet's questions about groups; shared by all registrations of this process."""

    def __init__(
        self,
        state: NodeState,
        ceilings: CeilingKeeper,
        rules: Rules,
        metrics: Metrics,
        on_grant: Callable[[], None],
        *,
        ensure_devices: Callable[[Sequence[ServedGpu]], Awaitable[None]] | None = None,
        occupancy: OccupancyKeeper | None = None,
        ids: IdBook | None = None,
    ) -> None:
        """``ensure_devices`` returns when the runtime knows the CDI devices of these GPUs; raises CdiUnavailable.

        Without ``occupancy`` nobody waits for memory; without ``ids`` all ids name the GPU's UUID.
        """
        self._state = state
        self._ceilings = ceilings
        self._rules = rules
        self._metrics = metrics
        self._on_grant = on_grant
        self._ensure_devices = ensure_devices
        self._occupancy = occupancy
        self._ids = ids or IdBook()
        self._offers: deque[Callable[[], None]] = deque(maxlen=_OFFERS_KEPT)
        self._learning: asyncio.TimerHandle | None = None

    def prefer(self, request: api.ContainerPreferredAllocationRequest) -> list[str]:
        """Return the groups that this container should get; raises RequestRefused."""
        available, reused = list(request.available_deviceIDs), list(request.must_include_deviceIDs)
        self._note_offer(available, reused)
        view = self._state.view
        choose = partial(
            preferred_ids,
            view.offer,
            available=available,
            must_include=reused,
            groups=request.allocation_size,
            holders=view.holders,
            # Who held what kubelet offers as free has gone, whether or not that was told.
            shares=self._shares(view, [*available, *reused]),
        )
        never = self._closed_gpus(view)
        try:
            return choose({*never, *view.faults})
        except RequestRefused:
            # A GPU that is held back until more is known is better than a pod that fails: this one waits for it.
            if view.faults.keys() <= never:
                raise
            return choose(never)

    def allocate(self, texts: list[str]) -> ContainerAnswer:
        """Return what a container with these groups gets, and note that it has them; raises CtaGroupError."""
        view = self._state.view
        ids = ids_of_container(view.offer, texts)
        gpus = checked_gpus(view.offer, view.faults, ids, self._shares(view, texts))
        strays = strays_taken(view.offer, texts, view.holders)
        if is_fraction(gpus, ids):
            check_clients(gpus[0], ids, view.holders, self._most_clients(view))
        answer = answer_for(gpus, ids, self._rules)
        if strays:
            self._ids.adopt(strays)
            self._state.learn_texts(self._ids.texts)
        self._state.note_grant(ids)
        self._on_grant()
        return answer

    async def prepare(self, texts: list[str]) -> None:
        """Return when a container with these groups can start; raises CtaGroupError or what must wait."""
        view, began = self._state.view, asyncio.get_running_loop().time()
        ids = parse_ids(view.offer, texts)
        gpus = checked_gpus(view.offer, view.faults, ids)
        self._state.note_start(ids)
        check_start(gpus, view.faults)
        if self._ensure_devices:
            await self._ensure_devices(gpus)
        if is_fraction(gpus, ids):
            await self._ceilings.prepare(gpus[0], gpus[0].slice_of(len(ids)))
        else:
            await self._ceilings.prepare_whole(gpus)
        if self._occupancy:
            await self._occupancy.until_memory_is_back(gpus, since=began)

    def _note_offer(self, free: list[str], reused: list[str]) -> None:
        """Let what kubelet offers correct the account, but later: kubelet waits for an answer now."""
        self._offers.append(partial(self._state.learn_offer_of_kubelet, free, reused, at=self._state.now()))
        if self._learning:
            self._learning.cancel()
        self._learning = asyncio.get_running_loop().call_later(_LEARN_LATER_SECONDS, self._learn_offers)

    def _learn_offers(self) -> None:
        while self._offers:
            self._offers.popleft()()

    def note_refusal(self, call: str) -> None:
        """Count a refusal of the named call."""
        self._metrics.refusals.labels(call=call).inc()

    def _shares(self, view: NodeView, asked: Iterable[str]) -> Shares | None:
        """Return the shares that keep other sizes off a GPU, those of the groups ``asked`` left out; None: none do."""
        if self._rules.enforcement.mode is not SharePolicy.STRICT_UNIFORM:
            return None
        return shares_held(view.holders, but=understood(view.offer, asked))

    def _most_clients(self, view: NodeView) -> int:
        return clients_allowed(self._rules.max_clients, view.inventory)

    def _closed_gpus(self, view: NodeView) -> set[GpuUuid]:
        most = self._most_clients(view)
        crowded = (uuid for uuid in view.offer.by_uuid if clients_on(uuid, view.holders) >= most)
        return {*(uuid for uuid, fault in view.faults.items() if is_out(fault)), *crowded}
