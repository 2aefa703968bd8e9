"""What the API server told last, by namespace and name, with listeners that hear of each difference.

Two sources may feed one store (a watch, and a list that repeats it), so what is older than what is known is dropped.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

Key = tuple[str, str]
"""Namespace (empty for cluster scope) and name."""


class Versioned(Protocol):
    """What a store keeps."""

    @property
    def resource_version(self) -> str:
        """The API server's number of this state; Kubernetes lets them be compared within one kind since 1.35."""


View = TypeVar("View", bound=Versioned)
Listener = Callable[[View | None, View | None], None]
"""Called with the state before and after; None: there was, or is, no such object."""


class Store(Generic[View]):
    """Objects of one kind. Used from the event loop alone."""

    def __init__(self, key: Callable[[View], Key]) -> None:
        self._key = key
        self._items: dict[Key, View] = {}
        self._listeners: list[Listener[View]] = []

    def subscribe(self, listener: Listener[View]) -> None:
        """Call ``listener`` at each difference from now on."""
        self._listeners.append(listener)

    def get(self, name: str, namespace: str = "") -> View | None:
        """Return one object."""
        return self._items.get((namespace, name))

    def __iter__(self) -> Iterator[View]:
        return iter(tuple(self._items.values()))

    def __len__(self) -> int:
        return len(self._items)

    def put(self, view: View) -> None:
        """Take a state, unless a newer one is known."""
        key = self._key(view)
        before = self._items.get(key)
        if before is not None and _number(before.resource_version) >= _number(view.resource_version):
            return
        self._items[key] = view
        self._tell(before, view)

    def remove(self, key: Key, resource_version: str = "") -> None:
        """Forget an object, unless one that is newer than ``resource_version`` is known."""
        before = self._items.get(key)
        if before is None or (resource_version and _number(before.resource_version) > _number(resource_version)):
            return
        del self._items[key]
        self._tell(before, None)

    def replace(self, views: Iterable[View], resource_version: str) -> None:
        """Take a whole list of that version: what it lacks is gone."""
        listed: Mapping[Key, View] = {self._key(view): view for view in views}
        for key in [key for key in self._items if key not in listed]:
            self.remove(key, resource_version)
        for view in listed.values():
            self.put(view)

    def _tell(self, before: View | None, after: View | None) -> None:
        for listener in self._listeners:
            listener(before, after)


def _number(resource_version: str) -> int:
    return int(resource_version) if resource_version.isdecimal() else 0
