"""Programs that start vLLM, and where its own arguments begin behind them."""

import re
from collections.abc import Sequence

from cta_group_core.vllm.word import Word

_MODULES = frozenset(
    {
        "vllm.entrypoints.openai.api_server",
        "vllm.entrypoints.api_server",
        "vllm.entrypoints.grpc_server",
        "dynamo.vllm",  # NVIDIA Dynamo's worker takes every argument of the engine
    }
)
_OFFLINE_MODULE = "vllm.entrypoints.openai.run_batch"
_CLI_MODULE = "vllm.entrypoints.cli.main"
_COMMANDS = (("serve",), ("run-batch",), ("bench", "throughput"), ("bench", "latency"))
"""Of ``vllm``: those that load a model. ``bench serve`` only asks a server."""
_FILES = ("/vllm/entrypoints/openai/api_server.py", "/vllm/entrypoints/api_server.py")
_KAITO_SCRIPT = "inference_api.py"
_NAMES_VLLM = re.compile(
    r"\bvllm\s+(?:serve|run-batch|bench\s+(?:throughput|latency))\b|vllm\.entrypoints\.|vllm/entrypoints/|\bdynamo\.vllm\b|\binference_api\.py\b"
)


def file_name(path: str) -> str:
    """Return the last part of a path; many words are looked at while somebody waits."""
    return path.rpartition("/")[2]


def names_vllm(text: str) -> bool:
    """Tell whether a text that is not read word by word speaks of a vLLM that is started."""
    return _NAMES_VLLM.search(text) is not None


def after_launcher(words: Sequence[Word]) -> int | None:
    """Return the index of the first argument after what starts vLLM, None when nothing here does.

    What stands before (``tini --``, ``env A=b``, ``numactl``) hands the rest on as it is.
    """
    texts = [word.text for word in words]
    for index, (word, following) in enumerate(zip(texts, [*texts[1:], ""], strict=True)):
        name = file_name(word)
        if name == "vllm" and (command := _command(texts[index + 1 : index + 3])):
            return index + 1 + len(command)
        if word == "-m" and following in _MODULES | {_OFFLINE_MODULE}:
            return index + 2
        if word == "-m" and following == _CLI_MODULE and (command := _command(texts[index + 2 : index + 4])):
            return index + 2 + len(command)
        if name == _KAITO_SCRIPT or f"/{word}".endswith(_FILES):
            return index + 1
    return None


def _command(following: Sequence[str]) -> tuple[str, ...] | None:
    return next((one for one in _COMMANDS if tuple(following[: len(one)]) == one), None)


def is_offline(words: Sequence[Word], start: int) -> bool:
    """Tell whether what begins at ``start`` takes flags of its own beside the engine's, and serves nobody."""
    return words[start - 1].text in {"run-batch", "throughput", "latency", _OFFLINE_MODULE}
