"""Events are written once, and none is lost because the API server did not answer."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from cta_group_operator.errors import ApiUnavailable, Forbidden, LeadershipLost, NotFound, Rejected
from cta_group_operator.reconcile.events import EventWriter
from operator_world import FakeClock, FakeKube, ref
from virtual_time import run_in_virtual_time

WEB = ref("Deployment", "web")


def messages(kube: FakeKube) -> list[str]:
    """Return what the events say that are there."""
    return [str(body["message"]) for path, body in kube.objects.items() if "/events/" in path]


async def write(events: EventWriter, message: str, **more: Any) -> None:
    """Write an event of the Deployment."""
    await events.write(more.pop("about", WEB), "Reason", message, **{"once_for": message, **more})


async def test_one_that_is_there_is_not_written_again() -> None:
    """The same object, reason and occasion make one event."""
    kube = FakeKube()
    events = EventWriter(kube, FakeClock(), "me")
    await write(events, "first", once_for="")
    await write(events, "second", once_for="")
    assert messages(kube) == ["first"]
    assert events.unsent == 0


@pytest.mark.parametrize("answer", [None, Forbidden("403: no events here")])
async def test_one_that_was_answered_is_not_asked_about_for_an_hour(answer: Exception | None) -> None:
    """A pod that waits has other words with every number that changes; the API server hears of the first."""
    kube, clock = FakeKube(failures=[answer] if answer else []), FakeClock()
    events = EventWriter(kube, clock, "me")
    await write(events, "first", once_for="")
    kube.broken["/events/"] = ApiUnavailable("whoever asks now has to ask again")
    await write(events, "second", once_for="")
    assert events.unsent == 0
    clock.now += 3600
    await write(events, "third", once_for="")
    assert events.unsent == 1


async def test_one_without_an_answer_is_sent_again_and_ends_nothing() -> None:
    """Whoever wrote it goes on; it is there when the API server is back, with the time at which it happened."""
    kube, clock = FakeKube(failures=[ApiUnavailable("away")]), FakeClock()
    events = EventWriter(kube, clock, "me")
    happened = clock.utc_text()
    await write(events, "told")
    assert (messages(kube), events.unsent) == ([], 1)
    clock.now += 60
    await events.send_again()
    assert (messages(kube), events.unsent) == (["told"], 0)
    (body,) = (body for path, body in kube.objects.items() if "/events/" in path)
    assert body["firstTimestamp"] == happened


async def test_one_that_never_arrives_hides_none_behind_it() -> None:
    """Each is sent in its turn."""
    kube, other = FakeKube(), ref("Deployment", "other")
    events = EventWriter(kube, FakeClock(), "me")
    kube.broken["/events/"] = ApiUnavailable("away")
    await write(events, "stuck")
    await write(events, "waits", about=other)
    kube.broken = {"/events/web": ApiUnavailable("500: a webhook of that name breaks")}
    await events.send_again()
    assert (messages(kube), events.unsent) == (["waits"], 1)


@pytest.mark.parametrize("answer", [Forbidden("403"), Rejected("422"), NotFound("404")])
async def test_one_that_is_refused_is_not_sent_again(answer: Exception) -> None:
    """A namespace that is going takes no events, and never will."""
    kube = FakeKube(failures=[answer])
    events = EventWriter(kube, FakeClock(), "me")
    await write(events, "told")
    assert events.unsent == 0
    await events.send_again()
    assert messages(kube) == []


async def test_one_that_was_cut_short_is_sent_by_the_next_leadership() -> None:
    """A lease that is lost while an event is written ends the round; the event stays."""
    kube = FakeKube(failures=[LeadershipLost("gone")])
    events = EventWriter(kube, FakeClock(), "me")
    with pytest.raises(LeadershipLost):
        await write(events, "told")
    await events.send_again()
    assert messages(kube) == ["told"]


async def test_they_do_not_pile_up() -> None:
    """A thousand wait at most, the newest, and none for longer than an hour."""
    kube, clock = FakeKube(), FakeClock()
    events = EventWriter(kube, clock, "me")
    kube.broken["/events/"] = ApiUnavailable("away")
    for number in range(1005):
        await write(events, f"event {number}")
    assert events.unsent == 1000
    clock.now += 3601
    await write(events, "new")
    kube.broken.clear()
    await events.send_again()
    assert (messages(kube), events.unsent) == (["new"], 0)


async def test_one_that_is_written_again_while_it_waits_is_the_newest() -> None:
    """Where too many wait it is not the first to go, and it says what was written last."""
    kube = FakeKube()
    events = EventWriter(kube, FakeClock(), "me")
    kube.broken["/events/"] = ApiUnavailable("away")
    for number in range(1000):
        await write(events, f"event {number}")
    await write(events, "event 0, again", once_for="event 0")
    await write(events, "one more")
    kube.broken.clear()
    await events.send_again()
    assert "event 0, again" in messages(kube)
    assert "event 1" not in messages(kube)
    assert len(messages(kube)) == 1000


def test_it_is_sent_again_by_itself() -> None:
    """What runs beside the queues sends it, however long the API server was away."""

    async def main() -> list[str]:
        kube = FakeKube(failures=[ApiUnavailable("away")] * 20)
        events = EventWriter(kube, FakeClock(), "me")
        await write(events, "told")
        running = asyncio.ensure_future(events.run())
        async with asyncio.timeout(3600):
            while events.unsent:  # noqa: ASYNC110 - in virtual time
                await asyncio.sleep(1)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        return messages(kube)

    assert run_in_virtual_time(main()) == ["told"]
