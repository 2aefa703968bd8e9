"""One leader of several replicas, by a Lease object that the leader renews and others take when it is silent.

Time is this process's own: a follower waits for a whole lease duration in which the object did not change, whatever
the clocks of others say. A leader stops writing ``renew_within_seconds`` after its last renewal, well before anyone
else can begin; :class:`FencedApi` sees to that for each write.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NoReturn

from cta_group_operator.errors import ApiError, Conflict, LeadershipLost, NotFound
from cta_group_operator.logs import EventLog
from cta_group_operator.ports import Clock, Json, KubeApi
from cta_group_operator.resources import LEASES

_log = EventLog(__name__)


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Takeover after a crash takes at most duration plus retry."""

    duration_seconds: int = 10
    renew_within_seconds: float = 7.0
    retry_seconds: float = 1.5


_HURRY: Final = 5
"""So much sooner a renewal that failed is tried again."""
DEFAULT_TIMES: Final = LeaseTimes()


class LeaderLease:
    """The part of one replica in the election."""

    def __init__(
        self, api: KubeApi, clock: Clock, *, namespace: str, name: str, identity: str, times: LeaseTimes = DEFAULT_TIMES
    ) -> None:
        self._api = api
        self._clock = clock
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._times = times
        self._renewed: float | None = None
        self._asked = clock.monotonic()
        self._seen: tuple[str, float] = ("", clock.monotonic())

    @property
    def is_held(self) -> bool:
        """Tell whether this replica may write now."""
        age = self._clock.monotonic() - self._renewed if self._renewed is not None else None
        return age is not None and age < self._times.renew_within_seconds

    def idle_seconds(self) -> float:
        """Return how long ago this replica last asked for the lease, whatever came of it."""
        return self._clock.monotonic() - self._asked

    async def acquire(self) -> None:
        """Return when this replica leads."""
        while not await self._try():  # noqa: ASYNC110 - nobody in this process knows when the lease becomes free
            await asyncio.sleep(self._times.retry_seconds)
        _log.info("leading", lease=self._name, identity=self._identity)

    async def hold(self) -> NoReturn:
        """Renew for ever; raises LeadershipLost when that did not work in time."""
        renewed = True
        while True:
            await asyncio.sleep(self._times.retry_seconds / (1 if renewed else _HURRY))
            renewed = await self._try()
            if not renewed and not self.is_held:
                self._renewed = None
                raise LeadershipLost(f"lease {self._namespace}/{self._name} was not renewed in time")

    async def release(self) -> None:
        """Give the lease up, so that another replica need not wait. Does nothing when it is not held."""
        if not self.is_held:
            return
        self._renewed = None
        try:
            found = await self._api.get(LEASES.path(self._namespace, self._name))
            if (found.get("spec") or {}).get("holderIdentity") == self._identity:
                await self._write(found, holder="")
        except ApiError as failed:
            _log.warning("lease_not_released", cause=failed)

    async def _try(self) -> bool:
        """Create, renew or take the lease; False when it is somebody else's or the API server does not answer."""
        asked = self._asked = self._clock.monotonic()
        try:
            async with asyncio.timeout(self._times.renew_within_seconds / 2):
                taken = await self._take()
        except (ApiError, TimeoutError) as failed:
            _log.warning("lease_failed", lease=self._name, cause=repr(failed))
            return False
        if taken:
            self._renewed = asked  # counted from before the call: the answer may have been late
        return taken

    async def _take(self) -> bool:
        try:
            found = await self._api.get(LEASES.path(self._namespace, self._name))
        except NotFound:
            await self._api.create(LEASES.path(self._namespace), self._body({}, self._identity))
            return True
        if not self._may_take(found):
            self._renewed = None  # also for one that led: who deletes or edits the Lease has chosen another leader
            return False
        try:
            await self._write(found, holder=self._identity)
        except Conflict:
            return False
        return True

    def _may_take(self, found: Json) -> bool:
        holder = (found.get("spec") or {}).get("holderIdentity") or ""
        if holder in ("", self._identity):
            return True
        version = found["metadata"]["resourceVersion"]
        now = self._clock.monotonic()
        if version != self._seen[0]:
            self._seen = (version, now)
        return now - self._seen[1] >= self._times.duration_seconds

    async def _write(self, found: Json, holder: str) -> None:
        body = self._body(found.get("spec") or {}, holder)
        body["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
        await self._api.update(LEASES.path(self._namespace, self._name), body)

    def _body(self, before: Mapping[str, Any], holder: str) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        changed = before.get("holderIdentity") != holder
        return {
            "apiVersion": LEASES.group_version,
            "kind": LEASES.kind,
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": self._times.duration_seconds,
                "acquireTime": now if changed else before.get("acquireTime", now),
                "renewTime": now,
                "leaseTransitions": before.get("leaseTransitions", 0) + changed,
            },
        }


class FencedApi:
    """The port ``KubeApi`` for the leader's work: reads pass, a write without a valid lease raises LeadershipLost."""

    def __init__(self, api: KubeApi, lease: LeaderLease, wrote: Callable[[], None] = lambda: None) -> None:
        """``wrote``: called for each write that is sent."""
        self._api = api
        self._lease = lease
        self._wrote = wrote

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """Read."""
        return await self._api.get(path, query)

    async def create(self, path: str, body: Json) -> Json:
        """POST."""
        return await self._leading().create(path, body)

    async def update(self, path: str, body: Json) -> Json:
        """PUT."""
        return await self._leading().update(path, body)

    async def merge_patch(self, path: str, body: Json) -> Json:
        """PATCH, RFC 7386."""
        return await self._leading().merge_patch(path, body)

    async def json_patch(self, path: str, operations: Sequence[Json]) -> Json:
        """PATCH, RFC 6902."""
        return await self._leading().json_patch(path, operations)

    async def delete(self, path: str, resource_version: str | None = None) -> None:
        """DELETE."""
        await self._leading().delete(path, resource_version)

    def _leading(self) -> KubeApi:
        if not self._lease.is_held:
            raise LeadershipLost("this replica does not lead")
        self._wrote()
        return self._api
