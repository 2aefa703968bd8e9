"""What a shell's own commands do to its variables: assignments, ``export``, ``set``, and those that read or reckon."""

import re
from collections.abc import Sequence

from cta_group_core.vllm.shell_parts import Part, Quote, RawWord
from cta_group_core.vllm.shell_values import expand, expand_text
from cta_group_core.vllm.shell_variables import Variables
from cta_group_core.vllm.word import Word

DECLARING = frozenset({"export", "declare", "local", "readonly", "typeset"})
_SETTING = frozenset({"read", "printf", "mapfile", "readarray", "let", "unset", "getopts", "wait"})
"""Commands that set what they name to something that is not looked at."""
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z_0-9]*)(\[[^]]*\])?(\+?)=")
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


def assigned(word: RawWord) -> re.Match[str] | None:
    """Return name, index and plus sign of an assignment; None for every other word."""
    if not word.parts or word.parts[0].replaced or word.parts[0].quote is not Quote.NONE:
        return None
    return _ASSIGNMENT.match(word.parts[0].text)


def assign(word: RawWord, match: re.Match[str], variables: Variables) -> None:
    """Do what an assignment says."""
    _store(match.group(1), _meant(word, match, variables), variables)


def _meant(word: RawWord, match: re.Match[str], variables: Variables) -> Word | Sequence[Word] | None:
    """Return what an assignment gives: a text, or the items of an array; None when it is not known."""
    if match.group(2) is not None:  # one item of an array
        return None
    if word.items is None:
        return value_of(word, match, variables)
    items = [one for item in word.items for one in expand(item, variables)]
    before = _items(match.group(1), variables) if match.group(3) else []
    return None if before is None else [*before, *items]


def _store(name: str, value: Word | Sequence[Word] | None, variables: Variables) -> None:
    if value is None or isinstance(value, Word):
        variables.assign(name, value)
    else:
        variables.assign_array(name, value)


def value_of(word: RawWord, match: re.Match[str], variables: Variables) -> Word | None:
    """Return the text that an assignment gives; None when it is not known."""
    head = word.parts[0].text[match.end() :]
    if head.startswith("~") or ":~" in head:  # somebody's home
        return None
    value = expand_text(RawWord((Part(head, Quote.DOUBLE), *word.parts[1:])), variables)
    if not match.group(3):
        return value
    try:
        before = variables.text(match.group(1))
    except KeyError:
        return value
    return None if before is None else Word(before.text + value.text, None, before.unresolved + value.unresolved)


def _items(name: str, variables: Variables) -> Sequence[Word] | None:
    if name in variables.arrays:
        return variables.arrays[name]
    try:
        text = variables.text(name)
    except KeyError:
        return []
    return None if text is None else [text]


def declare(words: Sequence[RawWord], variables: Variables) -> None:
    """Do what ``export A=b`` and the like say: all values are put in before any is set."""
    options = "".join(word.source for word in words[1:] if word.source.startswith("-"))
    matches = [(word, match) for word in words[1:] if (match := assigned(word))]
    # With -i a value is reckoned.
    values = [None if "i" in options else _meant(word, match, variables) for word, match in matches]
    names = [match.group(1) for _, match in matches]
    for name, value in zip(names, values, strict=True):
        _store(name, value, variables)
    if words[0].plain == "export" or "x" in options:
        variables.exported.update(names, (word.plain for word in words[1:] if word.plain))


def set_parameters(words: Sequence[Word], variables: Variables) -> None:
    """Do what ``set`` says: options, and then parameters where there are any."""
    takes_name = False
    for index, word in enumerate(words):
        if takes_name:  # of -o pipefail
            takes_name = False
        elif word.unresolved and not word.quoted:
            variables.replace_parameters(None)
            return
        elif word.text == "--" or (word.text == "-" and len(words) > index + 1):
            variables.replace_parameters(words[index + 1 :])
            return
        elif word.text[:1] in {"-", "+"}:
            takes_name = word.text[-1] in "oO"
        else:
            variables.replace_parameters(words[index:])
            return


def forget(words: Sequence[Word], variables: Variables) -> None:
    """Take what a command may have set for unknown."""
    if words[0].text not in _SETTING:
        return
    for word in words[1:]:
        if match := _NAME.match(word.text):
            variables.assign(match.group(), None)
