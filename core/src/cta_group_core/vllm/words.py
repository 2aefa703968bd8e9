"""The command line inside a container: which words are vLLM's arguments, and whether they may be edited."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Literal

_SHELLS = frozenset({"sh", "bash", "ash", "dash", "zsh", "busybox"})
_API_SERVERS = frozenset({"vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server"})
_CLI_MODULE = "vllm.entrypoints.cli.main"
_KAITO_SCRIPT = "inference_api.py"
# What makes a script more than one plain command, so that its words are not the program's words.
_SHELL_SYNTAX = re.compile(r"[$`;|&<>(){}*?!#~]")


class Form(StrEnum):
    """How vLLM's arguments are written."""

    LIST = "list"
    """Each argument is a word of its own in ``command`` or ``args``: can be read and edited."""
    SHELL = "shell"
    """A string that a shell reads: never edited."""
    UNKNOWN = "unknown"
    """A script, the image's own command, or something else: neither read nor edited."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a word stands in the container."""

    field: Literal["command", "args"]
    index: int


@dataclass(frozen=True, slots=True)
class Word:
    """One argument of vLLM. ``place`` is None when it comes out of a shell string."""

    text: str
    place: Place | None


@dataclass(frozen=True, slots=True)
class CommandLine:
    """vLLM's arguments in a container, after ``vllm serve``."""

    form: Form
    words: tuple[Word, ...] = ()
    """Empty when the form is unknown, or a shell string that does more than start one program."""
    readable: bool = True
    """False: there may be arguments that ``words`` does not show."""
    names_vllm: bool = False
    """The command line itself says that this is vLLM; otherwise the image's entrypoint is taken for it."""
    reason: str = ""
    """Why it cannot be edited; empty for the list form."""


def command_line(command: Sequence[str] | None, args: Sequence[str] | None) -> CommandLine:
    """Find vLLM's arguments in a container's ``command`` and ``args``.

    Without ``command`` the image's entrypoint runs; it is taken for ``vllm serve``, as in the official image.
    """
    words = [Word(text, Place("command", index)) for index, text in enumerate(command or ())]
    words += [Word(text, Place("args", index)) for index, text in enumerate(args or ())]
    if not words:
        return CommandLine(
            Form.UNKNOWN, readable=False, reason="the image's own command runs; setting args would replace it"
        )
    shell = _shell_script(words)
    if shell is not None:
        return _shell_line(shell)
    start = _after_launcher([word.text for word in words])
    if start is not None:
        return CommandLine(Form.LIST, tuple(words[start:]), names_vllm=True)
    if command:
        return CommandLine(
            Form.UNKNOWN, readable=False, reason=f"command {command[0]!r} is a program whose arguments are not known"
        )
    return CommandLine(Form.LIST, tuple(words))


def _shell_script(words: list[Word]) -> str | None:
    """Return the script when a shell runs: the word after ``-c`` (also ``-lc`` and ``-c --``), or "" for a file."""
    if PurePosixPath(words[0].text).name not in _SHELLS:
        # A whole shell command in one word is a common mistake; it is no vLLM argument either.
        first = words[0].text.split()
        return words[0].text if len(first) > 1 and PurePosixPath(first[0]).name in _SHELLS else None
    for index, word in enumerate(words[1:], start=1):
        if re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", word.text):
            script = [later.text for later in words[index + 1 :] if later.text != "--"]
            return script[0] if script else ""
        if not word.text.startswith("-") and word.text != "sh":
            break
    return ""


def _shell_line(script: str) -> CommandLine:
    if not script:
        return CommandLine(Form.SHELL, readable=False, reason="a script runs; it is never edited")
    reason = "the arguments are inside a shell string, which is never edited"
    plain = _plain_words(script)
    start = _after_launcher(plain) if plain is not None else None
    if plain is None or start is None:
        names = re.search(r"\bvllm\s+serve\b|vllm\.entrypoints\.|\binference_api\.py\b", script) is not None
        return CommandLine(Form.SHELL, readable=False, names_vllm=names, reason=reason)
    words = tuple(Word(text, None) for text in plain[start:])
    return CommandLine(Form.SHELL, words, names_vllm=True, reason=reason)


def _plain_words(script: str) -> list[str] | None:
    """Split a script that is one plain command (``exec`` and continued lines allowed); None when it is more."""
    text = script.replace("\\\n", " ").strip()
    if "\n" in text or _SHELL_SYNTAX.search(text):
        return None
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    return words[1:] if words[:1] == ["exec"] else words


def _after_launcher(words: Sequence[str]) -> int | None:
    """Return the index of the first argument after what starts vLLM, None when nothing here does.

    What stands before (``tini --``, ``env A=b``, ``numactl``) hands the rest on as it is.
    """
    for index, (word, following) in enumerate(zip(words, [*words[1:], ""], strict=True)):
        name = PurePosixPath(word).name
        if name == "vllm" and following == "serve":
            return index + 2
        if word == "-m" and following in _API_SERVERS:
            return index + 2
        if word == "-m" and following == _CLI_MODULE and words[index + 2 : index + 3] == ["serve"]:
            return index + 3
        if name == _KAITO_SCRIPT:
            return index + 1
    # `serve MODEL` or `serve --flag` below an entrypoint `vllm`.
    return 1 if words and words[0] == "serve" else None
