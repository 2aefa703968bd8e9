"""The stand-in for vLLM starts, refuses and dies where real vLLM was seen to."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from cluster_harness.waiting import wait_for
from stand_in_process import Daemon, Server

UUID = "GPU-3c1a2b44-0000-0000-0000-000000000001"
QUARTER = {
    "CTA_GROUP_COUNT": "32",
    "CTA_GROUP_CAPACITY": "128",
    "CTA_GROUP_MEMORY_MIB": "35532",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"{UUID}=35532M",
    "NVIDIA_VISIBLE_DEVICES": UUID,
}
"""What the plugin gives a quarter of an H200."""
MEASURED = {**QUARTER, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"{UUID}=35788M"}
H200 = ["--stand-in-gpu-total-mib=143155"]
FITS = "--gpu-memory-utilization=0.2257"


Start = Callable[..., Server]
ANSWER = {"sm_percent": 25, "memory_mib": None}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start the stand-in with these words as a client of a daemon, in the slice that was measured."""
    with ExitStack() as running:

        def started(
            *words: str,
            environment: Mapping[str, str] = MEASURED,
            answer: Mapping[str, object] = ANSWER,
        ) -> Server:
            daemon = Daemon(tmp_path / "pipe", answer)
            running.callback(daemon.die)
            pipe = {"CUDA_MPS_PIPE_DIRECTORY": str(daemon.folder)}
            server = Server(["serve", "m", "--port=0", *words], {**environment, **pipe}, daemon)
            running.callback(server.close)
            return server

        yield started


@pytest.fixture
def start_alone() -> Iterator[Start]:
    """Start the stand-in with these words and this environment, without a daemon."""
    with ExitStack() as running:

        def started(*words: str, environment: Mapping[str, str] = QUARTER) -> Server:
            server = Server(list(words), environment, None)
            running.callback(server.close)
            return server

        yield started


@pytest.mark.parametrize(
    "words",
    [["--gpu-memory-utilization=0.23"], ["--gpu_memory_util", "0.2275"], ["--gpu-mem=0.04", "--max-model-len=auto"]],
)
def test_a_share_that_fits_starts_as_a_client_of_the_daemon(start: Start, words: list[str]) -> None:
    """It answers /health, names its model, and says what it is."""
    server = start(*H200, *words)
    assert server.get("/health") == (200, "")
    assert json.loads(server.get("/v1/models")[1])["data"] == [{"id": "m"}]
    assert server.daemon is not None
    assert server.daemon.hello == "hello\n"
    assert "STAND-IN" in server.log


def test_the_default_share_ends_with_vllm_s_own_words(start: Start) -> None:
    """The text is the one that vLLM 0.25.0 printed in the same slice of a real H200."""
    log = start(*H200).ended(1)
    assert (
        "ValueError: Free memory on device cuda:0 (34.81/139.8 GiB) on startup is less than desired GPU memory "
        "utilization (0.92, 128.62 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
    ) in log
    assert "Engine core initialization failed" in log


@pytest.mark.parametrize(
    ("share", "said"),
    [
        ("0.25", "less than desired"),
        ("0.2488", "out of memory"),
        ("0.2429", "out of memory"),
        ("0.24", "out of memory"),
    ],
)
def test_it_dies_at_every_share_at_which_vllm_died(start: Start, share: str, said: str) -> None:
    """First the check at the start, then what the check does not see."""
    assert said in start(*H200, f"--gpu-memory-utilization={share}").ended(1)


def test_without_graphs_a_higher_share_starts(start: Start) -> None:
    """--enforce-eager saves the graphs' memory."""
    start(*H200, "--gpu-memory-utilization=0.24", "--enforce-eager").wait_serving()


def test_bytes_for_the_cache_alone_do_not_help(start: Start) -> None:
    """The start-up check still runs, as in vLLM."""
    assert "less than desired" in start(*H200, "--kv-cache-memory-bytes=8G").ended(1)


def test_a_context_that_the_cache_cannot_hold_is_refused_with_the_longest_one_that_fits(start: Start) -> None:
    """As vLLM says it."""
    log = start(*H200, "--gpu-memory-utilization=0.04").ended(1)
    assert re.search(r"estimated maximum model length is \d{4,5}\.", log)


def test_the_total_of_the_card_comes_from_the_environment_of_the_slice(start: Start) -> None:
    """Share x capacity / groups and the reserve, low by no more than whole MiB make it."""
    assert "139.8 GiB) on startup" in start(environment=QUARTER).ended(1)


def test_the_daemon_s_own_limit_counts_where_the_environment_has_none(start: Start) -> None:
    """A process that drops its limit gets the daemon's."""
    environment = {key: value for key, value in QUARTER.items() if "LIMIT" not in key}
    log = start(environment=environment, answer={"sm_percent": 25, "memory_mib": 17766}).ended(1)
    assert "(17.21/139.8 GiB)" in log


def test_a_client_that_the_daemon_refuses_ends(start: Start) -> None:
    """As CUDA ends when the server takes no more clients."""
    assert "client table is full" in start(FITS, answer={"error": "client table is full"}).ended(1)


def test_it_dies_with_its_daemon(start: Start) -> None:
    """An MPS client does not outlive the server."""
    server = start(FITS)
    server.wait_serving()
    assert server.daemon is not None
    server.daemon.die()
    assert "MPS server" in server.ended(1)


