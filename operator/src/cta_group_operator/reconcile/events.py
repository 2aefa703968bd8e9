"""Events on other people's objects, for ``kubectl describe``."""

import hashlib
from typing import Final, Literal

from cta_group_core.names import FIELD_MANAGER_OPERATOR
from cta_group_operator.errors import Conflict, Forbidden, NotFound, Rejected
from cta_group_operator.logs import EventLog
from cta_group_operator.ports import Clock, KubeApi, ObjectRef
from cta_group_operator.resources import EVENTS

_log = EventLog(__name__)

_MESSAGE_MOST: Final = 1000
"""The API server takes 1024 bytes."""
_NAME_MOST: Final = 200


class EventWriter:
    """Creates events; one that was written already is not written again."""

    def __init__(self, api: KubeApi, clock: Clock, identity: str) -> None:
        self._api = api
        self._clock = clock
        self._identity = identity

    async def write(
        self,
        about: ObjectRef,
        reason: str,
        message: str,
        *,
        once_for: str,
        kind: Literal["Normal", "Warning"] = "Warning",
    ) -> None:
        """Write one event, unless one for the same object, reason and ``once_for`` exists."""
        digest = hashlib.sha256(f"{about.uid}/{reason}/{once_for}".encode()).hexdigest()[:16]
        now = self._clock.utc_text()
        body = {
            "apiVersion": EVENTS.group_version,
            "kind": EVENTS.kind,
            "metadata": {"name": f"{_beginning(about.name)}.{digest}", "namespace": about.namespace or "default"},
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
        try:
            await self._api.create(EVENTS.path(about.namespace or "default"), body)
        except (Conflict, NotFound):
            return  # written already, or the namespace is gone
        except (Forbidden, Rejected) as no:  # a namespace that is going, most often; an event is not worth a retry
            _log.warning("event_refused", about=about, reason=reason, cause=no)


def _beginning(name: str) -> str:
    """Return as much of a name as fits; no part of a name may end with a dash or be empty."""
    return name[:_NAME_MOST].rstrip("-.")
