"""What a shell keeps while its script is gone through: variables, arrays, parameters; each may be unknown."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from cta_group_core.vllm.surroundings import LONGEST_TEXT, Surroundings
from cta_group_core.vllm.word import Word

_MOST_ITEMS = 2000
_MOST_PUT_IN = 200_000
_COUNT = re.compile(r"[0-9]{1,4}")
_NO_NAME = Word("$0", None, ("$0",))


def text_of(word: Word | None) -> str | None:
    """Return a value as programs get it; None where it is not known."""
    return None if word is None or word.unresolved else word.text


@dataclass(frozen=True, slots=True)
class Kept:
    """What a shell has while another runs inside of it."""

    depth: int
    """Of the parentheses inside."""
    arrays: dict[str, Sequence[Word] | None]
    texts: dict[str, Word | None]
    parameters: Sequence[Word] | None


@dataclass(slots=True)
class Variables:
    """The variables of a shell while its script is gone through; a value that is None is unknown."""

    surroundings: Surroundings
    parameters: Sequence[Word] | None = ()
    """``$0``, ``$1`` and the following; None where they were changed in a way that is not known."""
    arrays: dict[str, Sequence[Word] | None] = field(default_factory=dict)
    texts: dict[str, Word | None] = field(default_factory=dict)
    in_function: bool = False
    """A function's ``$@`` and ``$1`` are its own, and not known."""
    uncertain: bool = False
    """The command that is looked at may not run: what it sets is not known from there on."""
    exported: set[str] = field(default_factory=set)
    """Variables of the script's own that programs get which it starts."""
    outside: list[Kept] = field(default_factory=list)
    """What the shells outside of open parentheses have."""
    room: int = _MOST_PUT_IN
    """Characters that may still be put in for expressions; what comes after them stays unknown."""

    def enter(self, depth: int, lowest: int) -> None:
        """Go to a command in so many parentheses; ``lowest``: in how few the script was since the one before."""
        while self.outside and self.outside[-1].depth > lowest:
            self.restore(self.outside.pop())
        if depth > (self.outside[-1].depth if self.outside else 0):
            self.outside.append(self.kept(depth))

    def kept(self, depth: int = 0) -> Kept:
        """Return what a shell has now, before one inside of it changes its own."""
        return Kept(depth, dict(self.arrays), dict(self.texts), self.parameters)

    def restore(self, kept: Kept) -> None:
        """Go back to the shell outside."""
        self.arrays, self.texts, self.parameters = kept.arrays, kept.texts, kept.parameters

    def forget_all(self) -> None:
        """Take every variable for unknown: something that is not at hand may have set any."""
        given = self.surroundings
        self.surroundings = replace(given, variables=dict.fromkeys(given.variables), more_variables=True)
        self.texts, self.arrays = dict.fromkeys(self.texts), dict.fromkeys(self.arrays)

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
        known = not self.uncertain and value is not None and len(value.text) <= LONGEST_TEXT
        self.texts[name] = value if known else None

    def assign_array(self, name: str, items: Sequence[Word] | None) -> None:
        """Set a variable to an array."""
        self.texts.pop(name, None)
        known = not self.uncertain and items is not None and len(items) <= _MOST_ITEMS
        self.arrays[name] = items if known else None

    def known(self) -> Mapping[str, str | None]:
        """Return the environment that a program started here has, as far as it is known."""
        given = self.surroundings.variables
        own = {name: text_of(word) for name, word in self.texts.items() if name in given or name in self.exported}
        return {**given, **own, **dict.fromkeys(self._perhaps_exported())}

    def _perhaps_exported(self) -> set[str]:
        """Return names that somebody else may have given, and so would be handed on as they are now."""
        return self.texts.keys() - self.surroundings.variables.keys() if self.surroundings.more_variables else set()

    def parameter(self, name: str) -> Word | None:
        """Return ``$0``, ``$1`` and so on; None when it is unknown. A parameter that was not given raises KeyError."""
        if self.parameters is None or self.in_function:
            return None
        index = int(name)
        if index >= len(self.parameters):
            if index == 0:
                return None
            raise KeyError(name)
        return self.parameters[index]

    @property
    def splits_oddly(self) -> bool:
        """Whether the script changed where values are parted."""
        return "IFS" in self.texts

    def all_parameters(self) -> Sequence[Word] | None:
        """Return ``$@``; None when it is unknown."""
        return None if self.parameters is None or self.in_function else self.parameters[1:]

    def replace_parameters(self, words: Sequence[Word] | None) -> None:
        """Set ``$1`` and the following, as ``set --`` does; None is unknown. Those of a function are its own."""
        if self.in_function:
            return
        known = words is not None and self.parameters is not None and not self.uncertain
        self.parameters = [*((self.parameters or ())[:1] or [_NO_NAME]), *(words or ())] if known else None

    def shift(self, by: Sequence[Word]) -> None:
        """Drop ``$1``, or as many as the word says."""
        count = by[0].text if by else "1"
        given = self.parameters or ()
        if _COUNT.fullmatch(count) and int(count) < len(given):
            self.replace_parameters(given[1 + int(count) :])
        else:  # more than there are: some shells end, others go on with all of them
            self.replace_parameters(None)
