"""Reading words as vLLM's parser would: which word is a flag, which its value, which the model.

The rules are argparse's (exact spelling, ``=``, unique prefix, negative numbers are values, a word with a space is
never a flag) and vLLM's additions (underscores, dotted JSON keys, ``-O3``).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from cta_group_core.vllm.flags import ALIASES, ARITIES, LONG_NAMES, Arity, Flag, Spelling, resolve
from cta_group_core.vllm.shown import shown
from cta_group_core.vllm.word import Word

_NEGATIVE_NUMBER = re.compile(r"-\d+|-\d*\.\d+")
# One-letter flags take their value in the same word.
_ATTACHED = re.compile(r"-(O[^=]|[nqr][^.=]).*", re.DOTALL)
_BOOLEANS = frozenset({"--enable-chunked-prefill", "--multi-step-stream-outputs"})
"""Switches that could have a value in older releases, such as 0.6."""
_TRUTHS = {"true": True, "false": False}
_BY_NAME = {flag.value: flag for flag in Flag} | ALIASES


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One flag that the project acts on, where it is written."""

    flag: Flag
    word: Word
    """The word that holds the flag, and with ``=`` its value too."""
    value: Word | None
    """The word after it; None with ``=`` and for switches."""
    text: str | None
    """The value as written; None for a switch."""
    enabled: bool = True
    """False for ``--no-...``; switches only."""
    unresolved: tuple[str, ...] = ()
    """Parts of the value that are not known."""
    index: int = 0
    """The flag's place among vLLM's words."""

    @property
    def spelling(self) -> str:
        """The flag as the user wrote it."""
        return self.word.text.partition("=")[0]


