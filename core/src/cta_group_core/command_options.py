"""Options of the project's processes: flag, then environment, then default, with one form of help and of refusal.

The environment is an argument: nothing here reads it.
"""

import argparse
import re
from collections.abc import Callable, Mapping
from typing import ClassVar, Final, TypeVar

Parsed = TypeVar("Parsed")

_RESOURCE: Final = re.compile(
    r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*/[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)
"""A DNS subdomain and a qualified name, as the kubelet wants them (k8s.io/apimachinery, util/validation)."""
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})
_UNTOLD_DEFAULTS: Final = frozenset({"None", "", "{}", "()"})


class CommandOptions:
    """Adds options to one parser, each with the environment variable of its name as a second way in.

    A process makes it its own by a class that sets ``prefix`` and ``bad_setting``.
    """

    prefix: ClassVar[str]
    """What the name of every environment variable begins with."""
    bad_setting: ClassVar[type[Exception]]
    """Raised for a value in the environment that is not allowed; names the variable, the value and what is allowed."""

    def __init__(self, parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
        self._group = parser.add_argument_group("options")
        self.environment = environment

    def add(self, flag: str, parse: Callable[[str], Parsed], default: Parsed, meaning: str, metavar: str) -> None:
        """Add ``flag VALUE``; a value that ``parse`` refuses with ValueError ends the command with exit code 2."""
        told = "" if str(default) in _UNTOLD_DEFAULTS else f" (default {default})"
        self._group.add_argument(
            flag,
            type=_named(flag, parse),
            default=self._from_environment(flag, parse, default),
            metavar=metavar,
            help=f"{meaning}{told} [{self.variable(flag)}]",
        )

    def add_switch(self, flag: str, meaning: str, *, default: bool) -> None:
        """Add ``--x`` and ``--no-x``."""
        self._group.add_argument(
            flag,
            action=argparse.BooleanOptionalAction,
            default=self._from_environment(flag, parse_switch, default),
            help=f"{meaning} (default {'on' if default else 'off'}) [{self.variable(flag)}]",
        )

    def _from_environment(self, flag: str, parse: Callable[[str], Parsed], default: Parsed) -> Parsed:
        name = self.variable(flag)
        if name not in self.environment:
            return default
        try:
            return parse(self.environment[name])
        except ValueError as bad:
            raise self.bad_setting(_refusal(name, self.environment[name], bad)) from bad

    @classmethod
    def variable(cls, flag: str) -> str:
        """Return the environment variable of ``--a-flag``."""
        return cls.prefix + flag.lstrip("-").replace("-", "_").upper()


def _named(flag: str, parse: Callable[[str], Parsed]) -> Callable[[str], Parsed]:
    """Return ``parse`` in the form that argparse shows the words of a refusal from."""

    def parse_flag(text: str) -> Parsed:
        try:
            return parse(text)
        except ValueError as bad:
            raise argparse.ArgumentTypeError(_refusal(flag, text, bad)) from bad

    return parse_flag


def _refusal(name: str, text: str, bad: ValueError) -> str:
    return f"{name}={text}: {bad}"


def parse_switch(text: str) -> bool:
    """Read a switch from the environment."""
    if text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    raise ValueError("must be true or false")


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Return a parser of whole numbers in a range."""

    def parse(text: str) -> int:
        if text.isdecimal() and least <= int(text) <= most:
            return int(text)
        raise ValueError(f"must be a whole number from {least} to {most}")

    return parse


def one_of(*allowed: str) -> Callable[[str], str]:
    """Return a parser that takes one of a few words."""

    def parse(text: str) -> str:
        if text in allowed:
            return text
        raise ValueError(f"must be one of {', '.join(allowed)}")

    return parse


def listen_address(text: str) -> str:
    """Check ``host:port`` (port 0: any free one), or nothing at all."""
    host, separator, port = text.rpartition(":")
    if text and not (separator and host and port.isdecimal() and int(port) < 1 << 16):
        raise ValueError("must look like 0.0.0.0:9400, or be empty to serve nothing")
    return text


def resource_name(text: str) -> str:
    """Check the form of an extended resource's name."""
    if _RESOURCE.fullmatch(text) and "kubernetes.io" not in text.partition("/")[0]:
        return text
    raise ValueError("must look like nvidia.com/cta-group and not lie under kubernetes.io")
