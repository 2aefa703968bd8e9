"""How many pods a Job runs at once, and why it runs none.

Source: Kubernetes 1.37, job controller, ``manageJob``.
"""

from dataclasses import dataclass
from typing import Final

_OVER: Final = ("Complete", "Failed")


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What a Job says. Its conditions are those with status True: type, and the reason with the message."""

    parallelism: int | None = None
    completions: int | None = None
    suspended: bool = False
    succeeded: int = 0
    active: int = 0
    conditions: tuple[tuple[str, str], ...] = ()

    @property
    def wanted(self) -> int:
        """Pods that it runs at once: no more than completions that are missing, and none when it is over.

        Without a number of completions nothing new is begun once one of its pods has ended well.
        """
        if self.suspended or any(kind in _OVER for kind, _ in self.conditions):
            return 0
        parallelism = 1 if self.parallelism is None else self.parallelism
        if self.completions is None:
            return min(parallelism, self.active) if self.succeeded else parallelism
        return max(0, min(parallelism, self.completions - self.succeeded))

    @property
    def why_none(self) -> str:
        """Why it runs nothing, in words; empty while it does, and when it has ended well."""
        failed = next((words for kind, words in self.conditions if kind == "Failed"), None)
        if failed is not None:
            return f"the Job has failed{failed and f' ({failed})'}: it makes no more pods"
        return "the Job is suspended (spec.suspend): it makes pods when that is taken back" if self.suspended else ""
