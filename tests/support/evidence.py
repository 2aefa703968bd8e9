"""What is shown with a test that failed: the last words of the programs that it was about.

A fixture's value that has something to show has a method ``evidence``, which returns it as text.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol, runtime_checkable

from cluster_harness import release
from cluster_harness.tools import Tools
from team import Team

_LINES = 60
"""Of each log."""


@runtime_checkable
class Witness(Protocol):
    """A fixture's value that can tell what went on."""

    def evidence(self) -> str:
        """Return the last words."""


def evidence_of(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Return a title and a text for each of a test's fixture values that tells anything; for a team its release."""
    for name, value in values.items():
        for one in value if isinstance(value, list | tuple) else (value,):
            found = one.tools if isinstance(one, Team) else one
            if isinstance(found, Witness):
                yield name, found.evidence()
            elif isinstance(found, Tools):
                yield f"pods of the release ({name})", _logs(found)


def _logs(tools: Tools) -> str:
    chosen = (f"--selector=app.kubernetes.io/instance={release.NAME}", "--all-containers", "--prefix")
    limits = (f"--tail={_LINES}", "--max-log-requests=50")
    return tools.attempt("kubectl", "-n", release.NAMESPACE, "logs", *chosen, *limits).words
