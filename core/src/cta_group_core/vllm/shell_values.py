"""What a shell puts in for the expressions of a word, as far as that can be known without running anything."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cta_group_core.vllm.shell_words import Part, Quote, RawWord, Unreadable, cut
from cta_group_core.vllm.surroundings import LONGEST_TEXT, Surroundings
from cta_group_core.vllm.word import Place, Word

_EXPRESSION = re.compile(r"\$(?:\{)?([A-Za-z_][A-Za-z_0-9]*|[@*0-9])(\[[@*]\])?(?:(:?[-=+])(.*))?\}?", re.DOTALL)
_LIST = re.compile(r"\$\{?@\}?|\$\{\w+\[@\]\}")
"""In quotes, these are as many words as they hold, none too."""
_MOST_ITEMS = 2000
_MOST_PUT_IN = 200_000
_WHITESPACE = re.compile(r"([ \t\r\n]+)")


@dataclass(slots=True)
class Variables:
    """The variables of a shell while its script is gone through; a value that is None is unknown."""

    surroundings: Surroundings
    parameters: Sequence[Word] = ()
    """``$1`` and the following."""
    arrays: dict[str, list[Word] | None] = field(default_factory=dict)
    texts: dict[str, Word | None] = field(default_factory=dict)
    in_function: bool = False
    """A function's ``$@`` and ``$1`` are its own, and not known."""
    room: int = _MOST_PUT_IN
    """Characters that may still be put in for expressions; what comes after them stays unknown."""

    def takes(self, words: Sequence[Word]) -> bool:
        """Count what is put in, and tell whether it is not too much yet."""
        if self.room >= 0:  # once it was too much it stays so, and nobody counts on
            self.room -= sum(len(word.text) + 1 for word in words)
        return self.room >= 0

    def text(self, name: str) -> Word | None:
        """Return a variable's value; None when it is unknown. A variable that nobody set raises KeyError."""
        if name in self.texts:
            return self.texts[name]
        if name in self.arrays:
            items = self.arrays[name]
            return items[0] if items else None
        if name in self.surroundings.variables:
            value = self.surroundings.variables[name]
            return None if value is None else Word(value, None)
        if self.surroundings.more_variables:
            return None
        raise KeyError(name)

    def assign(self, name: str, value: Word | None) -> None:
        """Set a variable to a text, or to something unknown."""
        self.arrays.pop(name, None)
        self.texts[name] = value if value is not None and len(value.text) <= LONGEST_TEXT else None

    def assign_array(self, name: str, items: list[Word] | None) -> None:
        """Set a variable to an array."""
        self.texts.pop(name, None)
        self.arrays[name] = items if items is not None and len(items) <= _MOST_ITEMS else None

    def known(self) -> Mapping[str, str | None]:
        """Return the environment that a program started here has, as far as it is known."""
        own = {
            name: word.text if word is not None and not word.unresolved else None for name, word in self.texts.items()
        }
        return {**self.surroundings.variables, **own}


def expand(raw: RawWord, variables: Variables) -> list[Word]:
    """Return the words that one word becomes: none, one, or many."""
    builder = _Builder()
    for part in raw.parts:
        _expand_part(part, variables, builder)
    words = builder.finished()
    nothing = all(not word.text for word in words) and any(_LIST.fullmatch(part.text) for part in raw.parts)
    return [] if nothing and len(words) == 1 and words[0].place is None else words


def expand_text(raw: RawWord, variables: Variables) -> Word:
    """Return what a word is where a shell never splits it, as in ``A=$B``."""
    words = expand(RawWord(tuple(Part(part.text, Quote.DOUBLE, part.replaced) for part in raw.parts)), variables)
    text = " ".join(word.text for word in words)
    return Word(text, None, tuple(one for word in words for one in word.unresolved))


