"""Who holds which groups, out of three incomplete sources."""

from cta_group_core.ids import GroupId
from cta_group_plugin.ledger import HolderKind, Ledger
from plugin_values import account, groups, pod

SLICE = groups(0, range(32))
OTHER = groups(0, range(32, 64))
ALL = groups(0, range(128))


def kinds(ledger: Ledger) -> list[HolderKind]:
    """Return how each holder is known."""
    return [holder.kind for holder in ledger.holders()]


def granted(*ids: frozenset[GroupId], at: float = 10.0) -> Ledger:
    """Return a ledger of a kubelet that had listed nothing at 0 s, after Allocate handed out ``ids`` at ``at``."""
    ledger = Ledger()
    ledger.listed(account({}, others=["proxy"]), asked_at=0.0)
    for each in ids:
        ledger.granted(each, now=at)
    return ledger


def test_listed_container_holds_its_groups() -> None:
    """The list of kubelet names container and groups."""
    ledger = Ledger()
    ledger.listed(account({"a": SLICE}), asked_at=0.0)
    (holder,) = ledger.holders()
    assert (holder.kind, holder.ids) == (HolderKind.LISTED, SLICE)
    assert holder.container
    assert holder.container.pod == pod("a")


def test_grant_is_held_before_kubelet_lists_it() -> None:
    """Between Allocate and the next list the groups are taken."""
    assert granted(SLICE).held() == SLICE


def test_list_that_was_asked_before_the_grant_does_not_end_it() -> None:
    """An answer that cannot know of the grant says nothing about it."""
    ledger = granted(SLICE, at=10.0)
    ledger.listed(account({}), asked_at=9.9)
    assert ledger.held() == SLICE


def test_listed_grant_becomes_the_containers() -> None:
    """Once listed, the container alone speaks for the groups, and frees them by going."""
    ledger = granted(SLICE)
    ledger.listed(account({"a": SLICE}), asked_at=11.0)
    assert kinds(ledger) == [HolderKind.LISTED]
    ledger.listed(account({}), asked_at=12.0)
    assert ledger.held() == frozenset()


def test_rest_of_an_init_container_is_held_as_long_as_its_app_container() -> None:
    """An init container of 64 and an app container of 32 hold 64 until the pod is gone."""
    ledger = granted(SLICE | OTHER, SLICE)
    for asked_at in (11.0, 12.0, 600.0):
        ledger.listed(account({"a": SLICE}), asked_at=asked_at)
        assert ledger.held() == SLICE | OTHER
        assert kinds(ledger) == [HolderKind.LISTED, HolderKind.REST]
    ledger.listed(account({}), asked_at=601.0)
    assert ledger.held() == frozenset()


def test_pod_with_groups_in_init_containers_only_holds_them_until_it_is_gone() -> None:
    """The only new pod without groups is who got them."""
    ledger = granted(SLICE)
    for asked_at in (11.0, 600.0):
        ledger.listed(account({}, others=["proxy", "b"]), asked_at=asked_at)
        assert ledger.held() == SLICE
    ledger.listed(account({}, others=["proxy"]), asked_at=601.0)
    assert ledger.held() == frozenset()


def test_grant_of_a_pod_that_never_ran_ends_with_the_next_list() -> None:
    """No new pod without groups is listed, so nobody can have them."""
    ledger = granted(SLICE)
    ledger.listed(account({}, others=["proxy"]), asked_at=11.0)
    assert ledger.held() == frozenset()


def test_offer_of_kubelet_ends_grants_and_listed_containers() -> None:
    """What kubelet offers as free is held by nobody, whatever was known before."""
    ledger = granted(OTHER)
    ledger.listed(account({"a": SLICE}, others=["b"]), asked_at=11.0)
    ledger.offered(ALL, of=ALL, at=12.0)
    assert ledger.held() == frozenset()


def test_offer_says_nothing_of_what_came_after_it() -> None:
    """The groups that kubelet offered and took in the same admission are held, by grant or by list."""
    ledger = granted(SLICE, at=10.0)
    ledger.offered(ALL, of=ALL, at=9.9)
    assert ledger.held() == SLICE
    ledger.listed(account({"a": SLICE}), asked_at=10.1)
    ledger.offered(ALL, of=ALL, at=9.9)
    assert ledger.held() == SLICE


def test_groups_that_kubelet_does_not_offer_are_held_by_somebody() -> None:
    """An init container from before this process started is found by what is missing in the offer."""
    ledger = Ledger()
    ledger.listed(account({"a": SLICE}), asked_at=0.0)
    ledger.offered(ALL - SLICE - OTHER, of=ALL, at=12.0)
    assert ledger.held() == SLICE | OTHER
    assert kinds(ledger) == [HolderKind.LISTED, HolderKind.UNEXPLAINED]
    ledger.offered(ALL - SLICE, of=ALL, at=13.0)
    assert ledger.held() == SLICE


def test_repeated_grant_does_not_pile_up() -> None:
    """The same groups handed out a thousand times are held once."""
    ledger = granted(*[SLICE] * 1000)
    assert len(ledger.holders()) == 1


def test_start_of_a_remembered_container_adds_nothing() -> None:
    """A container that restarts is known already; one that nobody remembers is noted."""
    ledger = granted(SLICE)
    ledger.started(SLICE, now=20.0)
    assert kinds(ledger) == [HolderKind.GRANTED]
    ledger.started(OTHER, now=21.0)
    assert ledger.held() == SLICE | OTHER


def test_offer_ends_an_older_grant_though_a_newer_list_has_a_part_of_it() -> None:
    """A pod that failed right away leaves a grant; the list of later has somebody new with some of its groups."""
    new = groups(0, range(8))
    ledger = granted(SLICE, at=10.0)
    ledger.granted(new, now=11.5)
    ledger.listed(account({"new": new}), asked_at=12.0)
    assert ledger.held() == SLICE
    ledger.offered(ALL, of=frozenset(), at=11.4)
    assert ledger.held() == new


def test_groups_that_are_given_anew_are_not_the_listed_containers_any_more() -> None:
    """Nobody else gets the groups of a container as long as its pod lives, so it is gone before a list says so."""
    ledger = Ledger()
    ledger.listed(account({"small": groups(0, range(8)), "other": OTHER}), asked_at=0.0)
    ledger.granted(SLICE, now=1.0)
    assert ledger.held() == SLICE | OTHER
    assert kinds(ledger) == [HolderKind.LISTED, HolderKind.GRANTED]


def test_start_of_an_init_container_leaves_what_is_listed_of_its_pod() -> None:
    """An app container is listed with some of the groups of the init container that still runs."""
    ledger = Ledger()
    ledger.listed(account({"a": groups(0, range(8))}), asked_at=0.0)
    ledger.started(SLICE, now=1.0)
    assert kinds(ledger) == [HolderKind.LISTED, HolderKind.GRANTED]
