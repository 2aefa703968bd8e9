"""vLLM's HTTP endpoints and metrics over nothing at all. Part of the STAND-IN.

A completion takes a fixed time per token, and counts as vLLM would count it.
"""

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Final

from stand_in_memory import say

_FIRST_TOKEN_SECONDS: Final = 0.04
_TOKEN_SECONDS: Final = 0.003
_KV_MIB_PER_TOKEN: Final = 112 / 1024
_MOST_TOKENS: Final = 256
# vLLM's own, v1/metrics/loggers.py.
_FIRST_TOKEN_BOUNDS: Final = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5),
    *(10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
_BETWEEN_TOKENS_BOUNDS: Final = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5),
    *(10.0, 20.0, 40.0, 80.0),
)
_REQUEST_BOUNDS: Final = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)


@dataclass
class Histogram:
    """A Prometheus histogram."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float, times: int = 1) -> None:
        """Count a value."""
        index = next((place for place, bound in enumerate(self.bounds) if value <= bound), len(self.bounds))
        self.counts[index] += times
        self.total += value * times

    def lines(self, name: str, labels: str) -> list[str]:
        """Return the samples."""
        seen, found = 0, []
        for bound, count in zip([*map(str, self.bounds), "+Inf"], self.counts, strict=True):
            seen += count
            found.append(f'{name}_bucket{{{labels},le="{bound}"}} {seen}')
        return [*found, f"{name}_count{{{labels}}} {seen}", f"{name}_sum{{{labels}}} {self.total}"]


@dataclass
class Model:
    """What is served, and its numbers since the start."""

    name: str
    cache_mib: float
    old_names: bool = False
    """Tell metrics under the names of releases before 0.10."""
    running: int = 0
    waiting: int = 0
    cached_tokens: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0
    finished: int = 0
    first_token: Histogram = field(default_factory=lambda: Histogram(_FIRST_TOKEN_BOUNDS))
    between_tokens: Histogram = field(default_factory=lambda: Histogram(_BETWEEN_TOKENS_BOUNDS))
    whole_request: Histogram = field(default_factory=lambda: Histogram(_REQUEST_BOUNDS))
    in_queue: Histogram = field(default_factory=lambda: Histogram(_REQUEST_BOUNDS))
    lock: threading.Lock = field(default_factory=threading.Lock)

    def complete(self, prompt: str, tokens: int) -> dict[str, Any]:
        """Take as long as a small model takes for so many tokens, and count it."""
        prompt_tokens, tokens = max(1, len(prompt) // 4), min(tokens, _MOST_TOKENS)
        with self.lock:
            self.running += 1
            self.cached_tokens += prompt_tokens + tokens
        seconds = _FIRST_TOKEN_SECONDS + _TOKEN_SECONDS * (tokens - 1)
        time.sleep(seconds)
        with self.lock:
            self.running -= 1
            self.cached_tokens -= prompt_tokens + tokens
            self.finished += 1
            self.prompt_tokens += prompt_tokens
            self.generated_tokens += tokens
            self.first_token.observe(_FIRST_TOKEN_SECONDS)
            self.between_tokens.observe(_TOKEN_SECONDS, times=tokens - 1)
            self.whole_request.observe(seconds)
            self.in_queue.observe(0.0)  # it takes everybody at once
        usage = {"prompt_tokens": prompt_tokens, "completion_tokens": tokens}
        return {"object": "text_completion", "model": self.name, "choices": [{"text": " x" * tokens}], "usage": usage}

    def metrics(self) -> str:
        """Return the exposition with vLLM's names."""
        labels = f'engine="0",model_name="{self.name}"'
        with self.lock:
            samples: list[tuple[str, str, float]] = [
                ("vllm:num_requests_running", "gauge", self.running),
                ("vllm:num_requests_waiting", "gauge", self.waiting),
                (self._cache_name, "gauge", self.cached_tokens * _KV_MIB_PER_TOKEN / self.cache_mib),
                ("vllm:num_preemptions_total", "counter", 0),
                ("vllm:prompt_tokens_total", "counter", self.prompt_tokens),
                ("vllm:generation_tokens_total", "counter", self.generated_tokens),
                ("vllm_stand_in_info", "gauge", 1),
            ]
            lines = [line for name, kind, value in samples for line in _sample(name, kind, labels, value)]
            success = "vllm:request_success_total"
            lines += [f"# TYPE {success} counter", f'{success}{{finished_reason="length",{labels}}} {self.finished}']
            for name, histogram in self._histograms().items():
                lines += [f"# TYPE {name} histogram", *histogram.lines(name, labels)]
        return "\n".join(lines) + "\n"

    @property
    def _cache_name(self) -> str:
        return "vllm:gpu_cache_usage_perc" if self.old_names else "vllm:kv_cache_usage_perc"

    def _histograms(self) -> dict[str, Histogram]:
        between = "vllm:time_per_output_token_seconds" if self.old_names else "vllm:inter_token_latency_seconds"
        return {
            "vllm:time_to_first_token_seconds": self.first_token,
            between: self.between_tokens,
            "vllm:e2e_request_latency_seconds": self.whole_request,
            "vllm:request_queue_time_seconds": self.in_queue,
        }


