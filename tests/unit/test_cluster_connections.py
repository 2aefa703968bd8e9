"""Calls of the harness to an API server go over connections that are kept, whatever becomes of the server meanwhile."""

import gc
import http.client
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Thread

import pytest

from cluster_harness.connections import KeptConnections


class Answering(BaseHTTPRequestHandler):
    """Answers with a number of the connection by which it is asked."""

    protocol_version = "HTTP/1.1"
    numbers = count()

    def setup(self) -> None:
        """Begin with a connection."""
        super().setup()
        self.number = next(self.numbers)

    def do_GET(self) -> None:
        """Answer."""
        body = str(self.number).encode()
        self.send_response(http.HTTPStatus.OK)
        self.send_header("Content-Length", str(len(body)))
        if self.path == "/last":
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        # The server may end a connection without a word, as one that is killed does.
        self.close_connection = self.path in {"/last", "/silently"}

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def connections() -> Iterator[KeptConnections]:
    """Serve, and return the connections to it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        serving = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        made = KeptConnections(lambda: http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60))
        try:
            yield made
        finally:
            made.close()
            server.shutdown()
            serving.join()


def ask(connections: KeptConnections, path: str = "/") -> bytes:
    """Return by which connection the question came."""
    status, text = connections.ask("GET", path, None, {})
    assert status == http.HTTPStatus.OK
    return text


def test_the_next_call_takes_the_connection_of_the_one_before(connections: KeptConnections) -> None:
    """One handshake is enough for all of them."""
    assert len({ask(connections) for _ in range(5)}) == 1


@pytest.mark.parametrize("path", ["/last", "/silently"])
def test_a_connection_that_the_server_ended_is_replaced(connections: KeptConnections, path: str) -> None:
    """Whether it said so, or was killed: the call is made on another one, and whoever calls hears nothing of it."""
    first = ask(connections)
    assert ask(connections, path) == first
    assert ask(connections) != first


def test_a_server_that_is_away_is_told(connections: KeptConnections) -> None:
    """A new connection that cannot be made is the caller's business."""
    ask(connections)
    away = KeptConnections(lambda: http.client.HTTPConnection("127.0.0.1", 1, timeout=60))
    with pytest.raises(ConnectionRefusedError):
        away.ask("GET", "/", None, {})


def test_connections_end_with_whoever_kept_them(connections: KeptConnections) -> None:
    """One that is left open is a warning, and so an error of whichever test runs then."""
    made: list[http.client.HTTPConnection] = []

    def make() -> http.client.HTTPConnection:
        made.append(connections._make())
        return made[-1]

    another = KeptConnections(make)
    ask(another)
    (connection,) = made
    assert connection.sock is not None
    del another
    gc.collect()
    assert connection.sock is None
