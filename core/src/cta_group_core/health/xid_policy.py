"""Which XIDs take a GPU out of service: the catalogue, changed where the people who run the node know better."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from cta_group_core.errors import InvalidText
from cta_group_core.health.evidence import Repair
from cta_group_core.health.xid_catalogue import RULES, XidClass, XidRule

_KNOWN: Final = MappingProxyType({rule.code: rule for rule in RULES})
_SETTABLE: Final = (XidClass.FATAL, XidClass.REPORT, XidClass.APPLICATION)
_LARGEST_CODE: Final = 2**32 - 1
"""NVML hands codes over in an unsigned 64-bit field; the driver's own numbers are far below this."""

XidOverrides = Mapping[int, XidClass]
"""Classes that replace the catalogue's, by code."""


def rule_for_unknown(code: int) -> XidRule:
    """Return the rule for a code of which nothing is known: suspect, and well again if nothing else speaks against it.

    NVML's own 999 (it could not tell which error it was) is one of them.
    """
    return XidRule(code, "an error that this release does not know", XidClass.SUSPECT)


@dataclass(frozen=True, slots=True)
class XidPolicy:
    """What is done about every code."""

    overrides: XidOverrides = field(default_factory=lambda: MappingProxyType({}))

    def rule_of(self, code: int) -> XidRule:
        """Return the rule of a code; every code has exactly one.

        A code that was made fatal needs a reset where the catalogue names no repair: a GPU whose owner calls an error
        fatal does not come back by itself.
        """
        rule = _KNOWN.get(code) or rule_for_unknown(code)
        xid_class = self.overrides.get(code, rule.xid_class)
        if xid_class is rule.xid_class:
            return rule
        why = f"set to {xid_class} on this node; the catalogue's class is {rule.xid_class}"
        repair = max(rule.repair, Repair.RESET) if xid_class is XidClass.FATAL else Repair.NONE
        hangs = rule.calls_may_hang and xid_class is XidClass.FATAL
        return replace(rule, xid_class=xid_class, repair=repair, calls_may_hang=hangs, why=why)


def parse_overrides(text: str) -> XidOverrides:
    """Read the setting: JSON such as ``{"fatal": [109], "report": [48], "application": [62]}``; empty text is none.

    Raises :class:`InvalidText` with a sentence that says what is wrong and what is allowed.
    """
    if not text.strip():
        return MappingProxyType({})
    try:
        document = json.loads(text, object_pairs_hook=_without_repeats)
    except InvalidText:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidText(f"XID classes {_short(text)}: not JSON ({error}); expected {_EXPECTED}") from error
    if not isinstance(document, dict):
        raise InvalidText(f"XID classes {_short(text)}: expected {_EXPECTED}")
    return overrides_of(document)


def overrides_of(document: Mapping[str, object]) -> XidOverrides:
    """Read the setting from a document that was parsed already (a settings file). Raises :class:`InvalidText`."""
    chosen: dict[int, XidClass] = {}
    for name, codes in document.items():
        for code in _codes(name, codes):
            before = chosen.setdefault(code, _class_named(name))
            if before != name:
                raise InvalidText(f"XID classes: {code} is in both {before.value!r} and {name!r}; a code has one class")
    return MappingProxyType(chosen)


_EXPECTED: Final = '{"fatal": [CODE, ...], "report": [...], "application": [...]}'


def _class_named(name: str) -> XidClass:
    if name not in _SETTABLE:
        allowed = ", ".join(repr(str(xid_class)) for xid_class in _SETTABLE)
        raise InvalidText(f"XID classes: {name!r} is no class that can be set; allowed: {allowed}")
    return XidClass(name)


def _codes(name: str, codes: object) -> Iterator[int]:
    _class_named(name)
    if not isinstance(codes, list | tuple):
        raise InvalidText(f"XID classes: {name!r} must be a list of codes, such as [48, 79]; given {_short(codes)}")
    for code in codes:
        # bool is an int to Python, and nobody means XID 1 by true.
        if not isinstance(code, int) or isinstance(code, bool) or not 0 < code <= _LARGEST_CODE:
            raise InvalidText(f"XID classes: {name!r} holds {_short(code)}; a code is a whole number above 0")
        yield code


def _without_repeats(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Refuse a key that comes twice: JSON would silently keep the last."""
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidText(f"XID classes: {name!r} is there twice; put all its codes into one list")
        found[name] = value
    return found


def _short(given: object, most: int = 60) -> str:
    text = repr(given)
    return text if len(text) <= most else f"{text[:most]}..."
