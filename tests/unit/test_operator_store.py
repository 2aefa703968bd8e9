"""The store of what the API server told: newest state wins, each difference is told once."""

from cta_group_operator.ports import NamespaceView
from cta_group_operator.store import Store

Change = tuple[NamespaceView | None, NamespaceView | None]


def space(name: str, version: int, **labels: str) -> NamespaceView:
    """Return a namespace in a version."""
    return NamespaceView(name, str(version), labels)


def a_store() -> tuple[Store[NamespaceView], list[Change]]:
    """Return an empty store and the list of changes that it tells."""
    store = Store[NamespaceView](lambda one: ("", one.name))
    changes: list[Change] = []
    store.subscribe(lambda before, after: changes.append((before, after)))
    return store, changes


def test_older_states_are_dropped() -> None:
    """A state that is older than what is known, or the same, changes and tells nothing."""
    store, changes = a_store()
    store.put(space("a", 5))
    store.put(space("a", 4, old="yes"))
    store.put(space("a", 5))
    assert changes == [(None, space("a", 5))]
    assert store.get("a") == space("a", 5)


def test_a_list_tells_what_is_gone() -> None:
    """After a list, what it lacks is gone, except what is newer than the list."""
    store, changes = a_store()
    store.put(space("gone", 3))
    store.put(space("newer", 9))
    changes.clear()
    store.replace([space("kept", 6)], "7")
    assert changes == [(space("gone", 3), None), (None, space("kept", 6))]
    assert {one.name for one in store} == {"kept", "newer"}


def test_a_late_deletion_does_not_remove_a_successor() -> None:
    """A deletion that is older than the object that is known leaves it alone."""
    store, changes = a_store()
    store.put(space("a", 8))
    store.remove(("", "a"), "7")
    assert len(store) == 1
    store.remove(("", "a"), "9")
    assert changes[-1] == (space("a", 8), None)
    assert store.get("a") is None
