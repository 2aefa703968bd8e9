"""What was written last and may not have come back through the watch yet."""

from typing import Generic, TypeVar

from cta_group_operator.ports import Json
from cta_group_operator.store import Key

Status = TypeVar("Status")


class LastWritten(Generic[Status]):
    """Remembers the status of each object that was written, until the watch shows that version or a newer one."""

    def __init__(self) -> None:
        self._written: dict[Key, tuple[int, Status]] = {}

    def remember(self, key: Key, status: Status, answer: Json) -> None:
        """Note what the API server took; ``answer`` is the object that it returned."""
        self._written[key] = (int(answer["metadata"]["resourceVersion"]), status)

    def forget(self, key: Key) -> None:
        """Believe what is seen from now on: the object is gone."""
        self._written.pop(key, None)

    def is_last(self, key: Key, resource_version: str) -> bool:
        """Tell whether a version is the one that was written last."""
        written = self._written.get(key)
        return written is not None and str(written[0]) == resource_version

    def current(self, key: Key, seen: Status, resource_version: str) -> Status:
        """Return the newer of what was seen and what was written."""
        written = self._written.get(key)
        if written is not None and written[0] > int(resource_version or 0):
            return written[1]
        self._written.pop(key, None)
        return seen