def _sample(name: str, kind: str, labels: str, value: float) -> list[str]:
    return [f"# TYPE {name} {kind}", f"{name}{{{labels}}} {value}"]


class Handler(BaseHTTPRequestHandler):
    """vLLM's endpoints. ``model`` is set by :func:`serve`."""

    model: ClassVar[Model]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer health, metrics and facts."""
        answers: dict[str, Callable[[], tuple[str, str]]] = {
            "/health": lambda: ("text/plain", ""),
            "/metrics": lambda: ("text/plain; version=0.0.4; charset=utf-8", self.model.metrics()),
            "/version": lambda: ("application/json", json.dumps({"version": "0.0.0+stand-in"})),
            "/v1/models": lambda: (
                "application/json",
                json.dumps({"object": "list", "data": [{"id": self.model.name}]}),
            ),
        }
        answer = answers.get(self.path)
        self._send(HTTPStatus.OK, *answer()) if answer else self._send(HTTPStatus.NOT_FOUND, "text/plain", "Not Found")

    def do_POST(self) -> None:
        """Answer a completion."""
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path != "/v1/completions":
            self._send(HTTPStatus.NOT_FOUND, "text/plain", "Not Found")
            return
        try:
            asked = json.loads(body)
            answer = self.model.complete(str(asked["prompt"]), int(asked.get("max_tokens", 16)))
        except (ValueError, KeyError, TypeError) as error:
            self._send(HTTPStatus.BAD_REQUEST, "application/json", json.dumps({"error": {"message": str(error)}}))
            return
        self._send(HTTPStatus.OK, "application/json", json.dumps(answer))

    def _send(self, status: HTTPStatus, kind: str, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Keep probes out of the log."""


class Server(ThreadingHTTPServer):
    """Threads end with the process."""

    daemon_threads = True


def serve(model: Model, host: str, port: int, mps: socket.socket | None) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code. A dead MPS daemon ends the process at once."""
    Handler.model = model
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with Server((host, port), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        if mps is not None:
            threading.Thread(target=_die_with_daemon, args=(mps,), daemon=True).start()
        say(f"KV cache of {model.name}: {model.cache_mib / 1024:.2f} GiB")
        say(f"Application startup complete. Listening on port {server.server_address[1]}")
        stop.wait()
        server.shutdown()
    say("Application shutdown complete.")
    return 0


def _die_with_daemon(mps: socket.socket) -> None:
    try:
        ended = not mps.recv(1)
    except OSError:
        ended = True
    if ended:
        say("RuntimeError: CUDA error: the remote procedural call between the MPS server and the MPS client failed")
        os._exit(1)  # as a CUDA client of a dead server: nothing can be cleaned up
