"""One thing that a check found, for ``doctor``."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding matters; the worst first."""

    ERROR = "error"
    """Something does not work, or a limit does not hold."""
    WARNING = "warning"
    """Something works worse than people will expect, or will break."""
    INFO = "info"
    """Worth knowing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found and what to do about it."""

    severity: Severity
    subject: str
    """What it is about: the driver, ``GPU 0 (GPU-...)``, kubelet, an image."""
    sentence: str
    """What is so and what follows from it; names the numbers."""
    remedy: str
    """How to mend it. Never empty: what nobody can mend is no finding."""


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings by severity; those of one severity stay in their order."""
    return tuple(sorted(findings, key=lambda finding: list(Severity).index(finding.severity)))
