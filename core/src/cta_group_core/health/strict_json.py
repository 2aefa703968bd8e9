"""Reads parsed JSON into frozen dataclasses, strictly: every key known, every value of exactly its type.

Knows what the health record is made of: dataclasses, tuples of one type, mappings by text, optional values, enums and
plain values. Not more; what people write is read with pydantic.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

Value = TypeVar("Value")


class Mismatch(Exception):
    """The JSON is of another form than was asked for."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(place, problem)
        self.place = place
        """Keys from the outside in, joined by dots; empty for the whole."""
        self.problem = problem


def read_as(kind: type[Value], given: object) -> Value:
    """Return ``given`` as a ``kind``; raise :class:`Mismatch` with the place at which it is none."""
    read: Value = _read(kind, given, "")
    return read


def _read(kind: Any, given: object, place: str) -> Any:
    if is_dataclass(kind):
        return _dataclass(kind, given, place)
    reader = _BY_ORIGIN.get(get_origin(kind))
    if reader is not None:
        return reader(kind, given, place)
    if issubclass(kind, Enum):
        return _enum(kind, given, place)
    return _plain(kind, given, place)


def _dataclass(kind: Any, given: object, place: str) -> object:
    if not isinstance(given, dict):
        raise Mismatch(place, f"must be an object, not {_named(given)}")
    hints = get_type_hints(kind)
    for name in given:
        if name not in hints:
            raise Mismatch(_within(place, name), "no such key")
    for each in fields(kind):
        if each.default is MISSING and each.default_factory is MISSING and each.name not in given:
            raise Mismatch(_within(place, each.name), "must be there")
    values = {name: _read(hints[name], value, _within(place, name)) for name, value in given.items()}
    try:
        return kind(**values)
    except ValueError as wrong:
        raise Mismatch(place, str(wrong)) from wrong


def _optional(kind: Any, given: object, place: str) -> object:
    (present,) = (each for each in get_args(kind) if each is not NoneType)
    return None if given is None else _read(present, given, place)


def _tuple(kind: Any, given: object, place: str) -> object:
    if not isinstance(given, list):
        raise Mismatch(place, f"must be a list, not {_named(given)}")
    member, _ = get_args(kind)
    return tuple(_read(member, value, _within(place, str(number))) for number, value in enumerate(given))


def _mapping(kind: Any, given: object, place: str) -> object:
    if not isinstance(given, dict):
        raise Mismatch(place, f"must be an object, not {_named(given)}")
    _, member = get_args(kind)
    return {name: _read(member, value, _within(place, name)) for name, value in given.items()}


def _enum(kind: type[Enum], given: object, place: str) -> Enum:
    # Not kind(given) alone: 1.0 and true are equal to 1.
    if type(given) in {type(each.value) for each in kind}:
        for each in kind:
            if each.value == given:
                return each
    raise Mismatch(place, f"must be one of {', '.join(str(each.value) for each in kind)}, not {given!r}")


def _plain(kind: type, given: object, place: str) -> object:
    if kind is float and type(given) is int:
        return float(given)
    if type(given) is not kind:
        raise Mismatch(place, f"must be of type {kind.__name__}, not {_named(given)}")
    return given


_BY_ORIGIN: Mapping[Any, Callable[[Any, object, str], object]] = {
    UnionType: _optional,
    tuple: _tuple,
    Mapping: _mapping,
}


def _within(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _named(given: object) -> str:
    return type(given).__name__
