"""Programs that start vLLM, and where its own arguments begin behind them."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from cta_group_core.vllm.word import Word

_MODULES = frozenset(
    {
        "vllm.entrypoints.openai.api_server",
        "vllm.entrypoints.api_server",
        "vllm.entrypoints.grpc_server",
        "dynamo.vllm",  # NVIDIA Dynamo's worker takes every argument of the engine
    }
)
_CLI_MODULE = "vllm.entrypoints.cli.main"
_FILES = (("vllm", "entrypoints", "openai", "api_server.py"), ("vllm", "entrypoints", "api_server.py"))
_KAITO_SCRIPT = "inference_api.py"
_NAMES_VLLM = re.compile(
    r"\bvllm\s+serve\b|vllm\.entrypoints\.|vllm/entrypoints/|\bdynamo\.vllm\b|\binference_api\.py\b"
)


def names_vllm(text: str) -> bool:
    """Tell whether a text that is not read word by word speaks of a vLLM that is started."""
    return _NAMES_VLLM.search(text) is not None


def after_launcher(words: Sequence[Word]) -> int | None:
    """Return the index of the first argument after what starts vLLM, None when nothing here does.

    What stands before (``tini --``, ``env A=b``, ``numactl``) hands the rest on as it is.
    """
    texts = [word.text for word in words]
    for index, (word, following) in enumerate(zip(texts, [*texts[1:], ""], strict=True)):
        path = PurePosixPath(word)
        if path.name == "vllm" and following == "serve":
            return index + 2
        if word == "-m" and following in _MODULES:
            return index + 2
        if word == "-m" and following == _CLI_MODULE and texts[index + 2 : index + 3] == ["serve"]:
            return index + 3
        if path.name == _KAITO_SCRIPT or any(path.parts[-len(file) :] == file for file in _FILES):
            return index + 1
    return None