@dataclass(frozen=True, slots=True)
class Other:
    """A flag that the project only reads."""

    name: str
    """Its full spelling, for a key of a JSON flag with the key (``--compilation-config.level``)."""
    values: tuple[str, ...]
    """None for a switch; several for a flag that takes several words."""
    enabled: bool = True
    unresolved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that cannot be read with certainty, or that vLLM will refuse."""

    word: str
    reason: str
    rejected: bool
    """True when every vLLM ends with an error here."""

    def __str__(self) -> str:
        return f"{shown(self.word)!r}: {shown(self.reason)}"


@dataclass(slots=True)
class Scan:
    """Everything found in one pass; built by :func:`scan`."""

    occurrences: list[Occurrence] = field(default_factory=list)
    others: list[Other] = field(default_factory=list)
    positionals: list[Word] = field(default_factory=list)
    hidden: list[Word] = field(default_factory=list)
    """Words outside of a flag that a shell or kubelet makes something of which is not known: perhaps more flags."""
    problems: list[Problem] = field(default_factory=list)
    end_of_options: Word | None = None
    """A bare ``--``: a flag after it is none."""


def scan(words: Sequence[Word]) -> Scan:
    """Read all words once, from left to right."""
    found = Scan()
    index = 0
    while index < len(words):
        text = words[index].text
        if text == "--":
            found.end_of_options = words[index]
            found.positionals += words[index + 1 :]
            break
        if _is_option(text):
            index = _read_option(words, index, found)
        else:
            _read_positional(words[index], found)
            index += 1
    return found


def _is_option(text: str) -> bool:
    if len(text) < 2 or text[0] != "-" or _NEGATIVE_NUMBER.fullmatch(text):  # noqa: PLR2004 - "-" alone is a value
        return False
    option, equals, _ = text.partition("=")
    keyed = equals and "." in option and " " not in option  # whatever its value is, vLLM takes it first
    return " " not in text or bool(keyed) or bool(_meaning(text).names)


def _meaning(text: str) -> Spelling:
    option, equals, _ = text.partition("=")
    if equals and not option.startswith("--") and option not in ARITIES:
        return Spelling(())  # -t=2: short flags are abbreviated only without a value in the same word
    return resolve(option)


def _read_positional(word: Word, found: Scan) -> None:
    if word.unresolved and found.positionals:  # the first one is most likely the model
        found.hidden.append(word)
        return
    option, space, _ = word.text.partition(" ")
    if space and option.startswith("-"):
        reason = "a flag and its value in one word with a space between: write two words, or = instead of the space"
        found.problems.append(Problem(word.text, reason, rejected=bool(_meaning(option).names)))
    found.positionals.append(word)


def _read_option(words: Sequence[Word], index: int, found: Scan) -> int:
    """Read the option at ``index`` with its values; return the index after them."""
    word = words[index]
    option, equals, explicit = word.text.partition("=")
    if _ATTACHED.fullmatch(word.text):  # -O3, -Odecode, -n4
        return _read_attached(word, index, found)
    if "." in option:  # --compilation-config.level 3, -cc.level=3
        return _read_json_key(words, index, found)
    meaning = _meaning(word.text)
    if meaning.name is None:
        return _skip_unclear(words, index, meaning.names, found)
    if meaning.name in _BOOLEANS and (after := _read_boolean(words, index, meaning.name, found)):
        return after
    after = _end_of_values(words, index + 1, ARITIES[meaning.name], explicit if equals else None)
    _Noted(index, word, meaning.name, explicit if equals else None, words[index + 1 : after]).note(found)
    return after


def _read_boolean(words: Sequence[Word], index: int, name: str, found: Scan) -> int | None:
    """Read a switch with a truth value beside it; None where there is none."""
    _, equals, explicit = words[index].text.partition("=")
    text = explicit if equals else "".join(word.text for word in words[index + 1 : index + 2])
    enabled = _TRUTHS.get(text.lower())
    if enabled is None:
        return None
    found.others.append(Other(name, (), enabled))
    reason = f"older releases take {text} here, newer ones take no value: write {name} or --no-{name[2:]}"
    found.problems.append(Problem(words[index].text, reason, rejected=False))
    return index + (1 if equals else 2)


def _read_attached(word: Word, index: int, found: Scan) -> int:
    short = word.text[:2]
    if short in LONG_NAMES:  # -O3 is not the same in every release
        found.others.append(Other(LONG_NAMES[short], (word.text[2:],), unresolved=word.unresolved))
    return index + 1


def _read_json_key(words: Sequence[Word], index: int, found: Scan) -> int:
    option, equals, explicit = words[index].text.partition("=")
    key, _, path = option.partition(".")
    following = words[index + 1 : index + 2]
    if not equals and not following:
        found.problems.append(Problem(option, "it needs a value", rejected=True))
    values = (explicit,) if equals else tuple(word.text for word in following)
    unresolved = words[index].unresolved if equals else tuple(one for word in following for one in word.unresolved)
    name = resolve(key).name or key.replace("_", "-")
    found.others.append(Other(f"{LONG_NAMES.get(name, name)}.{path}", values, unresolved=unresolved))
    return index + (1 if equals else 2)


def _end_of_values(words: Sequence[Word], start: int, arity: Arity, explicit: str | None) -> int:
    """Return the index after the words that belong to an option which ended at ``start``."""
    if explicit is not None or arity is Arity.SWITCH:
        return start
    end = start
    most = len(words) if arity is Arity.MANY else start + 1
    while end < min(most, len(words)) and words[end].text != "--" and not _is_option(words[end].text):
        end += 1
    return end


def _skip_unclear(words: Sequence[Word], index: int, names: tuple[str, ...], found: Scan) -> int:
    option, equals, _ = words[index].text.partition("=")
    if names:
        reason = f"ambiguous: it abbreviates {', '.join(names[:4])}{', ...' if len(names) > 4 else ''}"  # noqa: PLR2004
    else:
        reason = "no release that was looked at has this flag"
    found.problems.append(Problem(option, reason, rejected=False))
    # A word after it is taken for its value: calling it the model would be a guess.
    return index + 1 if equals else _end_of_values(words, index + 1, Arity.VALUE, None)


@dataclass(frozen=True, slots=True)
class _Noted:
    """One option that is understood, with its values."""

    index: int
    word: Word
    name: str
    explicit: str | None
    values: Sequence[Word]

    def note(self, found: Scan) -> None:
        """Add it to what was found."""
        arity = ARITIES[self.name]
        if arity is Arity.SWITCH and self.explicit is not None:
            found.problems.append(Problem(self.word.text, f"{self.name} takes no value", rejected=True))
        elif arity in {Arity.VALUE, Arity.MANY} and self.explicit is None and not self.values:
            found.problems.append(Problem(self.word.text, f"{self.name} needs a value", rejected=True))
        else:
            self._note(found, enabled=not self.name.startswith("--no-"))

    def _note(self, found: Scan, *, enabled: bool) -> None:
        name = self.name if enabled else self.name.replace("--no-", "--", 1)
        given = self.values if self.explicit is None else (self.word,)
        unresolved = tuple(one for word in given for one in word.unresolved)
        flag = _BY_NAME.get(name)
        if flag is None:
            texts = tuple(word.text for word in self.values) if self.explicit is None else (self.explicit,)
            found.others.append(Other(LONG_NAMES.get(name, name), texts, enabled, unresolved))
            return
        value = self.values[0] if self.values else None
        text = self.explicit if self.explicit is not None else value.text if value is not None else None
        found.occurrences.append(Occurrence(flag, self.word, value, text, enabled, unresolved, self.index))
