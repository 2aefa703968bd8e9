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
    if _is_more(raw):
        builder.add("", (raw.source,), quoted=False)
    for part in raw.parts:
        _expand_part(part, variables, builder)
    words = builder.finished()
    no_list = any(_LIST.fullmatch(part.text) for part in raw.parts) and not builder.listed
    nothing = no_list and all(not word.text for word in words)
    return [] if nothing and len(words) == 1 and words[0].place is None else words


def values_in(words: Sequence[RawWord], variables: Variables) -> list[Word]:
    """Return what would be put in for the expressions of words; nothing is set by looking."""
    parts = [Part(part.text, Quote.DOUBLE, part.replaced) for word in words for part in word.parts if part.replaced]
    before = dict(variables.texts)
    found = [one for part in parts for one in expand(RawWord((part,)), variables) if not one.unresolved]
    variables.texts = before
    return found


def _is_more(raw: RawWord) -> bool:
    """Tell whether a shell makes something of a word that is not looked at: ``a{b,c}``, ``{1..3}``, ``~/models``."""
    bare = "".join(part.text for part in raw.parts if part.quote is Quote.NONE and not part.replaced)
    inside = bare[bare.find("{") : bare.rfind("}") + 1] if "{" in bare else ""
    return "," in inside or ".." in inside or bare.startswith("~")


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
    listed: int = 0
    """Words that came out of lists."""

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
        self.listed += len(words)
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
        _put_array(part, items if items is not None and variables.takes(items) else None, variables, builder)
    else:
        _put_text(part, match, variables, builder)


def _put_unknown(part: Part, builder: _Builder) -> None:
    one_word = part.quote is not Quote.NONE and not _LIST.fullmatch(part.text)
    builder.add(part.text, (part.text,), quoted=one_word)


def _put_parameters(part: Part, variables: Variables, builder: _Builder) -> None:
    parameters = variables.all_parameters()
    _put_array(part, parameters if parameters is not None and variables.takes(parameters) else None, variables, builder)


def _put_array(part: Part, items: Sequence[Word] | None, variables: Variables, builder: _Builder) -> None:
    if items is None or (variables.splits_oddly and not (part.quote is Quote.DOUBLE and "@" in part.text)):
        _put_unknown(part, builder)
    else:
        _put_words(part, items, builder)


def _put_words(part: Part, words: Sequence[Word], builder: _Builder) -> None:
    """Put in a list: as it is where it is quoted, as one word where it is quoted with a star, else parted by blanks."""
    if part.quote is Quote.NONE:
        for index, word in enumerate(words):
            if index:
                builder.end()
            if word.unresolved or _WHITESPACE.search(word.text):
                _split(word, builder)
            elif word.text:
                builder.whole([word])
    elif "*" in part.text:
        builder.add(" ".join(word.text for word in words), tuple(one for word in words for one in word.unresolved))
    else:
        builder.whole(words)


def _put_text(part: Part, match: re.Match[str], variables: Variables, builder: _Builder) -> None:
    value = _text_of(match, variables)
    odd = variables.splits_oddly and part.quote is Quote.NONE
    if value is None or odd or not variables.takes([value] if isinstance(value, Word) else value):
        _put_unknown(part, builder)
    elif part.quote is Quote.DOUBLE:
        one = _as_one(value)
        builder.add(one.text, one.unresolved)
    elif isinstance(value, Word):
        _split(value, builder)
    else:
        for index, word in enumerate(value):
            if index:
                builder.end()
            builder.add(word.text, word.unresolved, quoted=word.quoted)


def _as_one(value: Word | Sequence[Word]) -> Word:
    if isinstance(value, Word):
        return value
    return Word(" ".join(word.text for word in value), None, tuple(one for word in value for one in word.unresolved))


def _text_of(match: re.Match[str], variables: Variables) -> Word | Sequence[Word] | None:
    """Return what stands for ``${NAME}``, and the words for ``${NAME:-other}`` and the like; None: it is not known."""
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
    return _instead(name, kind, other, variables) if missing else value


def _instead(name: str, kind: str, other: str, variables: Variables) -> Word | Sequence[Word] | None:
    """Return what stands for a variable or parameter that nobody gave."""
    if not kind and name.isdigit():
        return Word("", None)
    if kind not in {"-", "="}:
        return None  # it may come from elsewhere, or the shell ends here
    words = _default(other, variables)
    if kind == "=" and not name.isdigit():
        variables.assign(name, None if words is None else _as_one(words))
    return words


def _default(text: str, variables: Variables) -> list[Word] | None:
    """Return the words after ``:-`` with their own expressions put in; None when it cannot be cut into words."""
    try:
        commands = cut(text)
    except Unreadable:
        return None
    return [word for command in commands for raw in command.words for word in expand(raw, variables)]


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
