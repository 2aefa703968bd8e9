"""One thing that a check found, for ``doctor``."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Severity(StrEnum):
    """How much a finding matters; the worst first."""

    ERROR = "error"
    """Something does not work, or a limit does not hold."""
    WARNING = "warning"
    """Something works worse than people will expect, or will break."""
    INFO = "info"
    """Worth knowing."""

    @property
    def rank(self) -> int:
        """0 for the worst, to sort by."""
        return list(Severity).index(self)


_MARGIN: Final = 9


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

    def as_json(self) -> dict[str, str]:
        """Return the facts for programs."""
        return {
            "severity": self.severity.value,
            "subject": self.subject,
            "sentence": self.sentence,
            "remedy": self.remedy,
        }

    def as_text(self) -> str:
        """Return two lines for people."""
        margin = " " * _MARGIN
        return f"{self.severity.upper():<{_MARGIN}}{self.subject}: {self.sentence}\n{margin}Mend it: {self.remedy}"


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings by severity; those of one severity stay in their order."""
    return tuple(sorted(findings, key=lambda finding: finding.severity.rank))


def need_a_person(findings: Iterable[Finding]) -> bool:
    """Tell whether something is to be done; what is only worth knowing needs nobody."""
    return any(finding.severity is not Severity.INFO for finding in findings)
