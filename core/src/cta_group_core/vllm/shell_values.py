"""What a shell puts in for the expressions of a word, as far as that can be known without running anything."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from cta_group_core.vllm.shell_parts import Part, Quote, RawWord, Unreadable
from cta_group_core.vllm.shell_variables import Variables
from cta_group_core.vllm.shell_words import cut
from cta_group_core.vllm.word import Place, Word

_EXPRESSION = re.compile(r"\$(?:\{)?([A-Za-z_][A-Za-z_0-9]*|[@*0-9])(\[[@*]\])?(?:(:?[-=+?])(.*))?\}?", re.DOTALL)
_LIST = re.compile(r"\$\{?@\}?|\$\{\w+\[@\]\}")
"""In quotes, these are as many words as they hold, none too."""
_WHITESPACE = re.compile(r"([ \t\r\n]+)")


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
    if match is None or (match.group(3) is not None and not part.text.startswith("${")):
        _put_unknown(part, builder)
    elif name in {"@", "*"}:
        _put_parameters(part, variables, builder)
    elif match.group(2):
        items = variables.arrays.get(name)
        _put_array(part, items if items is not None and variables.takes(items) else None, builder)
    else:
        _put_text(part, match, variables, builder)


def _put_unknown(part: Part, builder: _Builder) -> None:
    one_word = part.quote is not Quote.NONE and not _LIST.fullmatch(part.text)
    builder.add(part.text, (part.text,), quoted=one_word)


def _put_parameters(part: Part, variables: Variables, builder: _Builder) -> None:
    parameters = variables.all_parameters()
    if parameters is None or not variables.takes(parameters):
        _put_unknown(part, builder)
        return
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
    value = _text_of(match, variables)
    if value is None or not variables.takes([value]):
        _put_unknown(part, builder)
    elif part.quote is Quote.DOUBLE:
        builder.add(value.text, value.unresolved)
    else:
        _split(value, builder)


def _text_of(match: re.Match[str], variables: Variables) -> Word | None:
    """Return what stands for ``${NAME}``, ``${NAME:-other}`` and the like; None when it is not known."""
    name, operator, other = match.group(1), match.group(3) or "", (match.group(4) or "").removesuffix("}")
    try:
        value = variables.parameter(name) if name.isdigit() else variables.text(name)
    except KeyError:
        missing = True
    else:
        if value is None:
            return None
        missing = operator.startswith(":") and not value.text
    kind = operator.removeprefix(":")
    if kind == "+":
        return Word("", None) if missing else _default(other, variables)
    if not missing:
        return value
    if kind not in {"-", "="}:
        return None  # it may come from elsewhere, or the shell ends here
    value = _default(other, variables)
    if kind == "=" and not name.isdigit():
        variables.assign(name, value)
    return value


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
