"""Memory as a vLLM process in an MPS slice sees it, and where it ends for want of it. Part of the STAND-IN."""

import argparse
import json
import math
import os
import re
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

_MIB_IN_GIB = 1024
_RESERVE_MIB = 1024  # the plugin's default
_CONTEXT_WITHOUT_MPS_MIB = 522
_EXTRA_MIB, _EXTRA_EAGER_MIB = 1376, 844
_PROFILED_MIB = 1126  # peak activation and what is not PyTorch's
_KV_KIB_PER_TOKEN = 112  # Qwen3-0.6B: 29.95 GiB held 280416 tokens
_DEFAULT_MODEL_LENGTH = 40960


def say(text: str) -> None:
    """Write a line of the log at once."""
    print(text, flush=True)  # noqa: T201 - the log of a server in a container


def die(*lines: str) -> NoReturn:
    """End as vLLM does when its engine cannot start."""
    for line in lines:
        say(f"(EngineCore) ERROR {line}")
    say("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}")
    sys.exit(1)


def gib(mib: float) -> float:
    """Return MiB as the GiB that vLLM prints."""
    return round(mib / _MIB_IN_GIB, 2)


@dataclass
class Gpu:
    """The card and the slice of it that this process is in. All in MiB."""

    total: int
    context: float
    limit: int | None
    """None: nothing limits this process."""
    connection: socket.socket | None
    """The client of the MPS daemon lives as long as it."""

    @property
    def free(self) -> float:
        """What a CUDA process sees as free at its start."""
        return (self.total if self.limit is None else min(self.limit, self.total)) - self.context


def find_gpu(options: argparse.Namespace) -> Gpu:
    """Return the slice from the environment that the device plugin makes, and join its MPS daemon."""
    memory, groups, capacity = (
        int(os.environ.get(name, "0")) for name in ("CTA_GROUP_MEMORY_MIB", "CTA_GROUP_COUNT", "CTA_GROUP_CAPACITY")
    )
    total = options.stand_in_gpu_total_mib or (memory * capacity // groups + _RESERVE_MIB if groups else 0)
    if not total:
        die("RuntimeError: Failed to infer device type")
    if options.tensor_parallel_size * options.pipeline_parallel_size * options.data_parallel_size > _gpu_count():
        die("ValueError: the world size is larger than the number of available GPUs")
    connection, ceiling = join_mps()
    if connection is None:
        return Gpu(total, _CONTEXT_WITHOUT_MPS_MIB, None, None)
    limits = [limit for limit in (_own_limit(), ceiling) if limit is not None]
    return Gpu(total, 29 + 3.7 * groups, min(limits, default=None), connection)


def _gpu_count() -> int:
    return len(os.environ.get("NVIDIA_VISIBLE_DEVICES", "one").split(","))


def _own_limit() -> int | None:
    """Return the MiB of CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, such as `0=16G` or `GPU-...=19996M`."""
    found = re.search(r"=(\d+)([MG])", os.environ.get("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", ""))
    return int(found[1]) * (_MIB_IN_GIB if found[2] == "G" else 1) if found else None


def join_mps() -> tuple[socket.socket | None, int | None]:
    """Become a client of the simulated daemon; return the connection and the daemon's own memory limit in MiB."""
    folder = os.environ.get("CUDA_MPS_PIPE_DIRECTORY")
    if folder is None:
        say("STAND-IN: no CUDA_MPS_PIPE_DIRECTORY: this process has the whole GPU, without limits")
        return None, None
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(Path(folder) / "simulated.sock"))
        connection.sendall(b"hello\n")
        answer: dict[str, Any] = json.loads(connection.makefile().readline() or '{"error": "MPS server is not ready"}')
    except OSError as error:
        say(f"STAND-IN: WARNING: no MPS daemon answers in {folder} ({error}). CUDA says nothing here and runs WITHOUT")
        say("STAND-IN: WARNING: LIMITS: this process bypasses its slice and could take the memory of its neighbours")
        return None, None
    if "error" in answer:
        die(f"RuntimeError: CUDA error: MPS client failed to connect to the MPS server: {answer['error']}")
    return connection, answer.get("memory_mib")


def check_memory(options: argparse.Namespace, gpu: Gpu) -> float:
    """End where vLLM would; return the MiB of the KV cache."""
    utilization = options.gpu_memory_utilization
    asked = math.ceil(gpu.total * utilization)
    if gpu.free < asked:
        die(
            f"ValueError: Free memory on device cuda:0 ({gib(gpu.free)}/{gib(gpu.total)} GiB) on startup is less than "
            f"desired GPU memory utilization ({utilization}, {gib(asked)} GiB). Decrease GPU memory utilization or "
            "reduce GPU memory used by other processes."
        )
    other = options.stand_in_weights_mib + _PROFILED_MIB
    cache = asked - other if options.kv_cache_memory_bytes is None else options.kv_cache_memory_bytes / 2**20
    extra = _EXTRA_EAGER_MIB if options.enforce_eager else _EXTRA_MIB
    most = gpu.total if gpu.limit is None else gpu.limit
    if other + cache + gpu.context + extra > most:
        die(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of "
            f"{gib(gpu.total)} GiB of which 1.33 MiB is free. Including non-PyTorch memory, this process has "
            f"{gib(most)} GiB memory in use."
        )
    return _check_cache(options, cache)


def _check_cache(options: argparse.Namespace, cache: float) -> float:
    if cache <= 0:
        die(
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
            "initializing the engine."
        )
    length = _DEFAULT_MODEL_LENGTH if options.max_model_len == 0 else options.max_model_len or 1
    needed = length * _KV_KIB_PER_TOKEN / 1024
    if needed > cache:
        die(
            f"ValueError: To serve at least one request with the model's max seq len ({length}), ({gib(needed)} GiB KV "
            f"cache is needed, which is larger than the available KV cache memory ({gib(cache)} GiB). Based on the "
            f"available memory, the estimated maximum model length is {int(cache * 1024 / _KV_KIB_PER_TOKEN)}."
        )
    return cache
