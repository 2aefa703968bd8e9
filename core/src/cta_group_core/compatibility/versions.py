"""Versions as the driver, CUDA and Kubernetes write them, to be compared."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeVar

from cta_group_core.errors import InvalidText

_DRIVER = re.compile(r"([1-9][0-9]{0,3})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?", re.ASCII)
_CUDA = re.compile(r"([1-9][0-9]?)\.([0-9]{1,2})", re.ASCII)
_KUBERNETES = re.compile(r"v?([1-9])\.([0-9]{1,3})(?:\D.*)?", re.ASCII | re.DOTALL)

Parsed = TypeVar("Parsed")


def parsed_or_none(parse: Callable[[str], Parsed], text: str | None) -> Parsed | None:
    """Return what ``parse`` reads, or None for text that is not told or that it refuses."""
    try:
        return parse(text) if text is not None else None
    except InvalidText:
        return None


@dataclass(frozen=True, slots=True, order=True)
class DriverVersion:
    """NVIDIA's driver, such as 580.159.04; its release is called R580."""

    release: int
    branch: int = 0
    patch: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``580.159.04`` or ``580.65``; raise :class:`InvalidText`."""
        found = _DRIVER.fullmatch(text)
        if not found:
            raise InvalidText(f"driver version {text!r}: must look like 580.159.04")
        return cls(*(int(part or 0) for part in found.groups()))


@dataclass(frozen=True, slots=True, order=True)
class CudaVersion:
    """A version of CUDA, such as 13.0. The driver's is the newest that it supports."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``13.0``; raise :class:`InvalidText`."""
        found = _CUDA.fullmatch(text)
        if not found:
            raise InvalidText(f"CUDA version {text!r}: must look like 13.0")
        return cls(*(int(part) for part in found.groups()))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


@dataclass(frozen=True, slots=True, order=True)
class KubernetesVersion:
    """A release of Kubernetes, such as 1.37."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what kubelet and the API server call themselves, ``v1.37.2`` or ``v1.36.1+k3s1``.

        Raises :class:`InvalidText`.
        """
        found = _KUBERNETES.fullmatch(text)
        if not found:
            raise InvalidText(f"Kubernetes version {text!r}: must look like v1.37.2")
        return cls(*(int(part) for part in found.groups()))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"
