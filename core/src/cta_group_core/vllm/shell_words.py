"""A shell script cut into commands and words, before anything is put in for its variables.

It knows what people write around a server's start: quotes, continued lines, comments, ``;``, ``&&``, redirections,
here-documents, arrays. It runs nothing.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache

from cta_group_core.vllm.shell_nesting import Nesting
from cta_group_core.vllm.shell_parts import Part, Quote, RawCommand, RawWord, Unreadable

LONGEST_SCRIPT = 16_384
_OPERATORS = ("&&", "||", ";;", ";", "&", "|", "\n", "(", ")")
_VARIABLE = re.compile(r"[@*#?$!-]|\d|\w*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_PLAIN = re.compile(r'[^"$`\\]*')
_REDIRECTIONS = ("<<<", "<<-", "<<", "&>>", "&>", ">>", ">&", ">|", "<&", "<>", ">", "<")


@lru_cache(maxsize=64)
def cut(script: str) -> tuple[RawCommand, ...]:
    """Return the commands of a script in their order, or raise :class:`Unreadable`."""
    if len(script) > LONGEST_SCRIPT:
        raise Unreadable(f"it is longer than {LONGEST_SCRIPT} characters")
    return tuple(_Cutter(script).commands())


@dataclass(slots=True)
class _Cutter:
    text: str
    at: int = 0
    heredocs: list[str] = field(default_factory=list)
    nesting: Nesting = field(default_factory=Nesting)

    def commands(self) -> list[RawCommand]:
        found: list[RawCommand] = []
        before, words = "", list[RawWord]()
        while self.at < len(self.text):
            if self.text.startswith("((", self.at):
                words += self._arithmetic()
                continue
            operator = self._operator()
            if operator is not None:
                if words:
                    found.append(self.nesting.command(before, words))
                elif before == ")" and operator == "\n":
                    continue  # the body of a function may begin on the next line
                before, words = operator, []
                self.nesting.count(operator)
            elif not self._skip():
                words.append(self._word())
        return [*found, self.nesting.command(before, words)] if words else found

    def _arithmetic(self) -> list[RawWord]:
        """Return ``((i = 1))`` as the ``let`` that it is, with the names in it."""
        start = self.at
        self.at -= 1  # as if a dollar sign were before it
        self._nested()
        names = dict.fromkeys(_NAME.findall(self.text, start, self.at))
        return [RawWord((Part("let"),)), *(RawWord((Part(name),)) for name in names)]

    def _operator(self) -> str | None:
        found = next((one for one in _OPERATORS if self.text.startswith(one, self.at)), None)
        if found is None or self.text.startswith("&>", self.at):
            return None
        self.at += len(found)
        if found == "\n":
            self._skip_heredocs()
        return found

    def _skip(self) -> bool:
        """Skip a blank, a continued line, a comment or a redirection; tell whether there was one."""
        rest = self.text[self.at : self.at + 2]
        if rest == "\\\n":
            self.at += 2
        elif rest[0] in " \t\r":
            self.at += 1
        elif rest[0] == "#":
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end
        else:
            return self._skip_redirection()
        return True

    def _skip_redirection(self) -> bool:
        start = self.at
        if self._is_substitution():
            return False
        self.at += len(self.text[start : start + 9]) - len(self.text[start : start + 9].lstrip("0123456789"))
        sign = next((one for one in _REDIRECTIONS if self.text.startswith(one, self.at)), None)
        if sign is None:
            self.at = start
            return False
        self.at += len(sign)
        while self.text[self.at : self.at + 1] in {" ", "\t"}:
            self.at += 1
        target = self._word()
        if sign in {"<<", "<<-"}:
            self.heredocs.append(target.source)
        return True

    def _skip_heredocs(self) -> None:
        for end in self.heredocs:
            while self.at < len(self.text):
                line, _, _ = self.text[self.at :].partition("\n")
                self.at = min(len(self.text), self.at + len(line) + 1)
                if line.strip("\t") == end:
                    break
        self.heredocs.clear()

    def _word(self) -> RawWord:
        parts: list[Part] = []
        while self.at < len(self.text):
            here = self.text[self.at]
            if self._is_substitution():
                parts.append(self._expression(Quote.NONE))
                continue
            if here in " \t\r\n;&|<>)":
                break
            if here == "(":
                return self._array(parts)
            self._part(here, parts)
        return RawWord(tuple(parts))

    def _is_substitution(self) -> bool:
        """Tell whether a program's output or input stands here as a file: ``>(tee log)``."""
        return self.text.startswith(("<(", ">("), self.at)

    def _array(self, parts: list[Part]) -> RawWord:
        self.at += 1
        if not parts or not parts[-1].text.endswith("="):
            self.nesting.count("(")
            return RawWord((*parts, Part("(")))  # a function's name, or something else that is no assignment
        items: list[RawWord] = []
        while self.at < len(self.text):
            if self.text[self.at] == ")":
                self.at += 1
                return RawWord(tuple(parts), tuple(items))
            if self.text[self.at] in ";&|<>\n":
                self.at += 1
            elif not self._skip():
                items.append(self._word())
        raise Unreadable("an array has no end")

    def _part(self, here: str, parts: list[Part]) -> None:
        if here == "'":
            parts.append(Part(self._until("'", self.at + 1), Quote.SINGLE))
        elif here == '"':
            self._double(parts)
        elif here == "\\":
            if self.text[self.at + 1 : self.at + 2] != "\n":  # at the very end it stands for itself
                parts.append(Part(self.text[self.at + 1 : self.at + 2] or here, Quote.SINGLE))
            self.at += 2
        elif self.text.startswith(("$'", '$"'), self.at):
            self.at += 1  # the dollar sign is of the quotes
        elif here in "$`":
            parts.append(self._expression(Quote.NONE))
        else:
            start = self.at
            while self.at < len(self.text) and self.text[self.at] not in " \t\r\n;&|<>()'\"\\$`":
                self.at += 1
            parts.append(Part(self.text[start : self.at]))

    def _double(self, parts: list[Part]) -> None:
        self.at += 1
        parts.append(Part("", Quote.DOUBLE))
        while self.at < len(self.text):
            here = self.text[self.at]
            if here == '"':
                self.at += 1
                return
            if here in "$`":
                parts.append(self._expression(Quote.DOUBLE))
            elif here == "\\" and self.text[self.at + 1 : self.at + 2] in {"\\", '"', "$", "`", "\n"}:
                escaped = self.text[self.at + 1]
                parts.append(Part("" if escaped == "\n" else escaped, Quote.DOUBLE))
                self.at += 2
            else:
                plain = _PLAIN.match(self.text, self.at + 1)
                end = plain.end() if plain else self.at + 1
                parts.append(Part(self.text[self.at : end], Quote.DOUBLE))
                self.at = end
        raise Unreadable('a " has no end')

    def _until(self, end: str, start: int) -> str:
        stop = self.text.find(end, start)
        if stop < 0:
            raise Unreadable(f"a {end} has no end")
        self.at = stop + 1
        return self.text[start:stop]

    def _expression(self, quote: Quote) -> Part:
        start = self.at
        if self.text[start] == "`":
            self._until("`", start + 1)
        elif self.text[start + 1 : start + 2] in {"(", "{"}:
            self._nested()
        else:
            name = _VARIABLE.match(self.text, start + 1)
            self.at = name.end() if name else start + 1
        text = self.text[start : self.at]
        return Part(text, quote, replaced=text != "$")

    def _nested(self) -> None:
        """Go past ``$(...)`` or ``${...}`` with what is nested in it; quotes inside are gone past too."""
        pairs, depth = {"(": ")", "{": "}"}, list[str]()
        self.at += 1
        while self.at < len(self.text):
            here = self.text[self.at]
            self.at += 1
            if here == "\\":
                self.at += 1
            elif here == "'" and ")" in depth:
                self._until("'", self.at)
            elif here in pairs:
                depth.append(pairs[here])
            elif depth and here == depth[-1]:
                depth.pop()
                if not depth:
                    return
        raise Unreadable("an expression has no end")
