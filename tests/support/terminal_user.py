"""Somebody at a terminal who uses kubectl and its plugin."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from cluster_harness.control_plane import ControlPlane
from cluster_harness.waiting import PATIENCE_SECONDS

BIN = Path(sys.executable).parent


class Person:
    """Someone at a terminal whose kubeconfig is that of the shared control plane."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        self._environment = {
            **os.environ,
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "KUBECONFIG": str(control_plane.admin_kubeconfig),
        }
        self.namespace = namespace

    def types(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command line and return how it ended and what it printed."""
        return subprocess.run(
            words, env=self._environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )

    def asks(self, *words: str) -> tuple[int, Any]:
        """Run a command of ``kubectl cta`` for facts; return exit status and facts."""
        ended = self.types("kubectl-cta", *words, "-o", "json")
        assert ended.stderr == ""
        return ended.returncode, json.loads(ended.stdout)
