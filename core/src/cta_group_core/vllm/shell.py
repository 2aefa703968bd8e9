"""The programs that a shell script starts, with their words, as far as they can be known without running anything.

Commands are gone through in their order. A variable that is set where only a branch may go (``if``, ``||``, a loop,
``[ ... ] &&``) is unknown from there on; a script that can be read (``bash start.sh``, ``. env.sh``) is gone into.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from cta_group_core.vllm.launchers import after_launcher, file_name
from cta_group_core.vllm.shell_builtins import DECLARING, assign, assigned, declare, forget, set_parameters, value_of
from cta_group_core.vllm.shell_parts import RawCommand, RawWord, Unreadable
from cta_group_core.vllm.shell_values import expand, values_in
from cta_group_core.vllm.shell_variables import Variables, text_of
from cta_group_core.vllm.shell_words import cut
from cta_group_core.vllm.surroundings import Surroundings
from cta_group_core.vllm.word import Word

SHELLS = frozenset({"sh", "bash", "ash", "dash", "zsh"})
_TEXT_FOLLOWS = re.compile(r"-[a-zA-Z]*c[a-zA-Z]*")
_SPECIAL = re.compile(r"""["'\\$`{}();&|<>~*?#!]""")
_OPENING = frozenset({"if", "while", "until", "for", "case", "select"})
_CLOSING = frozenset({"fi", "done", "esac"})
_BETWEEN = frozenset({"then", "else", "elif", "do", "{", "}", "!", "time", "exec", "nohup", "command", "builtin"})
_TESTING = frozenset({"test", "[", "[[", "grep", "command", "which", "type", "shift"})
"""What is behind their ``&&`` may not run."""
_HARMLESS = frozenset({"activate", "conda.sh", "null", "profile", "bashrc", ".bashrc"})
"""Files of others that set a program's place and nothing that a server is started with."""
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
        for command, following in zip(commands, (*commands[1:], None), strict=False):
            self.found.steps += 1
            if self.found.steps > _MOST_STEPS:
                self.found.trouble = self.found.trouble or f"it has more than {_MOST_STEPS} commands"
                return
            piped = command.after == "|" or (following is not None and following.after == "|")
            self._command(command, depth, piped=piped)

    def _command(self, command: RawCommand, depth: int, *, piped: bool) -> None:
        self.variables.enter(command.depth, command.lowest)
        self.tested = command.after == "||" or (command.after == "&&" and self.tested)
        words = self._after_keywords(list(command.words), command.after)
        self.variables.in_function = Block.FUNCTION in self.blocks
        self.variables.uncertain = (
            self.branches > 0 or self.tested or any(one is not Block.PLAIN for one in self.blocks)
        )
        before = self.variables.kept() if piped else None
        self._run(words, depth)
        if before is not None:  # each part of a pipe is a shell of its own
            self.variables.restore(before)
        self.tested = self.tested or any(word.plain in _TESTING for word in command.words[:2])

    def _run(self, words: list[RawWord], depth: int) -> None:
        count = 0
        while count < len(words) and assigned(words[count]):
            count += 1
        given = [(word, match) for word in words[:count] if (match := assigned(word))]
        words = words[count:]
        if not words:
            for word, match in given:
                assign(word, match, self.variables)
        elif words[0].plain in DECLARING:
            declare(words, self.variables)
        else:  # what is given stands for this program alone, and not for its words
            own = {match.group(1): value_of(word, match, self.variables) for word, match in given}
            if words[0].plain == "eval":
                self._evaluate(words[1:], depth, own)
            else:
                self._program([one for word in words for one in expand(word, self.variables)], depth, own)

    def _evaluate(self, words: Sequence[RawWord], depth: int, own: Mapping[str, Word | None]) -> None:
        """Read what ``eval`` gets: as written, or where a value holds quotes and the like, with the values put in."""
        if not own and not any(_SPECIAL.search(one.text) for one in values_in(words, self.variables)):
            self.read(" ".join(word.source for word in words), depth + 1)
            return
        values = [one for word in words for one in expand(word, self.variables)]
        if any(one.unresolved for one in values):
            self.variables.forget_all()
            self.found.trouble = self.found.trouble or "eval reads quotes out of what is not known"
        else:
            self._read_with(" ".join(one.text for one in values), depth, own)

    def _read_with(self, script: str, depth: int, own: Mapping[str, Word | None]) -> None:
        """Read a script that this shell runs itself, with variables that are there for it alone."""
        for name, value in own.items():
            self.variables.assign(name, value)
        self.read(script, depth + 1)
        for name in own:
            self.variables.assign(name, None)

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
                if keyword in {"for", "select"} and len(words) > 1 and words[1].plain:
                    self.variables.assign(words[1].plain, None)
            elif keyword in _CLOSING:
                self.branches -= 1
            elif keyword not in _BETWEEN:
                break
            words = words[1:]
        return words

    def _program(self, words: list[Word], depth: int, own: Mapping[str, Word | None]) -> None:
        if not words:
            return
        files = self.variables.surroundings.files
        forget(words, self.variables)
        if words[0].text == "set":
            set_parameters(words[1:], self.variables)
        elif words[0].text == "shift":
            self.variables.shift(words[1:])
        elif words[0].text in {".", "source"} and len(words) > 1:
            if words[1].text in files:
                self._read_with(files[words[1].text], depth, own)
            elif file_name(words[1].text) not in _HARMLESS:
                self.variables.forget_all()
        elif is_shell(words[0]) or words[0].text in files:
            self._another_script(words, depth, own)
        elif (inner := shell_behind(words)) is not None:
            self._another_script(words[inner:], depth, own)
        else:
            self.found.commands.append(tuple(words))

    def _another_script(self, words: list[Word], depth: int, own: Mapping[str, Word | None]) -> None:
        files = self.variables.surroundings.files
        text, file, parameters = shell_script(words)
        if words[0].text in files:
            text, file, parameters = None, words[0], words
        script = text.text if text is not None else files.get(file.text) if file is not None else None
        if script is None or (text is not None and text.unresolved):
            self.found.commands.append(tuple(words))
            return
        inner = Surroundings(
            {**self.variables.known(), **{name: text_of(word) for name, word in own.items()}},
            self.variables.surroundings.more_variables,
            files,
            self.variables.surroundings.configs,
        )
        _Reader(Variables(inner, parameters), self.found, self.branches).read(script, depth + 1)
