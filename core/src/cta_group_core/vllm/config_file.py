"""Flags out of a file that ``--config`` names, put where vLLM puts them.

vLLM (``FlexibleArgumentParser._pull_args_from_config``) reads the file only when ``--config`` is a word of its own, and
puts its flags before those of the command line, which so win.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cta_group_core.vllm.flags import ARITIES
from cta_group_core.vllm.scan import Problem
from cta_group_core.vllm.surroundings import Surroundings
from cta_group_core.vllm.word import Word

_OPTION = "--config"


@dataclass(frozen=True, slots=True)
class Config:
    """The file that a command line names, as vLLM takes it."""

    content: Mapping[str, object] | None = None
    """None where there is none, or where it is not at hand."""
    unseen: str = ""
    """The path of a file that vLLM reads and that is not at hand; empty otherwise."""
    problems: tuple[Problem, ...] = ()


def config_of(words: Sequence[Word], surroundings: Surroundings) -> Config:
    """Return the file that vLLM reads for these words."""
    indexes = [index for index, word in enumerate(words) if word.text == _OPTION]
    if len(indexes) > 1:
        return Config(problems=(Problem(_OPTION, "vLLM reads one config file, not several", rejected=True),))
    following = words[indexes[0] + 1 : indexes[0] + 2] if indexes else ()
    if not following:
        return Config()  # where there is a flag without a file, the scan says so
    path = following[0]
    if not path.unresolved and path.text.rpartition(".")[2] not in {"yaml", "yml"}:
        return Config(problems=(Problem(path.text, "vLLM reads config files named .yaml or .yml only", rejected=True),))
    content = surroundings.configs.get(path.text)
    return Config(content, unseen=path.text if content is None else "")


def with_config(words: Sequence[Word], config: Config) -> list[Word]:
    """Return the words with those of the config file in front. The words ``--config FILE`` stay where they are."""
    at = 1 if words and not words[0].text.startswith("-") else 0
    return [*words[:at], *_flags(config.content or {}), *words[at:]]


def _flags(content: Mapping[str, object]) -> list[Word]:
    return [Word(text, None) for key, value in content.items() for text in _flag(str(key), value)]


def _flag(key: str, value: object) -> list[str]:
    if isinstance(value, bool):
        off = f"--no-{key}".replace("_", "-")
        return [f"--{key}"] if value else [off] if off in ARITIES else []
    if isinstance(value, list):
        return [f"--{key}", *map(str, value)] if value else []
    return [f"--{key}", json.dumps(value, default=str) if isinstance(value, dict) else str(value)]
