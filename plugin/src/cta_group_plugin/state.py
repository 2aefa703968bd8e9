"""What this process knows of its node: changed on the event loop only, read by everything else.

Each part tells what it learned through one method; whoever needs to act waits for a change. Readers in other threads
(metrics) take :meth:`NodeState.view`, a value that never changes.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from cta_group_core.health.evidence import ResetEvidence
from cta_group_core.health.inputs import MpsAnswer, MpsRead, Seen
from cta_group_core.health.state import HealthRules
from cta_group_core.ids import GpuUuid, GroupId, IdTexts, by_gpu
from cta_group_plugin.daemon_answers import DaemonAnswers
from cta_group_plugin.generation import Generations, ns_since_boot
from cta_group_plugin.health import Faults, Health
from cta_group_plugin.inventory import Offer
from cta_group_plugin.ledger import Holder, Ledger
from cta_group_plugin.occupancy_view import Occupancy
from cta_group_plugin.ports import Account, Inventory, MpsState

_SETTLED_SECONDS: Final = 5.0
"""This long after the devices changed, kubelet offers what we told it."""


@dataclass(frozen=True, slots=True)
class NodeView:
    """All of it at one moment."""

    inventory: Inventory | None = None
    """``None``: the driver has not answered yet."""
    driver_problem: str = ""
    """Why there is no driver here, in words; empty when there is one."""
    driver_trouble: str = ""
    """Why the driver does not even list the GPUs now, in words; what it said before stands."""
    offer: Offer = field(default_factory=Offer)
    health: Health = field(default_factory=Health)
    other_devices: Mapping[str, frozenset[str]] | None = None
    """Ids of the devices of other plugins, by resource. ``None``: kubelet was not asked yet."""
    holders: tuple[Holder, ...] = ()
    unlisted: tuple[Holder, ...] = ()
    """Init containers of before this process started, from kubelet's record, which may still have some that ended."""
    holders_are_known: bool = False
    """Whether kubelet was asked since this process started; before, there may be more holders than these."""
    account_problem: str = ""
    """Why kubelet does not tell who holds what now, in words; empty when it does."""
    last_starts: dict[GpuUuid, int] = field(default_factory=dict)
    """Groups on each GPU of the container that was about to start last; nothing before the first."""
    mps: Mapping[GpuUuid, MpsState] = field(default_factory=dict)
    """What the supervisor last said of each GPU that is shared."""
    occupancy: Mapping[GpuUuid, Occupancy] = field(default_factory=dict)
    """Who is on each GPU that was looked at, beside tenants within their limits."""
    specification_problems: Mapping[GpuUuid, str] = field(default_factory=dict)
    """Why the CDI specification of a GPU is not there; nothing for a GPU whose specification is."""
    specifications_were_tried: bool = True
    """False until the CDI specifications were written for the first time, where there are any."""
    registered_as: str = ""
    """Name of the socket that kubelet knows us by; empty when it does not."""
    registration_problem: str = ""
    generation: int = 0
    """From when on this process decides over MPS, ns since boot; 0: not yet. See :mod:`.generation`."""
    other_in_charge: bool = False
    """Another process of ours tells kubelet and the API how the node is; see :mod:`.charge`."""

    @property
    def may_register(self) -> bool:
        """Tell whether kubelet may be told of this node's GPUs."""
        return bool(self.offer.served) and self.specifications_were_tried

    @property
    def faults(self) -> Faults:
        """The GPUs that may not take all kinds of new work now, each with why."""
        return self.health.faults

    @property
    def readiness_problem(self) -> str:
        """Why this process does not do its work yet; empty when it is registered or has nothing to register."""
        if self.offer.served:
            return "" if self.registered_as else self.registration_problem or "not registered with kubelet yet"
        return "" if self.inventory or self.driver_problem else "the driver has not answered yet"


