"""Events on other people's objects, for ``kubectl describe``.

An event tells of something that was done and is not done again, so one that could not be sent is kept and sent later.
What it tells of goes on meanwhile: no round fails because of an event.
"""

import asyncio
import hashlib
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn

from cta_group_core.names import FIELD_MANAGER_OPERATOR
from cta_group_operator.errors import ApiError, Conflict, Forbidden, NotFound, Rejected
from cta_group_operator.logs import EventLog
from cta_group_operator.ports import Clock, KubeApi, ObjectRef
from cta_group_operator.resources import EVENTS

_log = EventLog(__name__)

_MESSAGE_MOST: Final = 1000
"""The API server takes 1024 bytes."""
_NAME_MOST: Final = 200
_AGAIN_SECONDS: Final = 5.0
_OLDEST_SECONDS: Final = 3600.0
"""The API server keeps events no longer itself, unless it is told to."""
_MOST_UNSENT: Final = 1000
_MOST_KNOWN: Final = 20_000
"""Events that are remembered as written; the one that was written longest ago goes first."""


@dataclass(frozen=True, slots=True)
class _Unsent:
    """An event that no answer came for yet."""

    since: float
    path: str
    body: dict[str, Any]


class EventWriter:
    """Creates events; one that was written already is not written again.

    Those of the last hour are remembered: who waits for room is told anew with every number that changes, and so many
    questions whether the event is there would be most of what a busy cluster's API server hears.
    """

    def __init__(self, api: KubeApi, clock: Clock, identity: str) -> None:
        self._api = api
        self._clock = clock
        self._identity = identity
        self._unsent: dict[tuple[str, str], _Unsent] = {}
        """By namespace and name, the oldest first."""
        self._known: dict[tuple[str, str], float] = {}
        """When each event got its answer, the oldest first."""

    @property
    def unsent(self) -> int:
        """Events that are to be sent yet."""
        return len(self._unsent)

    async def run(self) -> NoReturn:
        """Send again what could not be sent, for ever."""
        while True:
            await asyncio.sleep(_AGAIN_SECONDS)
            await self.send_again()

    async def send_again(self) -> None:
        """Send what could not be sent, once; what is older than an hour is dropped."""
        oldest = self._clock.monotonic() - _OLDEST_SECONDS
        failed: ApiError | None = None
        for key, event in list(self._unsent.items()):
            if event.since < oldest:
                self._drop(key, "no answer for an hour")
            try:
                await self._send(key, event)
            except ApiError as no:
                failed = no
        if failed is not None:
            _log.warning("events_not_sent", count=self.unsent, retry_seconds=_AGAIN_SECONDS, cause=failed)

    async def write(
        self,
        about: ObjectRef,
        reason: str,
        message: str,
        *,
        once_for: str,
        kind: Literal["Normal", "Warning"] = "Warning",
    ) -> None:
        """Write one event, unless one for the same object, reason and ``once_for`` exists.

        Raises no ApiError: without an answer the event is sent again by :meth:`run`.
        """
        digest = hashlib.sha256(f"{about.uid}/{reason}/{once_for}".encode()).hexdigest()[:16]
        now = self._clock.utc_text()
        key = (about.namespace or "default", f"{_beginning(about.name)}.{digest}")
        if self._is_known(key):
            return
        body = {
            "apiVersion": EVENTS.group_version,
            "kind": EVENTS.kind,
            "metadata": {"name": key[1], "namespace": key[0]},
            "involvedObject": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
            },
            "reason": reason,
            "message": message.encode()[:_MESSAGE_MOST].decode(errors="ignore"),
            "type": kind,
            "source": {"component": FIELD_MANAGER_OPERATOR},
            "reportingComponent": FIELD_MANAGER_OPERATOR,
            "reportingInstance": self._identity,
            "action": "Explain",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        event = _Unsent(self._clock.monotonic(), EVENTS.path(key[0]), body)
        self._unsent.pop(key, None)
        self._unsent[key] = event  # before it is sent, so that it stays also when this is cut short
        if len(self._unsent) > _MOST_UNSENT:
            self._drop(next(iter(self._unsent)), "too many that wait")
        try:
            await self._send(key, event)
        except ApiError as no:
            _log.warning("event_not_sent", about=about, reason=reason, cause=no)

    async def _send(self, key: tuple[str, str], event: _Unsent) -> None:
        if self._unsent.get(key) is not event:
            return  # sent meanwhile, or there is a newer one
        try:
            await self._api.create(event.path, event.body)
        except (Conflict, NotFound):
            pass  # written already, or the namespace is gone
        except (Forbidden, Rejected) as no:  # a namespace that is going, most often; it would be refused again
            _log.warning("event_refused", about=key[1], reason=event.body["reason"], cause=no)
        self._remember(key)
        if self._unsent.get(key) is event:
            del self._unsent[key]

    def _remember(self, key: tuple[str, str]) -> None:
        self._known.pop(key, None)
        self._known[key] = self._clock.monotonic()
        if len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]

    def _is_known(self, key: tuple[str, str]) -> bool:
        """Tell whether the API server has answered lately; after an hour it has forgotten the event, unless told to."""
        when = self._known.get(key)
        return when is not None and self._clock.monotonic() - when < _OLDEST_SECONDS

    def _drop(self, key: tuple[str, str], why: str) -> None:
        if (event := self._unsent.pop(key, None)) is not None:
            _log.warning("event_dropped", about=key[1], reason=event.body["reason"], cause=why)


def _beginning(name: str) -> str:
    """Return as much of a name as fits; no part of a name may end with a dash or be empty."""
    return name[:_NAME_MOST].rstrip("-.")
