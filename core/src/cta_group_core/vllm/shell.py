"""The programs that a shell script starts, with their words, as far as they can be known without running anything.

Commands are gone through in their order. A variable that is set where only a branch may go (``if``, ``||``, a loop)
is unknown from there on; a script that can be read (``bash start.sh``, ``. env.sh``) is gone into.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from cta_group_core.vllm.shell_values import Variables, expand, expand_text
from cta_group_core.vllm.shell_words import Part, Quote, RawCommand, RawWord, Unreadable, cut
from cta_group_core.vllm.surroundings import Surroundings
from cta_group_core.vllm.word import Word

SHELLS = frozenset({"sh", "bash", "ash", "dash", "zsh"})
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z_0-9]*)(\+?)=")
_OPENING = frozenset({"if", "while", "until", "for", "case", "select"})
_CLOSING = frozenset({"fi", "done", "esac"})
_BETWEEN = frozenset({"then", "else", "elif", "do", "{", "}", "!", "time", "exec", "nohup", "command", "builtin"})
_DECLARING = frozenset({"export", "declare", "local", "readonly", "typeset"})
_DEEPEST = 4
_MOST_STEPS = 2000


@dataclass(slots=True)
class Script:
    """What was found in a script."""

    commands: list[tuple[Word, ...]] = field(default_factory=list)
    trouble: str = ""
    """Why a part could not be read; empty when all of it was."""
    steps: int = 0
    """Commands gone through, those of called scripts too."""


def run_through(script: str, surroundings: Surroundings, parameters: Sequence[Word] = ()) -> Script:
    """Return the commands of a script. ``parameters`` are its ``$1`` and the following. Never raises."""
    found = Script()
    try:
        _Reader(Variables(surroundings, parameters), found).read(script, depth=0)
    except RecursionError:
        return Script(trouble="its expressions are nested too deeply")
    return found


def shell_script(words: Sequence[Word]) -> tuple[Word | None, Word | None, Sequence[Word]]:
    """Return what a shell's command line runs: a text after ``-c``, or a file; and the parameters that it gets.

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
            return word, None, words[index + 2 :]
        else:
            return None, word, words[index + 1 :]
    return None, None, ()


@dataclass(slots=True)
class _Reader:
    variables: Variables
    found: Script
    branches: int = 0
    braces: list[bool] = field(default_factory=list)
    """Braces that are open; True for those of a function, which runs with parameters of its own, or never."""

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
        words = self._after_keywords(list(command.words), command.after)
        self.variables.in_function = any(self.braces)
        uncertain = self.branches > 0 or command.after == "||" or self.variables.in_function
        while words and (match := _assignment(words[0])):
            self._assign(words.pop(0), match, uncertain=uncertain)
        if words and words[0].plain in _DECLARING:
            for word in words[1:]:
                if match := _assignment(word):
                    self._assign(word, match, uncertain=uncertain)
            return
        if words and words[0].plain == "eval":
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
                self.braces.append(after == ")")
            elif keyword == "}" and self.braces:
                self.braces.pop()
            elif keyword in _OPENING:
                self.branches += 1
            elif keyword in _CLOSING:
                self.branches -= 1
            elif keyword not in _BETWEEN:
                break
            words = words[1:]
        return words

    def _assign(self, word: RawWord, match: re.Match[str], *, uncertain: bool) -> None:
        name, adds = match.group(1), bool(match.group(2))
        if word.items is not None:
            items = [one for item in word.items for one in expand(item, self.variables)]
            before = self.variables.arrays.get(name, []) if adds else []
            self.variables.assign_array(name, None if uncertain or before is None else [*before, *items])
            return
        head = word.parts[0]
        rest = RawWord((Part(head.text[match.end() :], Quote.DOUBLE), *word.parts[1:]))
        value: Word | None = expand_text(rest, self.variables)
        if adds and value is not None:
            value = self._joined(name, value)
        self.variables.assign(name, None if uncertain else value)

    def _joined(self, name: str, value: Word) -> Word | None:
        try:
            before = self.variables.text(name)
        except KeyError:
            return value
        return None if before is None else Word(before.text + value.text, None, before.unresolved + value.unresolved)

    def _program(self, words: list[Word], depth: int) -> None:
        if not words:
            return
        name = PurePosixPath(words[0].text).name
        if words[0].text == "set" and [word.text for word in words[1:2]] == ["--"]:
            self.variables.parameters = words[2:]
        elif words[0].text in {".", "source"} and len(words) > 1 and words[1].text in self.variables.surroundings.files:
            self.read(self.variables.surroundings.files[words[1].text], depth + 1)
        elif name in SHELLS or words[0].text in self.variables.surroundings.files:
            self._another_script(words, depth)
        else:
            self.found.commands.append(tuple(words))

    def _another_script(self, words: list[Word], depth: int) -> None:
        files = self.variables.surroundings.files
        text, file, parameters = shell_script(words)
        if words[0].text in files:
            text, file, parameters = None, words[0], words[1:]
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