class NodeState:
    """The one account of the node that the parts of this process share."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        wall_clock: Callable[[], float] = time.time,
        boot_clock: Callable[[], int] = ns_since_boot,
        rules: HealthRules | None = None,
        waits_for_specifications: bool = False,
    ) -> None:
        """Take health by ``rules`` and at ``wall_clock``, seconds since the epoch, because it outlives the process.

        With ``waits_for_specifications`` nothing is registered before :meth:`learn_specifications`.
        """
        self._clock = clock
        self._wall_clock = wall_clock
        self._generations = Generations(boot_clock)
        health, were_tried = Health(rules or HealthRules()), not waits_for_specifications
        self._view = NodeView(health=health, specifications_were_tried=were_tried)
        self._ledger = Ledger()
        self._devices_changed_at = float("-inf")
        self._daemons = DaemonAnswers(clock)
        self.mps_asked_at = float("-inf")
        """When the supervisor was asked for the view's MPS states, on the clock of :meth:`now`."""
        self._changed = asyncio.Event()

    @property
    def view(self) -> NodeView:
        """The newest value; safe to read from any thread."""
        return self._view

    async def change_after(self, seen: NodeView) -> NodeView:
        """Wait until the view is another one than ``seen`` and return it."""
        while self._view is seen:
            await self._changed.wait()
        return self._view

    def learn_devices(
        self, inventory: Inventory, offer: Offer, seen: Mapping[GpuUuid, Sequence[Seen]] | None = None
    ) -> None:
        """Take the newest facts about the GPUs, and what was seen of their health with them."""
        health = self._health_after(seen or {})
        self._become(inventory=inventory, offer=offer, health=health, driver_problem="", driver_trouble="")

    def observe(self, seen: Mapping[GpuUuid, Iterable[Seen]]) -> None:
        """Take what was seen of the health of some GPUs."""
        self._become(health=self._health_after(seen))

    def learn_repair(self, evidence: Iterable[ResetEvidence], *, only: Collection[GpuUuid] = ()) -> None:
        """Take proof that all GPUs, or ``only`` some, were started anew."""
        self._become(health=self._view.health.repaired(evidence, now=self._wall_clock(), only=only))

    def recall_health(self, health: Health) -> None:
        """Take what an earlier process knew of the GPUs; call it before anything else is learnt of them."""
        self._become(health=health)

    def withdraw(self, problem: str) -> None:
        """Offer nothing any more, because the driver is gone for good."""
        self._become(offer=Offer(), driver_problem=problem)

    def learn_driver_problem(self, problem: str) -> None:
        """Note that there is no driver to ask."""
        self._become(driver_problem=problem)

    def learn_specifications(self, problems: Mapping[GpuUuid, str]) -> None:
        """Note that the CDI specifications were written, but for those with a problem."""
        self._become(specification_problems=dict(problems), specifications_were_tried=True)

    def learn_driver_trouble(self, problem: str) -> None:
        """Note that the driver fails at the simplest question, which says nothing of any GPU."""
        self._become(driver_trouble=problem)

    def learn_other_devices(self, devices: Mapping[str, frozenset[str]]) -> bool:
        """Take the devices of other plugins; return whether they are others than before."""
        is_news = devices != self._view.other_devices
        self._become(other_devices=dict(devices))
        return is_news

    def learn_registration(self, registered_as: str, problem: str = "") -> None:
        """Note by which socket kubelet knows us, or why it does not."""
        self._become(registered_as=registered_as, registration_problem=problem)
        if registered_as:
            self._generations.turn(self._clock())

    def learn_charge(self, *, other_in_charge: bool) -> None:
        """Note whether another process of ours serves the node. When it is gone, kubelet is back at this one."""
        if self._view.registered_as and not other_in_charge:
            self._generations.turn(self._clock())
        self._become(other_in_charge=other_in_charge)

    def learn_occupancy(self, occupancy: Mapping[GpuUuid, Occupancy]) -> None:
        """Take who is on every GPU that was looked at."""
        self._become(occupancy=dict(occupancy))

    def learn_mps(self, states: Mapping[GpuUuid, MpsState], *, asked_at: float = float("-inf")) -> None:
        """Take what the supervisor said of every GPU that is shared when it was asked at ``asked_at``."""
        self.mps_asked_at = asked_at
        health = self._health_after(self._daemons.read(states))
        # A GPU that nobody shares needs no daemon, so nothing is wrong with its daemon either.
        unshared = {uuid: (MpsRead(MpsAnswer.READY),) for uuid in health.states if uuid not in states}
        self._become(mps=dict(states), health=health.after(unshared, now=self._wall_clock()))

    def learn_account(self, account: Account, *, asked_at: float, unlisted: Sequence[Holder] = ()) -> None:
        """Take kubelet's account, and whom its List leaves out; ``asked_at`` is when it was asked, by :meth:`now`."""
        self._ledger.listed(account, asked_at=asked_at)
        self._become(holders=self._ledger.holders(), unlisted=tuple(unlisted), account_problem="")
        self._become(holders_are_known=True, generation=self._generations.settle(asked_at))

    def learn_texts(self, texts: IdTexts) -> None:
        """Note by which texts kubelet is told of the groups from now on."""
        if texts != self._view.offer.texts:
            self._become(offer=replace(self._view.offer, texts=texts))

    def learn_account_problem(self, problem: str) -> None:
        """Note that kubelet does not tell who holds what; what it told before stands."""
        self._become(account_problem=problem)

    def learn_offer_of_kubelet(self, free: Collection[str], reused: Collection[str], *, at: float) -> None:
        """Take the groups that kubelet offered as free at ``at``, without those that the pod reuses."""
        offer, faults = self._view.offer, self._view.faults
        free_ids = {offer.ids[text] for text in set(free) - set(reused) if text in offer.ids}
        # Before kubelet knows which groups are healthy now, one that it does not offer is no news.
        is_settled = at - self._devices_changed_at >= _SETTLED_SECONDS
        healthy = {group_id for group_id in offer.ids.values() if group_id.gpu not in faults and is_settled}
        self._ledger.offered(free_ids, of=healthy, at=at)
        self._become(holders=self._ledger.holders())

    def note_grant(self, ids: Collection[GroupId]) -> None:
        """Note that Allocate hands out ``ids``, which nobody of kubelet's record has any more."""
        self._ledger.granted(ids, now=self._clock())
        unlisted = tuple(holder for holder in self._view.unlisted if holder.ids.isdisjoint(ids))
        self._become(holders=self._ledger.holders(), unlisted=unlisted)

    def note_start(self, ids: Collection[GroupId]) -> None:
        """Note that a container with ``ids`` starts."""
        self._ledger.started(ids, now=self._clock())
        starts = self._view.last_starts | {uuid: len(members) for uuid, members in by_gpu(ids).items()}
        self._become(holders=self._ledger.holders(), last_starts=starts)

    def now(self) -> float:
        """Return seconds of the clock that this account uses."""
        return self._clock()

    def _health_after(self, seen: Mapping[GpuUuid, Iterable[Seen]]) -> Health:
        return self._view.health.after(seen, now=self._wall_clock())

    def _become(self, **changes: object) -> None:
        before, after = self._view, replace(self._view, **changes)  # type: ignore[arg-type] # names are the fields above
        if after == before:
            return
        if (after.offer, after.faults.keys()) != (before.offer, before.faults.keys()):
            self._devices_changed_at = self._clock()
        self._view = after
        self._changed.set()
        self._changed.clear()
