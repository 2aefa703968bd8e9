"""The programs that a shell script starts, with their words, as far as they can be known without running anything.

Commands are gone through in their order. A variable that is set where only a branch may go (``if``, ``||``, a loop,
``[ ... ] &&``) is unknown from there on; a script that can be read (``bash start.sh``, ``. env.sh``) is gone into.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from cta_group_core.vllm.launchers import after_launcher, file_name
from cta_group_core.vllm.shell_parts import Part, Quote, RawCommand, RawWord, Unreadable
from cta_group_core.vllm.shell_values import expand, expand_text
from cta_group_core.vllm.shell_variables import Variables
from cta_group_core.vllm.shell_words import cut
from cta_group_core.vllm.surroundings import Surroundings
from cta_group_core.vllm.word import Word

SHELLS = frozenset({"sh", "bash", "ash", "dash", "zsh"})
_TEXT_FOLLOWS = re.compile(r"-[a-zA-Z]*c[a-zA-Z]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z_0-9]*)(\+?)=")
_OPENING = frozenset({"if", "while", "until", "for", "case", "select"})
_CLOSING = frozenset({"fi", "done", "esac"})
_BETWEEN = frozenset({"then", "else", "elif", "do", "{", "}", "!", "time", "exec", "nohup", "command", "builtin"})
_TESTING = frozenset({"test", "[", "[[", "grep", "command", "which", "type"})
"""What is behind their ``&&`` may not run."""
_DECLARING = frozenset({"export", "declare", "local", "readonly", "typeset"})
_DEEPEST = 4
_MOST_STEPS = 2000


class Block(Enum):
    """What commands between braces are."""

    FUNCTION = "a function, which runs with parameters of its own, or never"
    BRANCH = "commands that may not run"
    PLAIN = "commands that run"


@dataclass(slots=True)
class Script:
    """What was found in a script."""

    commands: list[tuple[Word, ...]] = field(default_factory=list)
    trouble: str = ""
    """Why a part could not be read; empty when all of it was."""
    steps: int = 0
    """Commands gone through, those of called scripts too."""


def run_through(script: str, surroundings: Surroundings, parameters: Sequence[Word] = ()) -> Script:
    """Return the commands of a script. ``parameters`` are its ``$0``, ``$1`` and the following. Never raises."""
    found = Script()
    try:
        _Reader(Variables(surroundings, parameters), found).read(script, depth=0)
    except RecursionError:
        return Script(trouble="its expressions are nested too deeply")
    return found


def is_shell(word: Word) -> bool:
    """Tell whether a word is the name or the path of a shell."""
    return file_name(word.text) in SHELLS


def shell_behind(words: Sequence[Word]) -> int | None:
    """Return the index of a shell that another program hands a text to: ``gosu vllm bash -c``, ``nice -n 5 sh -ec``."""
    for index in range(1, len(words[: after_launcher(words)]) - 1):
        if is_shell(words[index]) and _TEXT_FOLLOWS.fullmatch(words[index + 1].text):
            return index
    return None


def shell_script(words: Sequence[Word]) -> tuple[Word | None, Word | None, Sequence[Word]]:
    """Return what a shell's command line runs: a text after ``-c``, or a file; and the ``$0``, ``$1``... that it gets.

    ``words`` begin with the shell itself. Both are None for a shell that reads its input.
    """
    text = takes_name = False
    for index, word in enumerate(words[1:], start=1):
        if takes_name:  # of -o pipefail
            takes_name = False
        elif re.fullmatch(r"[-+][a-zA-Z]+", word.text):
            text = text or (word.text[0] == "-" and "c" in word.text)
            takes_name = word.text[-1] in "oO"
        elif word.text.startswith("--"):
            continue
        elif text:
            return word, None, words[index + 1 :]
        else:
            return None, word, words[index:]
    return None, None, ()


@dataclass(slots=True)
class _Reader:
    variables: Variables
    found: Script
    branches: int = 0
    blocks: list[Block] = field(default_factory=list)
    """Braces that are open."""
    tested: bool = False
    """A command before the ``&&`` decides whether this one runs."""

    def read(self, script: str, depth: int) -> None:
        if depth > _DEEPEST:
            self.found.trouble = self.found.trouble or "scripts call each other too deeply"
            return
        try:
            commands = cut(script)
        except Unreadable as unreadable:
            self.found.trouble = self.found.trouble or str(unreadable)
            return
        for command in commands:
            self.found.steps += 1
            if self.found.steps > _MOST_STEPS:
                self.found.trouble = self.found.trouble or f"it has more than {_MOST_STEPS} commands"
                return
            self._command(command, depth)

    def _command(self, command: RawCommand, depth: int) -> None:
        self.tested = command.after == "||" or (command.after == "&&" and self.tested)
        words = self._after_keywords(list(command.words), command.after)
        self.variables.in_function = Block.FUNCTION in self.blocks
        self.variables.uncertain = (
            self.branches > 0 or self.tested or any(one is not Block.PLAIN for one in self.blocks)
        )
        self._run(words, depth)
        self.tested = self.tested or any(word.plain in _TESTING for word in command.words[:2])

    def _run(self, words: list[RawWord], depth: int) -> None:
        while words and (match := _assignment(words[0])):
            self._assign(words.pop(0), match)
        if words and words[0].plain in _DECLARING:
            for word in words[1:]:
                if match := _assignment(word):
                    self._assign(word, match)
        elif words and words[0].plain == "eval":
            self.read(" ".join(word.source for word in words[1:]), depth + 1)
        elif words:
            self._program([one for word in words for one in expand(word, self.variables)], depth)

    def _after_keywords(self, words: list[RawWord], after: str) -> list[RawWord]:
        """Take off what only tells how commands hang together; ``after`` is the operator before them."""
        if words and words[0].plain == "function":
            words, after = words[2:], ")"
        while words:
            keyword = words[0].plain
            if keyword == "{":
                self.blocks.append(Block.FUNCTION if after == ")" else Block.BRANCH if self.tested else Block.PLAIN)
            elif keyword == "}" and self.blocks:
                self.blocks.pop()
            elif keyword in _OPENING:
                self.branches += 1
            elif keyword in _CLOSING:
                self.branches -= 1
            elif keyword not in _BETWEEN:
                break
            words = words[1:]
        return words

    def _assign(self, word: RawWord, match: re.Match[str]) -> None:
        name, adds = match.group(1), bool(match.group(2))
        if word.items is not None:
            items = [one for item in word.items for one in expand(item, self.variables)]
            before = self.variables.arrays.get(name, []) if adds else []
            self.variables.assign_array(name, None if before is None else [*before, *items])
            return
        head = word.parts[0]
        rest = RawWord((Part(head.text[match.end() :], Quote.DOUBLE), *word.parts[1:]))
        value: Word | None = expand_text(rest, self.variables)
        if adds and value is not None:
            value = self._joined(name, value)
        self.variables.assign(name, value)

    def _joined(self, name: str, value: Word) -> Word | None:
        try:
            before = self.variables.text(name)
        except KeyError:
            return value
        return None if before is None else Word(before.text + value.text, None, before.unresolved + value.unresolved)

    def _program(self, words: list[Word], depth: int) -> None:
        if not words:
            return
        files = self.variables.surroundings.files
        if words[0].text == "set" and [word.text for word in words[1:2]] == ["--"]:
            self.variables.replace_parameters(words[2:])
        elif words[0].text == "shift":
            self.variables.shift(words[1:])
        elif words[0].text in {".", "source"} and len(words) > 1 and words[1].text in files:
            self.read(files[words[1].text], depth + 1)
        elif is_shell(words[0]) or words[0].text in files:
            self._another_script(words, depth)
        elif (inner := shell_behind(words)) is not None:
            self._another_script(words[inner:], depth)
        else:
            self.found.commands.append(tuple(words))

    def _another_script(self, words: list[Word], depth: int) -> None:
        files = self.variables.surroundings.files
        text, file, parameters = shell_script(words)
        if words[0].text in files:
            text, file, parameters = None, words[0], words
        script = text.text if text is not None else files.get(file.text) if file is not None else None
        if script is None or (text is not None and text.unresolved):
            self.found.commands.append(tuple(words))
            return
        inner = Surroundings(
            self.variables.known(),
            self.variables.surroundings.more_variables,
            files,
            self.variables.surroundings.configs,
        )
        _Reader(Variables(inner, parameters), self.found, self.branches).read(script, depth + 1)


def _assignment(word: RawWord) -> re.Match[str] | None:
    if not word.parts or word.parts[0].replaced or word.parts[0].quote is not Quote.NONE:
        return None
    return _ASSIGNMENT.match(word.parts[0].text)
