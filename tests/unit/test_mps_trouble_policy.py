"""The policy for daemons in trouble, minute by minute."""

import pytest

from cta_group_plugin.mps.trouble import TroubleWatch
from cta_group_plugin.mps_trouble import MpsTrouble


def watch() -> TroubleWatch:
    """Return a watch with the defaults of a node."""
    return TroubleWatch(wedged_seconds=30.0, fault_seconds=60.0)


@pytest.mark.parametrize(
    ("trouble", "living", "killed_after"),
    [
        (MpsTrouble.SILENT, 0, 30.0),
        (MpsTrouble.FAULT, 0, 30.0),
        (MpsTrouble.FAULT, 3, 60.0),
        (MpsTrouble.SILENT, 1, None),
    ],
)
def test_waiting_ends_by_the_policy(trouble: MpsTrouble, living: int, killed_after: float | None) -> None:
    """Without clients after 30 s, in FAULT with clients after 60 s, silent with clients never."""
    one = watch()
    one.seen(trouble, 100.0)
    moments = [second for second in range(0, 86400, 5) if one.is_to_be_killed(100.0 + second, living_clients=living)]
    assert (moments[0] if moments else None) == killed_after


def test_trouble_is_counted_from_its_beginning() -> None:
    """Seen again it goes on; another kind, or an end of it, begins anew."""
    one = watch()
    one.seen(MpsTrouble.SILENT, 0.0)
    one.seen(MpsTrouble.SILENT, 29.0)
    assert one.is_to_be_killed(30.0, living_clients=0)
    one.seen(MpsTrouble.FAULT, 29.0)
    assert not one.is_to_be_killed(30.0, living_clients=0)
    one.over()
    assert not one.is_to_be_killed(1000.0, living_clients=0)


def test_the_outlook_says_what_is_waited_for() -> None:
    """A person who reads the reason knows what happens next."""
    one = watch()
    one.seen(MpsTrouble.SILENT, 0.0)
    assert one.outlook(0) == "without a client it is started anew after 30 s"
    assert one.outlook(2) == "it is left alone as long as 2 clients may live"
    one.seen(MpsTrouble.FAULT, 0.0)
    assert one.outlook(1) == "it is started anew when 1 client has ended, at the latest after 60 s"
    assert one.outlook(2) == "it is started anew when 2 clients have ended, at the latest after 60 s"
