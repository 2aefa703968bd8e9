"""Command-line options that can also come from the environment: flag, then environment, then default."""

import argparse
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from cta_group_plugin.errors import BadSetting

Parsed = TypeVar("Parsed")

ENVIRONMENT_PREFIX: Final = "CTA_GROUP_PLUGIN_"

_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})


class Options:
    """Adds options to one parser, each with the environment variable of its name as a second way in."""

    def __init__(self, parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
        self._group = parser.add_argument_group("options")
        self.environment = environment

    def add(self, flag: str, parse: Callable[[str], Parsed], default: Parsed, meaning: str, metavar: str) -> None:
        """Add ``flag VALUE``; a value that ``parse`` refuses with ValueError ends the command with exit code 2."""
        told = "" if default is None or str(default) in {"", "{}", "()"} else f" (default {default})"
        self._group.add_argument(
            flag,
            type=_named(flag, parse),
            default=self._from_environment(flag, parse, default),
            metavar=metavar,
            help=f"{meaning}{told} [{environment_name(flag)}]",
        )

    def add_switch(self, flag: str, meaning: str, *, default: bool) -> None:
        """Add ``--x`` and ``--no-x``."""
        self._group.add_argument(
            flag,
            action=argparse.BooleanOptionalAction,
            default=self._from_environment(flag, parse_switch, default),
            help=f"{meaning} (default {'on' if default else 'off'}) [{environment_name(flag)}]",
        )

    def _from_environment(self, flag: str, parse: Callable[[str], Parsed], default: Parsed) -> Parsed:
        name = environment_name(flag)
        if name not in self.environment:
            return default
        return _parse_named(name, parse, self.environment[name])


def environment_name(flag: str) -> str:
    """Return the environment variable of ``--a-flag``."""
    return ENVIRONMENT_PREFIX + flag.lstrip("-").replace("-", "_").upper()


def _named(flag: str, parse: Callable[[str], Parsed]) -> Callable[[str], Parsed]:
    def parse_flag(text: str) -> Parsed:
        try:
            return _parse_named(flag, parse, text)
        except BadSetting as bad:
            raise argparse.ArgumentTypeError(str(bad)) from bad

    return parse_flag


def _parse_named(name: str, parse: Callable[[str], Parsed], text: str) -> Parsed:
    try:
        return parse(text)
    except ValueError as bad:
        raise BadSetting(f"{name}={text}: {bad}") from bad


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


def absolute_path(text: str) -> Path:
    """Read a path and make it absolute: a socket is found by its path from anywhere."""
    if not text:
        raise ValueError("must not be empty")
    return Path(text).absolute()


def listen_address(text: str) -> str:
    """Check ``host:port`` (port 0: any free one), or nothing at all."""
    host, separator, port = text.rpartition(":")
    if text and not (separator and host and port.isdecimal() and int(port) < 1 << 16):
        raise ValueError("must look like 0.0.0.0:9400, or be empty to serve nothing")
    return text


def cdi_kind(text: str) -> str:
    """Check the kind of CDI devices, ``vendor.com/class``, or nothing at all."""
    if not text or re.fullmatch(
        r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?/[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?", text
    ):
        return text
    raise ValueError("must look like nvidia.com/gpu, or be empty")


def resource_name(text: str) -> str:
    """Check the form of an extended resource's name."""
    domain, separator, name = text.partition("/")
    if separator and domain and name and "/" not in name and "kubernetes.io" not in domain and not text.isspace():
        return text
    raise ValueError("must look like nvidia.com/cta-group and not lie under kubernetes.io")
