"""Flags out of a file that ``--config`` names, put where vLLM puts them.

vLLM (``FlexibleArgumentParser._pull_args_from_config``) reads the file only when ``--config`` is a word of its own, and
puts its flags before those of the command line, which so win.
"""

import json
from collections.abc import Mapping, Sequence

from cta_group_core.vllm.flags import ARITIES
from cta_group_core.vllm.scan import Problem
from cta_group_core.vllm.surroundings import Surroundings
from cta_group_core.vllm.word import Word

_OPTION = "--config"


def with_config(words: Sequence[Word], surroundings: Surroundings) -> tuple[list[Word], str, list[Problem]]:
    """Return the words with those of the config file in front, the path of a file that is not at hand, and problems.

    The words ``--config FILE`` stay where they are.
    """
    indexes = [index for index, word in enumerate(words) if word.text == _OPTION]
    if not indexes:
        return list(words), "", []
    if len(indexes) > 1:
        return list(words), "", [Problem(_OPTION, "vLLM reads one config file, not several", rejected=True)]
    following = words[indexes[0] + 1 : indexes[0] + 2]
    if not following:
        return list(words), "", []  # the scan says that it needs a value
    path = following[0]
    if not path.unresolved and path.text.rpartition(".")[2] not in {"yaml", "yml"}:
        return list(words), "", [Problem(path.text, "vLLM reads config files named .yaml or .yml only", rejected=True)]
    content = surroundings.configs.get(path.text)
    if content is None:
        return list(words), path.text, []
    at = 1 if words and not words[0].text.startswith("-") else 0
    return [*words[:at], *_flags(content), *words[at:]], "", []


def _flags(content: Mapping[str, object]) -> list[Word]:
    return [Word(text, None) for key, value in content.items() for text in _flag(str(key), value)]


def _flag(key: str, value: object) -> list[str]:
    if isinstance(value, bool):
        off = f"--no-{key}".replace("_", "-")
        return [f"--{key}"] if value else [off] if off in ARITIES else []
    if isinstance(value, list):
        return [f"--{key}", *map(str, value)] if value else []
    return [f"--{key}", json.dumps(value, default=str) if isinstance(value, dict) else str(value)]
