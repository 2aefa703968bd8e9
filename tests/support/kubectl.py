"""kubectl as a person or a service account uses it, against a control plane of the tests."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cluster_harness.control_plane import ControlPlane
from cluster_harness.waiting import PATIENCE_SECONDS

_KUBECTL = Path(__file__).resolve().parents[2] / ".venv" / "bin" / "kubectl"


class Kubectl:
    """kubectl with one identity; nothing of the machine's own configuration is read."""

    def __init__(self, *identity: str) -> None:
        self._command = [str(_KUBECTL), *identity]

    @classmethod
    def admin(cls, control_plane: ControlPlane) -> "Kubectl":
        """Return kubectl as an administrator."""
        return cls(f"--kubeconfig={control_plane.admin_kubeconfig}")

    @classmethod
    def with_token(cls, control_plane: ControlPlane, token: str) -> "Kubectl":
        """Return kubectl as whom the token was made for."""
        return cls(
            "--kubeconfig=/dev/null",
            f"--server={control_plane.server}",
            f"--certificate-authority={control_plane.certificate_authority}",
            f"--token={token}",
        )

    def run(self, *arguments: str, objects: Sequence[dict[str, Any]] = ()) -> subprocess.CompletedProcess[str]:
        """Run a command with ``objects`` as its standard input; the answer tells whether it failed."""
        # Documents, not a List: kubectl leaves the validation of what is in a List to an old schema of its own.
        text = "\n---\n".join(json.dumps(made) for made in objects)
        return subprocess.run(
            [*self._command, *arguments],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )

    def apply(self, *objects: dict[str, Any], manager: str = "tests", extra: Sequence[str] = ()) -> str:
        """Apply objects server-side; return what kubectl printed, or raise with what it said."""
        done = self.run("apply", "--server-side", f"--field-manager={manager}", *extra, "-f", "-", objects=objects)
        assert done.returncode == 0, done.stderr
        return done.stdout
