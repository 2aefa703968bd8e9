"""A STAND-IN for vLLM, for tests and the demo. It loads no model, computes nothing and needs no GPU.

It simulates what decides whether a server starts in a slice: the flags that matter (others from a short list are
accepted and ignored), the memory a process asks for and really takes, as measured with vLLM 0.25.0 on an H200, the
limit that MPS sets on it, vLLM's own error texts, and vLLM's HTTP endpoints and metric names. Measured facts:

- A CUDA process sees as free memory its MPS limit less its context, 29 MiB + 3.7 MiB a group; the total it sees is the
  whole card's. Without MPS there is no limit, whatever the environment says.
- vLLM asks for utilization x total, and takes about 1.3 GiB more for CUDA graphs and warm-up, 0.8 GiB without graphs.
- A container that cannot reach its MPS daemon runs without any limit and says nothing. The stand-in does say it.

The card's total is not in the environment of a slice. It is derived from what is (memory share, capacity, groups) and
the plugin's default reserve of 1024 MiB, so it can be some MiB low; ``--stand-in-gpu-total-mib`` overrides it. The MPS
daemon is the simulated one: a line ``hello`` to ``simulated.sock`` in the pipe folder makes this a client of it.
"""

import argparse
import re
import sys

from stand_in_memory import check_memory, find_gpu, say
from stand_in_server import Model, serve

_SUFFIXES = {"": 1, "k": 1000, "K": 1024, "m": 10**6, "M": 2**20, "g": 10**9, "G": 2**30, "t": 10**12, "T": 2**40}

_IGNORED_VALUES = """--dtype --download-dir --load-format --quantization --tokenizer --seed --api-key --kv-cache-dtype
--uvicorn-log-level --max-num-seqs --max-num-batched-tokens --generation-config --max-logprobs --revision
--compilation-config --tool-call-parser --reasoning-parser --chat-template --block-size --runner"""
_IGNORED_SWITCHES = """--trust-remote-code --enable-prefix-caching --enable-chunked-prefill --enable-auto-tool-choice
--disable-log-stats --enable-log-requests --disable-uvicorn-access-log --enable-sleep-mode --async-scheduling"""


def size(text: str) -> int:
    """Read a number as vLLM's parser does: 8192, 8k, 8K."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgGtT]?)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"invalid number: {text!r}")
    return int(float(match[1]) * _SUFFIXES[match[2]])


def share(text: str) -> float:
    """Read a share of memory: above 0 and at most 1."""
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text}: must be above 0 and at most 1")
    return value


def parse(words: list[str]) -> argparse.Namespace:
    """Read the arguments after `vllm serve`: underscores are dashes, the last value wins, prefixes are completed."""
    parser = argparse.ArgumentParser(prog="vllm serve")
    parser.add_argument("model_tag", nargs="?")
    parser.add_argument("--model", default="Qwen/Qwen3-0.6B")
    parser.add_argument("--served-model-name", nargs="+")
    parser.add_argument("--host", default="")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--gpu-memory-utilization", "--device-memory-utilization", type=share, default=0.92)
    parser.add_argument("--kv-cache-memory-bytes", type=size)
    parser.add_argument("--max-model-len", type=lambda text: None if text in {"auto", "-1"} else size(text), default=0)
    parser.add_argument("--enforce-eager", action=argparse.BooleanOptionalAction)
    for name, short in (("--tensor-parallel-size", "-tp"), ("--pipeline-parallel-size", "-pp")):
        parser.add_argument(name, short, type=int, default=1)
    parser.add_argument("--data-parallel-size", "-dp", type=int, default=1)
    for name in _IGNORED_VALUES.split():
        parser.add_argument(name, dest="ignored")
    for name in _IGNORED_SWITCHES.split():
        parser.add_argument(name, action=argparse.BooleanOptionalAction, dest="ignored")
    parser.add_argument("--stand-in-gpu-total-mib", type=int, help="memory of the whole card, instead of deriving it")
    parser.add_argument("--stand-in-old-metrics", action="store_true", help="metrics as releases before 0.10 name them")
    parser.add_argument("--stand-in-weights-mib", type=int, default=1147, help="size of the model that is not loaded")
    return parser.parse_args([re.sub(r"^--[^.=]*", lambda key: key[0].replace("_", "-"), word) for word in words])


def main(words: list[str]) -> int:
    """Start as `vllm serve` does, or end as it does; return the exit code."""
    if words[:1] == ["serve"]:
        words = words[1:]
    options = parse(words)
    say("STAND-IN for vLLM: nothing is loaded or computed; memory is counted, not used")
    gpu = find_gpu(options)
    cache_mib = check_memory(options, gpu)
    name = options.model_tag or options.model
    model = Model((options.served_model_name or [name])[0], cache_mib, old_names=options.stand_in_old_metrics)
    return serve(model, options.host, options.port, gpu.connection)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