def test_without_a_daemon_it_runs_without_limits_and_says_so_loudly(start_alone: Start, tmp_path: Path) -> None:
    """Real CUDA bypasses the slice in silence; the stand-in bypasses it too, and warns."""
    environment = {**QUARTER, "CUDA_MPS_PIPE_DIRECTORY": str(tmp_path)}
    server = start_alone("serve", "m", "--port=0", environment=environment)
    server.wait_serving()
    assert "WITHOUT" in server.log
    assert "bypasses its slice" in server.log


def test_a_whole_gpu_starts_with_the_default(start_alone: Start) -> None:
    """No MPS, no limit, nothing to align."""
    environment = {**QUARTER, "CTA_GROUP_COUNT": "128", "CTA_GROUP_MEMORY_MIB": "142131"}
    del environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"]
    start_alone("serve", "m", "--port=0", environment=environment).wait_serving()


def test_without_a_gpu_it_ends(start_alone: Start) -> None:
    """A container that was given nothing finds no device."""
    assert "Failed to infer device type" in start_alone("serve", "m", environment={}).ended(1)


def test_two_ranks_on_one_gpu_are_refused(start_alone: Start) -> None:
    """Tensor parallelism needs as many GPUs as ranks."""
    assert "available GPUs" in start_alone("serve", "m", "-tp", "2", FITS).ended(1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--disable-bandwidth-scheduler"], "unrecognized arguments: --disable-bandwidth-scheduler"),
        (["--max-model-len 8192", "x"], "unrecognized arguments"),
        (["--gpu-memory-utilization=1.5"], "above 0 and at most 1"),
        (["--enforce-eager=true"], "ignored explicit argument"),
    ],
)
def test_arguments_that_vllm_does_not_know_are_refused_as_argparse_does(
    start_alone: Start, words: list[str], said: str
) -> None:
    """Exit code 2 and the parser's sentence."""
    assert said in start_alone("serve", "m", *words).ended(2)


@pytest.mark.parametrize("words", [["m"], ["--model", "m"], ["serve", "m", "--dtype=auto", "--trust_remote_code"]])
def test_the_forms_of_the_command_line_mean_the_same(start_alone: Start, words: list[str]) -> None:
    """Arguments alone, as below the image's entrypoint, and `serve` with its model."""
    server = start_alone(*words, "--port=0", FITS)
    assert json.loads(server.get("/v1/models")[1])["data"] == [{"id": "m"}]


def test_completions_are_counted_under_vllm_s_names(start_alone: Start) -> None:
    """Requests, tokens and latencies are what a dashboard for vLLM reads."""
    server = start_alone("serve", "m", "--port=0", "--served-model-name", "small", FITS)
    status, text = server.post("/v1/completions", {"prompt": "x" * 40, "max_tokens": 5})
    assert (status, json.loads(text)["usage"]) == (200, {"prompt_tokens": 10, "completion_tokens": 5})
    samples = dict(line.rsplit(" ", 1) for line in server.get("/metrics")[1].splitlines() if not line.startswith("#"))
    labels = 'engine="0",model_name="small"'
    expected = {
        f"vllm:num_requests_running{{{labels}}}": 0,
        f"vllm:num_requests_waiting{{{labels}}}": 0,
        f"vllm:kv_cache_usage_perc{{{labels}}}": 0,
        f"vllm:prompt_tokens_total{{{labels}}}": 10,
        f"vllm:generation_tokens_total{{{labels}}}": 5,
        f"vllm:time_to_first_token_seconds_count{{{labels}}}": 1,
        f'vllm:inter_token_latency_seconds_bucket{{{labels},le="+Inf"}}': 4,
        f'vllm:request_success_total{{finished_reason="length",{labels}}}': 1,
    }
    assert {name: float(samples[name]) for name in expected} == expected


def test_a_request_without_a_prompt_is_refused(start_alone: Start) -> None:
    """A wrong body is the client's fault, not the server's end."""
    server = start_alone("serve", "m", "--port=0", FITS)
    assert server.post("/v1/completions", {})[0] == 400
    assert server.get("/health") == (200, "")


def test_sigterm_ends_it_cleanly(start_alone: Start) -> None:
    """Exit code 0, as kubelet wants it."""
    server = start_alone("serve", "m", "--port=0", FITS)
    server.wait_serving()
    server.process.send_signal(signal.SIGTERM)
    assert "shutdown complete" in server.ended(0)


def test_it_is_a_client_of_the_simulated_daemon(start_alone: Start, tmp_path: Path) -> None:
    """The plugin's simulated MPS daemon and the stand-in speak the same protocol."""
    environment = {"CUDA_MPS_PIPE_DIRECTORY": str(tmp_path), "CUDA_MPS_LOG_DIRECTORY": str(tmp_path)}
    daemon = subprocess.Popen(
        [sys.executable, "-m", "cta_group_plugin.simulated.mps_control", "-f"], env={**os.environ, **environment}
    )
    try:
        wait_for((tmp_path / "simulated.sock").exists, "the daemon's socket")
        server = start_alone("serve", "m", "--port=0", FITS, environment={**QUARTER, **environment})
        server.wait_serving()
        state = json.loads((tmp_path / "simulated-state.json").read_text())
        assert state["clients"] == [server.process.pid]
    finally:
        daemon.kill()
        daemon.wait()
    assert "MPS server" in server.ended(1)
