"""Command lines of `vllm serve` as people write them, and as they get them wrong; the same ones in every run."""

import random
from collections.abc import Callable
from pathlib import Path

from cta_group_core.vllm.flags import ARITIES, Arity

Line = list[str]

_SHARES = ["0.5", ".9", "0.25", "1", "1e-1", "0.123456"]
_COUNTS = ["1", "2", "64", "1024"]
_SIZES = ["4096", "8k", "8K", "1.5k", "2M", "1g"]
_VALUES: dict[str, list[str]] = {
    "--gpu-memory-utilization": _SHARES,
    "--max-model-len": [*_SIZES, "auto", "-1"],
    "--max-num-seqs": _COUNTS,
    "--max-num-batched-tokens": _SIZES,
    "--kv-cache-memory-bytes": [*_SIZES, "28G"],
    "--tensor-parallel-size": _COUNTS,
    "--pipeline-parallel-size": _COUNTS,
    "--data-parallel-size": _COUNTS,
    "--data-parallel-size-local": _COUNTS,
    "--port": ["8000", "8080"],
    "--served-model-name": ["small", "org/small"],
    "--dtype": ["bfloat16", "auto"],
    "--quantization": ["fp8", "awq"],
    "--seed": ["0", "7"],
    "--tool-call-parser": ["hermes"],
    "--trust-remote-code": [],
    "--enforce-eager": [],
    "--enable-prefix-caching": [],
    "--disable-log-stats": [],
    "--nnodes": ["1", "2"],
    "--compilation-config": ['{"mode": 3}'],
}
_SHORT = {"--tensor-parallel-size": "-tp", "--pipeline-parallel-size": "-pp", "--data-parallel-size": "-dp"}
_ONE_LETTER = {"--quantization": "-q", "--nnodes": "-n"}
_WRONG = [
    ["--disable-bandwidth-scheduler"],
    ["--profile-dir", "/x"],
    ["--max-model-len 8192"],
    ["-tp2"],
    ["--gpu-memory-utilization"],
    ["--enforce-eager=true"],
    ["--max-num", "3"],
    ["--max-model-len", "8.5K"],
    ["--max-num-seqs", "many"],
    ["--gpu-memory-utilization", "lots"],
    ["--tensor-parallel-size", "1.5"],
    ["--config"],
    ["--config", "c.json"],
    ["--port", "--enforce-eager"],
    ["another"],
]


class Writer:
    """Writes lines from a seed. ``config`` is a file that lines may name."""

    def __init__(self, seed: int, config: Path) -> None:
        self._random = random.Random(seed)  # noqa: S311 - the same lines in every run
        self._config = str(config)

    def line(self) -> Line:
        """Return one line."""
        choose = self._random
        flags = [word for _ in range(choose.randint(0, 6)) for word in self._flag()]
        ways: list[Callable[[], Line]] = [
            lambda: ["org/m", *flags],
            lambda: [*flags, "--model", "org/m"],
            lambda: ["--model=org/m", *flags],
            lambda: ["org/m", *flags, "--config", self._config],
            lambda: ["org/m", f"--config={self._config}", *flags],
            lambda: ["--config", self._config, *flags],
            lambda: [*flags, "--", "org/m"],
            lambda: ["org/m", *choose.choice(_WRONG), *flags],
            lambda: ["org/m", *flags, *choose.choice(_WRONG)],
            lambda: [*flags, "--port", "8000", "org/m"],
            lambda: ["--model", "org/a", "--model", "org/b", *flags],
        ]
        return choose.choices(ways, weights=[8, 3, 2, 2, 1, 1, 1, 2, 1, 2, 1])[0]()

    def _flag(self) -> Line:
        choose = self._random
        name = choose.choice(list(_VALUES))
        values = _VALUES[name]
        spelling = self._spelling(name)
        if not values:
            return [
                choose.choice([spelling, *([] if name == "--disable-log-stats" else [name.replace("--", "--no-", 1)])])
            ]
        if name == "--compilation-config" and choose.random() < 0.7:
            keyed = choose.choice([name, "-cc"])
            return choose.choice(
                [
                    [f"{keyed}.mode", "2"],
                    [f"{keyed}.cudagraph_mode=NONE"],
                    [f"{keyed}.splitting_ops+", "a"],
                    [f"{keyed}.cache_dir=/two words"],
                ]
            )
        value = choose.choice(values)
        if name in _ONE_LETTER and choose.random() < 0.3:
            return choose.choice([[f"{_ONE_LETTER[name]}{value}"], [_ONE_LETTER[name], value]])
        if ARITIES[name] is Arity.MANY and choose.random() < 0.3:
            return [spelling, value, "second"]
        return choose.choice([[spelling, value], [f"{spelling}={value}"]])

    def _spelling(self, name: str) -> str:
        choose = self._random
        way = choose.random()
        if way < 0.15 and name in _SHORT:
            return _SHORT[name]
        if way < 0.35:
            name = name[: choose.randint(min(7, len(name)), len(name))]
        if way < 0.6:
            return name[:2] + name[2:].replace("-", "_")
        return name
