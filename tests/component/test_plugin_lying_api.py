"""What sits where the Kubernetes API should be, and answers slowly, without end, or with something else."""

import itertools
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from cta_group_plugin.adapters.api_server import ApiServer
from cta_group_plugin.adapters.kube_api import KubeNodeApi
from cta_group_plugin.adapters.kube_events import KubeEvents
from cta_group_plugin.errors import ApiUnavailable
from cta_group_plugin.pod_events import PodEvent
from cta_group_plugin.ports import PodName
from plugin_values import IDLE_REPORT

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
NODE = json.dumps({"metadata": {"uid": "uid-a"}}).encode()


@contextmanager
def answering(*pieces: Iterable[bytes]) -> Iterator[str]:
    """Serve each connection with the pieces of the next answer, the last one for ever; return the URL."""
    answers = itertools.chain(pieces, itertools.repeat(pieces[-1]))
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()

        def serve() -> None:
            with suppress(OSError):
                while not ended.is_set():
                    connection, _ = server.accept()
                    with closing(connection), suppress(OSError):
                        connection.recv(1 << 16)
                        for piece in next(answers):
                            connection.sendall(piece)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            ended.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def slowly(begin: bytes) -> Iterator[bytes]:
    """Send a beginning, and then a byte now and then without end."""
    yield begin
    while True:
        threading.Event().wait(0.01)
        yield b"x"


def without_end() -> Iterator[bytes]:
    """Send as fast as it is taken."""
    yield HEAD + b"\r\n"
    yield from itertools.repeat(b"x" * (1 << 16))


@pytest.mark.parametrize(
    "begin", [b"HTTP/1.1 200 OK\r\nX: ", HEAD + b"Content-Length: 100000\r\n\r\n", HEAD + b"\r\n"], ids=str
)
def test_a_byte_now_and_then_is_no_answer(begin: bytes, tmp_path: Path) -> None:
    """In the head or in the body: the request ends, and so would the process that waits for it."""
    with answering(slowly(begin)) as url:
        server = ApiServer(url, tmp_path, whole_seconds=0.2)
        with pytest.raises(ApiUnavailable, match="no whole answer within"):
            server.request("GET", "/", None, "application/json")


def test_an_answer_without_end_is_not_kept(tmp_path: Path) -> None:
    """It would fill the memory of the plugin."""
    with answering(without_end()) as url, pytest.raises(ApiUnavailable, match="more than 4194304 bytes"):
        ApiServer(url, tmp_path).request("GET", "/", None, "application/json")


@pytest.mark.parametrize(
    "answer",
    [
        HEAD + b"Content-Length: 100\r\n\r\n{",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
        b"no HTTP at all\r\n",
        b"",
    ],
    ids=["length", "chunked", "other protocol", "nothing"],
)
def test_an_answer_that_breaks_off_is_none(answer: bytes, tmp_path: Path) -> None:
    """However it was announced."""
    with answering([answer]) as url, pytest.raises(ApiUnavailable, match=url):
        ApiServer(url, tmp_path).request("GET", "/", None, "application/json")


@pytest.mark.parametrize("code", [301, 302, 304, 307, 308])
async def test_a_redirection_is_no_success(code: int, tmp_path: Path) -> None:
    """A sign-in page in front of the API has written nothing, so nothing must count as told."""
    reply = f"HTTP/1.1 {code} Elsewhere\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n".encode()
    with answering([reply]) as url:
        server = ApiServer(url, tmp_path)
        with pytest.raises(ApiUnavailable, match=f"CTANode node-a: the API answered {code}"):
            await KubeNodeApi(server, "node-a").apply(IDLE_REPORT)
        event = PodEvent(PodName("team-a", "vllm-0"), None, "GPUUnhealthy", "GPU 0 is unhealthy", key="1")
        with pytest.raises(ApiUnavailable, match=f"event GPUUnhealthy on pod team-a/vllm-0: {code}"):
            await KubeEvents(server, "node-a").write(event)


@pytest.mark.parametrize("body", [b"", b"<html>welcome</html>", b"{}", b"[" * 100_000, NODE[:-4], b'"\xff"'], ids=len)
async def test_an_answer_that_is_no_node_deletes_nothing(body: bytes, tmp_path: Path) -> None:
    """Without the Node's UID every object there is would seem to be an earlier Node's."""
    reply = HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
    with answering([reply]) as url, pytest.raises(ApiUnavailable, match=r"CTANode node-a: .* names no UID"):
        await KubeNodeApi(ApiServer(url, tmp_path), "node-a").apply(IDLE_REPORT)


@pytest.mark.parametrize("token", [b"", b"\n", b"one\ntwo", b"\xfftwo", b"a\x00two", "gebühr".encode()], ids=repr)
def test_a_token_that_is_none_is_told(token: bytes, tmp_path: Path) -> None:
    """It names the file, and never shows what is in it."""
    (tmp_path / "token").write_bytes(token)
    with pytest.raises(ApiUnavailable, match=r"https://127\.0\.0\.1:1: ") as told:
        ApiServer("https://127.0.0.1:1", tmp_path).request("GET", "/", None, "application/json")
    assert "two" not in str(told.value)


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch], ids=["folder", "empty"])
def test_a_certificate_authority_that_is_none_is_told(make: Callable[[Path], None], tmp_path: Path) -> None:
    """The next request reads the file anew."""
    (tmp_path / "token").write_text("t")
    make(tmp_path / "ca.crt")
    with pytest.raises(ApiUnavailable, match=r"https://127\.0\.0\.1:1: "):
        ApiServer("https://127.0.0.1:1", tmp_path).request("GET", "/", None, "application/json")
