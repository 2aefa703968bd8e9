"""The programs a person uses on a cluster: kubectl, helm and kubectl cta, as set-up put them into ``.venv/bin``."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_harness.api_client import ApiClient
from cluster_harness.errors import HarnessError

PROJECT = Path(__file__).resolve().parents[3]
TOOLS = PROJECT / ".venv" / "bin"
_TIMEOUT_SECONDS = 300.0


class ToolError(HarnessError):
    """A program failed; says which and what it printed."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended that was allowed to fail."""

    status: int
    words: str
    """What it printed, on both ways."""


@dataclass(frozen=True, slots=True)
class Tools:
    """Programs that talk to the cluster of ``kubeconfig``."""

    kubeconfig: Path
    api: ApiClient
    """For what is asked again and again: each start of kubectl takes a quarter of a second of a core."""

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl and return its output."""
        return self._run("kubectl", *arguments, stdin=stdin)

    def objects(self, *arguments: str) -> Any:
        """Return what ``kubectl get`` prints as JSON."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def apply(self, manifest: str) -> None:
        """Make or change the objects of a YAML text."""
        self.kubectl("apply", "-f", "-", stdin=manifest)

    def helm(self, *arguments: str) -> str:
        """Run helm and return its output."""
        return self._run("helm", *arguments)

    def cta(self, *arguments: str) -> str:
        """Run ``kubectl cta`` and return its output; findings (exit status 1) are an answer too."""
        return self._run("kubectl", "cta", *arguments, fine=(0, 1))

    def attempt(self, program: str, *arguments: str) -> Ended:
        """Run a program that may fail, ``helm3`` too, and return how it ended."""
        done = self._ran(program, *arguments)
        return Ended(done.returncode, done.stdout + done.stderr)

    def _run(self, program: str, *arguments: str, stdin: str | None = None, fine: tuple[int, ...] = (0,)) -> str:
        done = self._ran(program, *arguments, stdin=stdin)
        if done.returncode not in fine:
            raise ToolError(f"{program} {' '.join(arguments)} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
        return done.stdout

    def _ran(self, program: str, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            "PATH": f"{TOOLS}:{os.environ.get('PATH', os.defpath)}",
        }
        return subprocess.run(
            [str(TOOLS / program), *arguments],
            check=False,
            capture_output=True,
            text=True,
            input=stdin,
            env=environment,
            timeout=_TIMEOUT_SECONDS,
        )
