"""What is shown with a test that failed: the last words of the programs that it was about."""

from collections.abc import Iterator, Mapping

from cluster_harness import release
from cluster_harness.tools import Tools
from operator_process import OperatorProcess
from team import Team

_LINES = 60
"""Of each log."""


def evidence_of(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Return a title and a text for each operator and release among a test's fixture values; for a team its release."""
    for name, value in values.items():
        for one in value if isinstance(value, list | tuple) else (value,):
            found = one.tools if isinstance(one, Team) else one
            if isinstance(found, OperatorProcess):
                yield name, "\n".join(found.log.splitlines()[-_LINES:])
            elif isinstance(found, Tools):
                yield f"pods of the release ({name})", _logs(found)


def _logs(tools: Tools) -> str:
    chosen = (f"--selector=app.kubernetes.io/instance={release.NAME}", "--all-containers", "--prefix")
    limits = (f"--tail={_LINES}", "--max-log-requests=50")
    return tools.attempt("kubectl", "-n", release.NAMESPACE, "logs", *chosen, *limits).words