@dataclass(slots=True)
class _Builder:
    words: list[Word] = field(default_factory=list)
    text: str = ""
    unresolved: tuple[str, ...] = ()
    place: Place | None = None
    open: bool = False
    """A word has begun (also an empty one, in quotes)."""
    quoted: bool = True

    def add(self, text: str, unresolved: tuple[str, ...] = (), *, starts: bool = True, quoted: bool = True) -> None:
        """Put text into the word that is being built."""
        if text:
            self.place = None
        self.text += text
        self.unresolved += unresolved
        self.open = self.open or starts
        self.quoted = self.quoted and quoted

    def end(self) -> None:
        """End the word, where one has begun."""
        if self.open:
            self.words.append(Word(self.text, self.place, self.unresolved, self.quoted))
        self.text, self.unresolved, self.place, self.open, self.quoted = "", (), None, False, True

    def whole(self, words: Sequence[Word]) -> None:
        """Put in words that stay words of their own; text beside them joins the first and the last."""
        for index, word in enumerate(words):
            if index:
                self.end()
            alone = not self.text
            self.add(word.text, word.unresolved, quoted=word.quoted)
            self.place = word.place if alone else None

    def finished(self) -> list[Word]:
        """Return all words."""
        self.end()
        return self.words


def _expand_part(part: Part, variables: Variables, builder: _Builder) -> None:
    if not part.replaced:
        builder.add(part.text, starts=bool(part.text) or part.quote is not Quote.NONE)
        return
    match = _EXPRESSION.fullmatch(part.text)
    name = match.group(1) if match else ""
    odd = match is None or (match.group(3) is not None and not part.text.startswith("${"))
    if match is None or odd or (variables.in_function and not name.isidentifier()):
        _put_unknown(part, builder)
    elif name in {"@", "*"}:
        _put_parameters(part, variables.parameters if variables.takes(variables.parameters) else (), builder)
    elif match.group(2):
        items = variables.arrays.get(name)
        _put_array(part, items if items is not None and variables.takes(items) else None, builder)
    else:
        _put_text(part, match, variables, builder)


def _put_unknown(part: Part, builder: _Builder) -> None:
    builder.add(part.text, (part.text,), quoted=part.quote is not Quote.NONE)


def _put_parameters(part: Part, parameters: Sequence[Word], builder: _Builder) -> None:
    if part.quote is Quote.DOUBLE:
        builder.whole(parameters)
        return
    for word in parameters:
        if _WHITESPACE.search(word.text):
            _split(word, builder)
        else:
            builder.whole([word])
        builder.end()


def _put_array(part: Part, items: list[Word] | None, builder: _Builder) -> None:
    if items is None:
        _put_unknown(part, builder)
    else:
        builder.whole(items)


def _put_text(part: Part, match: re.Match[str], variables: Variables, builder: _Builder) -> None:
    name, operator, other = match.group(1), match.group(3), (match.group(4) or "").removesuffix("}")
    try:
        value = _parameter(name, variables) if name.isdigit() else variables.text(name)
    except KeyError:
        if operator in {":-", "-", ":=", "="}:
            value = _default(other, variables)
        elif operator in {":+", "+"}:
            value = Word("", None)
        else:
            value = None
    else:
        if value is not None and operator in ({":+", "+"} if value.text else {":-", ":=", "+"}):
            value = _default(other, variables)
    if value is None or not variables.takes([value]):
        _put_unknown(part, builder)
    elif part.quote is Quote.DOUBLE:
        builder.add(value.text, value.unresolved)
    else:
        _split(value, builder)


def _parameter(name: str, variables: Variables) -> Word | None:
    index = int(name) - 1
    if not 0 <= index < len(variables.parameters):
        raise KeyError(name)
    return variables.parameters[index]


def _default(text: str, variables: Variables) -> Word | None:
    """Return the text after ``:-`` with its own expressions put in; None when it cannot be cut into words."""
    try:
        commands = cut(text)
    except Unreadable:
        return None
    words = [word for command in commands for raw in command.words for word in expand(raw, variables)]
    return Word(" ".join(word.text for word in words), None, tuple(one for word in words for one in word.unresolved))


def _split(value: Word, builder: _Builder) -> None:
    """Put in a value that is not quoted: blanks in it part words."""
    if value.unresolved:
        builder.add(value.text, value.unresolved, quoted=False)
        return
    for piece in _WHITESPACE.split(value.text):
        if not piece or _WHITESPACE.fullmatch(piece):
            if piece:
                builder.end()
        else:
            builder.add(piece)
