"""Who is on a GPU from one look to the next: nobody is accused in passing, and late memory is told from used memory."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_plugin.occupancy import GpuAccount, after_look
from cta_group_plugin.occupants import GpuLook, Place, occupants_of
from gpu_looks import Program, look

POD = "11111111-1111-4111-8111-111111111111"
PLACE = Place(pods={POD: False}, is_limited=True, clients=(), clients_are_told=True)
BYPASS = Program(8, pod_uid=POD, in_mps=True)
ENGINE = Program(10, 34_816, pod_uid=POD, in_mps=True)
NEIGHBOUR = Program(11, 20_000, pod_uid=POD, in_mps=True)
SERVER = Program(9, 66, name="nvidia-cuda-mps")


def account(*looks: GpuLook, place: Place = PLACE, asked_at: float | None = 1e9) -> GpuAccount:
    """Return the account after these looks."""
    known: GpuAccount | None = None
    for each in looks:
        known = after_look(known, each, occupants_of(each, place), clients_asked_at=asked_at)
    assert known is not None
    return known


def unlimited(*looks: GpuLook, place: Place = PLACE, asked_at: float | None = 1e9) -> list[int]:
    """Return who is accused after these looks."""
    return [one.pid for one in account(*looks, place=place, asked_at=asked_at).unlimited]


def test_who_stays_without_limits_is_told() -> None:
    """The same process at two looks, and the daemon told its clients in between."""
    assert unlimited(look(0, BYPASS)) == []
    assert unlimited(look(0, BYPASS), look(10, BYPASS), asked_at=5) == [8]
    assert unlimited(look(0, BYPASS), look(10, BYPASS), look(20, BYPASS), asked_at=5) == [8]


def test_who_connects_or_ends_is_not_accused() -> None:
    """Two looks of one moment, a daemon that was asked before, another process of the same id, one that left."""
    assert unlimited(look(0, BYPASS), look(0.5, BYPASS)) == []
    assert unlimited(look(0, BYPASS), look(10, BYPASS), asked_at=-1) == []
    assert unlimited(look(0, BYPASS), look(10, replace(BYPASS, started=200))) == []
    assert unlimited(look(0, BYPASS), look(5), look(10, BYPASS)) == []
    assert unlimited(look(0, BYPASS), look(10)) == []


def test_who_was_listed_in_the_meantime_is_a_client() -> None:
    """The driver told of it a moment before its daemon did."""
    seen = after_look(None, look(0, BYPASS), occupants_of(look(0, BYPASS), PLACE), clients_asked_at=-1)
    later = look(10, BYPASS)
    after = after_look(seen, later, occupants_of(later, replace(PLACE, clients={8})), clients_asked_at=5)
    assert after.unlimited == ()
    assert not after.since


def test_a_daemon_that_is_away_does_not_protect_who_is_outside_mps() -> None:
    """The driver alone says that it is no client of any daemon."""
    outside = replace(BYPASS, in_mps=False)
    place = replace(PLACE, clients_are_told=False)
    assert unlimited(look(0, outside), look(10, outside), place=place, asked_at=None) == [8]
    assert unlimited(look(0, BYPASS), look(10, BYPASS), place=place, asked_at=None) == []
    assert not account(look(0, BYPASS), place=place, asked_at=None).is_seen


def test_strangers_are_told_when_they_stay() -> None:
    """A pod that ends leaves kubelet's record before its processes are gone."""
    stranger = Program(12, 600)
    assert account(look(0, stranger)).foreign == ()
    (told,) = account(look(0, stranger), look(10, stranger)).foreign
    assert (told.pid, told.memory_mib) == (12, 600)


def late(*looks: GpuLook) -> int:
    """Return the memory that is late after these looks, MiB."""
    return account(*looks, place=replace(PLACE, clients={8, 10, 11})).late_mib


def test_memory_of_a_process_that_is_gone_is_late_until_it_is_back() -> None:
    """The driver does not even name the process any more."""
    before, missing = look(0, ENGINE, NEIGHBOUR, SERVER), look(10, NEIGHBOUR, SERVER, extra_mib=34_816)
    assert late(before) == 0
    assert late(before, missing) == 34_816
    assert late(before, missing, replace(missing, at=20)) == 34_816
    assert late(before, missing, look(20, NEIGHBOUR, SERVER, extra_mib=10_000)) == 10_000
    assert late(before, missing, look(20, NEIGHBOUR, SERVER)) == 0
    assert late(before, missing, look(20, NEIGHBOUR, SERVER), look(30, NEIGHBOUR, SERVER, extra_mib=34_816)) == 0


