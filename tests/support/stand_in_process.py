"""A running stand-in for vLLM and the MPS daemon that it joins, for tests."""

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from cluster_harness.waiting import wait_for

_PROGRAM = Path(__file__).parents[1] / "stand_in" / "vllm_stand_in.py"


class Daemon:
    """One question of the simulated MPS daemon's protocol: a line in, a line out, then the connection stays open."""

    def __init__(self, folder: Path, answer: Mapping[str, object]) -> None:
        folder.mkdir()
        self.folder = folder
        self.hello = ""
        self._answer = answer
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / "simulated.sock"))
        self._listener.listen()
        self._client: socket.socket | None = None
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        try:
            self._client, _ = self._listener.accept()
        except OSError:  # it died before anybody came
            return
        with self._client.makefile("r") as lines:
            self.hello = lines.readline()
        self._client.sendall(json.dumps(self._answer).encode() + b"\n")

    def die(self) -> None:
        """Close every connection; safe to call twice."""
        if self._thread.is_alive():
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        if self._client is not None:
            self._client.close()


class Server:
    """A running stand-in, its log and its daemon."""

    def __init__(self, words: list[str], environment: Mapping[str, str], daemon: Daemon | None) -> None:
        self.daemon = daemon
        self.log = ""
        self.process = subprocess.Popen(
            [sys.executable, "-u", _PROGRAM, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={"PATH": os.environ["PATH"], **environment},
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.log += line

    def wait_serving(self) -> None:
        """Wait until it serves."""
        wait_for(self._port, "the server to listen")

    def get(self, path: str) -> tuple[int, str]:
        """Wait until it serves and return the status and the text of a path."""
        return self._ask("GET", path, None)

    def post(self, path: str, body: object) -> tuple[int, str]:
        """Send JSON and return the status and the text of the answer."""
        return self._ask("POST", path, json.dumps(body))

    def _ask(self, method: str, path: str, body: str | None) -> tuple[int, str]:
        port = wait_for(self._port, "the server to listen")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def _port(self) -> int | None:
        assert self.process.poll() is None, self.log
        found = re.search(r"Listening on port (\d+)", self.log)
        return int(found[1]) if found else None

    def ended(self, code: int) -> str:
        """Wait for its end with that exit code and return its log."""
        assert self.process.wait(timeout=60) == code, self.log
        self._reader.join(timeout=60)
        return self.log

    def close(self) -> None:
        """End it in any case."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
