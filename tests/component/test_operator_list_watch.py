"""List and watch over real HTTP against a scripted API server: pages, bookmarks, lost positions, broken connections."""

import logging
import socket

import pytest
from aiohttp import web
from kubernetes.client import Configuration

from cta_group_operator.adapters.connection import Connection
from cta_group_operator.adapters.kube import KubeClient
from cta_group_operator.errors import ApiUnavailable
from scripted_watch import ScriptedServer, address_of, event, following, page, seen, serving, space


async def test_pages_are_one_list() -> None:
    """A list in pages is taken whole, and the watch starts at its version."""
    server = ScriptedServer([[page(space("a", 1), version=5, more="next"), page(space("b", 2), version=5)]])
    async with following(server) as here:
        await seen(lambda: server.positions() == ["5"])
        assert here.names() == ["a", "b"]
        assert here.watch.synced.is_set()
        assert [query.get("continue") for query in server.queries[:2]] == [None, "next"]


async def test_events_and_bookmarks_move_the_position() -> None:
    """Events change the store; after the server ends a watch the next goes on at the newest version, bookmarks too."""
    bookmark = {"kind": "Namespace", "metadata": {"resourceVersion": "40", "labels": None}, "spec": None}
    lines = [
        event("ADDED", space("b", 11)),
        event("MODIFIED", space("a", 12, team="x")),
        event("DELETED", space("b", 13)),
        event("BOOKMARK", bookmark),
    ]
    server = ScriptedServer([[page(space("a", 1), version=10)]], [lines])
    async with following(server) as here:
        await seen(lambda: server.positions() == ["10", "40"])
        (a,) = here.store
        assert (a.name, a.labels) == ("a", {"team": "x"})
        assert here.count("lists") == 1


async def test_a_lost_position_leads_to_a_new_list() -> None:
    """410 in the stream: a new list, whose difference tells what was deleted meanwhile."""
    gone = {"kind": "Status", "code": 410, "message": "too old resource version"}
    server = ScriptedServer(
        [[page(space("a", 1), space("b", 2), version=5)], [page(space("b", 2), space("c", 8), version=9)]],
        [[event("ERROR", gone)]],
    )
    async with following(server) as here:
        await seen(lambda: server.positions() == ["5", "9"])
        assert here.names() == ["b", "c"]
        assert here.count("lists") == 2


async def test_a_broken_watch_goes_on_where_it_was() -> None:
    """Any other error in the stream opens the watch again at the same place, without a list."""
    broken = {"kind": "Status", "code": 500, "message": "etcd is away"}
    server = ScriptedServer([[page(version=5)]], [[event("ADDED", space("a", 6)), event("ERROR", broken)]])
    async with following(server) as here:
        await seen(lambda: server.positions() == ["5", "6"])
        assert here.names() == ["a"]
        assert here.count("lists") == 1


async def test_objects_that_cannot_be_read_are_counted() -> None:
    """An object of a wrong form is counted and left out; the others are taken, and nothing is listed again for it."""
    odd = {"metadata": {"name": "odd", "resourceVersion": "2", "labels": "none"}}
    server = ScriptedServer([[page(odd, space("a", 1), version=5)]], [[event("MODIFIED", space("odd", 7))]])
    async with following(server) as here:
        await seen(lambda: here.names() == ["a", "odd"])
        assert here.count("decode_errors") == 1
        assert here.count("lists") == 1


async def test_lines_longer_than_a_buffer() -> None:
    """An object of several hundred kilobytes in one line arrives whole."""
    server = ScriptedServer([[page(version=5)]], [[event("ADDED", space("a", 6, note="x" * 400_000))]])
    async with following(server) as here:
        await seen(lambda: here.names() == ["a"])


async def test_age_of_what_was_heard() -> None:
    """The age of the last word grows while the server is silent: that is what a stalled watch looks like."""
    async with following(ScriptedServer([[page(version=5)]])) as here:
        await here.watch.synced.wait()
        first = here.watch.event_age_seconds()
        await seen(lambda: here.watch.event_age_seconds() > first)


async def test_a_quiet_watch_is_opened_again_and_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """A watch that says nothing is opened again at the same place, nothing is wrong, and the kind was heard of."""
    caplog.set_level(logging.WARNING)
    server = ScriptedServer([[page(version=5)]])
    async with following(server, silence_seconds=0.05) as here:
        await seen(lambda: server.positions() == ["5"])
        age = here.watch.event_age_seconds()
        await seen(lambda: len(server.positions()) >= 4 and here.watch.event_age_seconds() < age + 0.1)
        assert server.positions()[:4] == ["5"] * 4
        assert here.count("lists") == 1
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []


async def test_a_quiet_watch_does_not_hide_that_nobody_is_there(caplog: pytest.LogCaptureFixture) -> None:
    """When nobody takes the new watch that is told, and the age of what was heard grows; what comes later is taken."""
    caplog.set_level(logging.WARNING)
    server = ScriptedServer([[page(version=5)]])
    async with following(server, silence_seconds=0.05, timeout_seconds=0.1) as here:
        await seen(lambda: server.positions() == ["5"])
        server.takes_watches = False
        await seen(lambda: "watch_failed" in caplog.messages)
        age = here.watch.event_age_seconds()
        await seen(lambda: here.watch.event_age_seconds() > age + 0.2)
        server.watches = [[event("ADDED", space("a", 6))]]
        server.takes_watches = True
        await seen(lambda: here.names() == ["a"])
        await seen(lambda: here.watch.event_age_seconds() < age)


async def test_an_answer_that_is_no_json_is_an_answer_that_did_not_come() -> None:
    """A proxy's page instead of an object is ApiUnavailable, after which everybody tries again."""

    async def page_of_a_proxy(_: web.Request) -> web.Response:
        return web.Response(text="<html>")

    runner = await serving(page_of_a_proxy)
    async with KubeClient(Connection(Configuration(host=address_of(runner)))) as client:
        with pytest.raises(ApiUnavailable, match="GET /api/v1/namespaces: not what an API server says"):
            await client.get("/api/v1/namespaces")
    await runner.cleanup()


async def test_a_dead_machine_is_noticed_by_the_kernel() -> None:
    """Connections are kept alive by the kernel, so that a watch ends when the other machine is gone."""
    runner = await serving(ScriptedServer([[page(version=5)]]).answer)
    async with (
        KubeClient(Connection(Configuration(host=address_of(runner)))) as client,
        client.stream("GET", "/api/v1/namespaces", {"watch": "true"}, read_timeout_seconds=None) as answer,
    ):
        assert answer.connection is not None
        assert answer.connection.transport is not None
        connected = answer.connection.transport.get_extra_info("socket")
        assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        idle = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
        every = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL)
        assert idle + every * connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) <= 60
    await runner.cleanup()


async def test_what_is_no_watch_is_survived() -> None:
    """A line that is no JSON (a proxy's error page) closes the watch; the next goes on where it was."""
    server = ScriptedServer([[page(version=5)]], [[b"<html>\n"], [event("ADDED", space("a", 6))]])
    async with following(server) as here:
        await seen(lambda: here.names() == ["a"])