def test_memory_of_a_dead_process_that_the_driver_still_names_is_late() -> None:
    """Seen alive before or not: as at the start of this process."""
    assert late(look(0, ENGINE.ended())) == 34_816
    assert late(look(0, ENGINE), look(10, ENGINE.ended())) == 34_816
    assert late(look(0, ENGINE.ended()), look(10)) == 0
    assert late(look(0, replace(ENGINE, has_ended=True))) == 34_816


def test_when_it_became_late_is_remembered() -> None:
    """Until it is back."""
    dead = look(10, ENGINE.ended())
    assert account(look(0, ENGINE), dead, replace(dead, at=20)).late_since == 10
    assert account(look(0, ENGINE), dead, look(20)).late_since is None


@pytest.mark.parametrize(
    "after",
    [
        look(10, replace(NEIGHBOUR, memory_mib=79_000)),
        look(10, NEIGHBOUR, Program(12, 50_000)),
        look(10, NEIGHBOUR, Program(13, 40_000, in_mps=True, pod_uid=POD)),
        look(10, NEIGHBOUR, replace(SERVER, memory_mib=500)),
    ],
    ids=["a neighbour takes more", "a stranger comes", "a replacement starts at once", "MPS takes its part"],
)
def test_who_lives_explains_what_is_in_use(after: GpuLook) -> None:
    """After an engine has ended and gave everything back, others may take any of it."""
    assert late(look(0, ENGINE, NEIGHBOUR), after) == 0


def test_what_no_process_ever_explained_is_not_late() -> None:
    """A driver's own part, and processes that it does not list: there before, or more of it while nobody ended."""
    assert late(look(0, NEIGHBOUR, extra_mib=5_000)) == 0
    assert late(look(0, NEIGHBOUR, extra_mib=5_000), look(10, NEIGHBOUR, extra_mib=30_000)) == 0
    assert late(look(0, ENGINE, extra_mib=5_000), look(10, extra_mib=5_000)) == 0
    assert late(look(0, Program(8, 900), extra_mib=5_000), look(10, extra_mib=60_000)) <= 900


def test_noise_is_not_late() -> None:
    """Figures of two moments never fit to the MiB."""
    assert late(look(0, ENGINE), look(10, extra_mib=300)) == 0


@pytest.mark.parametrize(
    "blind",
    [
        replace(look(10, NEIGHBOUR, extra_mib=34_816), processes=None),
        look(10, replace(NEIGHBOUR, memory_mib=None), extra_mib=34_816),
        look(10, Program(0, 34_816, is_visible=False), NEIGHBOUR, sees_all=False),
        replace(
            look(10, NEIGHBOUR, extra_mib=34_816),
            use=replace(look(10, NEIGHBOUR, extra_mib=34_816).use, lists_processes=False),
        ),
        replace(look(10, NEIGHBOUR), use=replace(look(10, NEIGHBOUR).use, used_mib=None)),
    ],
    ids=["no host processes", "memory not told", "another namespace", "no list", "memory in use not told"],
)
def test_where_it_cannot_be_told_nothing_is_late(blind: GpuLook) -> None:
    """Nobody waits for what may be a neighbour's, and the count begins anew when it can be told again."""
    assert late(look(0, ENGINE, NEIGHBOUR), blind) == 0
    assert late(look(0, ENGINE, NEIGHBOUR), blind, look(20, NEIGHBOUR, extra_mib=34_816)) == 0


programs = st.builds(
    Program,
    pid=st.integers(10, 14),
    memory_mib=st.integers(0, 80_000),
    pod_uid=st.sampled_from([POD, None]),
    in_mps=st.booleans(),
    started=st.integers(1, 3),
)


@given(
    moments=st.lists(st.lists(programs, max_size=4, unique_by=lambda one: one.pid), min_size=1, max_size=6),
    baseline_mib=st.integers(0, 10_000),
)
def test_nothing_is_late_where_everything_is_given_back(moments: list[list[Program]], baseline_mib: int) -> None:
    """Whoever comes, goes, and takes how much: what is in use is what the living have, and what always was."""
    assert late(*(look(10 * at, *there, extra_mib=baseline_mib) for at, there in enumerate(moments))) == 0


@given(
    others=st.lists(programs.filter(lambda one: one.pid != 10), max_size=3, unique_by=lambda one: one.pid),
    later=st.lists(programs.filter(lambda one: one.pid != 10), max_size=3, unique_by=lambda one: one.pid),
    missing_mib=st.integers(600, 34_816),
)
def test_what_is_not_given_back_is_late_whoever_else_comes_and_goes(
    others: list[Program], later: list[Program], missing_mib: int
) -> None:
    """The neighbours' own memory neither hides nor enlarges it."""
    assert late(look(0, ENGINE, *others), look(10, *later, extra_mib=missing_mib)) == missing_mib
