"""Where the components of a cluster run: a warden, a supervisor and a state folder that come and go together."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Self, TypeVar

from cluster_harness.components import log_tail
from cluster_harness.control import Control
from cluster_harness.errors import DeadlineError, StartError
from cluster_harness.waiting import wait_for

_PACKAGE_ROOT = Path(__file__).resolve().parent.parent
_START_SECONDS = 20.0
_END_TIMEOUT_SECONDS = 40.0

T = TypeVar("T")


class Machine:
    """Where the components of a cluster run: a warden, its supervisor and a state folder.

    The one that started it ends it by ``close()``, or by dying.
    """

    def __init__(self, folder: Path, warden: subprocess.Popen[bytes] | None = None) -> None:
        self.folder = folder
        self.control = Control(folder)
        self._warden = warden

    @classmethod
    def start(cls, folder: Path, lock: int, *, detached: bool = False) -> Self:
        """Start the warden, which takes over ``lock``; a detached one lives on when the caller ends."""
        command = [sys.executable, "-m", "cluster_harness.warden", str(folder)]
        with tempfile.TemporaryFile() as log:  # not in the folder, which a warden that fails removes
            warden = subprocess.Popen(
                [*command, *(["--detached"] if detached else [])],
                cwd="/",
                env=_environment(),
                stdin=subprocess.DEVNULL if detached else subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[lock],
                start_new_session=True,
            )
            os.close(lock)
            machine = cls(folder, warden)
            wait_for(lambda: machine.control.answers() or machine._is_over(), "start of the warden", _START_SECONDS)
            if machine._is_over():
                log.seek(0)
                raise StartError(f"the cluster in {folder} ended at once:\n{log.read().decode(errors='replace')}")
        return machine

    @property
    def warden_process_id(self) -> int | None:
        """The warden's process id, None where this object did not start it."""
        return self._warden.pid if self._warden else None

    def wait(self, probe: Callable[[], T | None], component: str, timeout_seconds: float) -> T:
        """Wait for a sign that the component works; StartError with its log when it ends or the sign never comes."""

        def checked() -> T | None:
            self._must_run(component)
            return probe()

        try:
            return wait_for(checked, component, timeout_seconds)
        except DeadlineError as error:
            raise StartError(f"{error}; its log ends:\n{log_tail(self.folder, component)}") from error

    def close(self) -> None:
        """End every process and remove the state folder; return when that is done."""
        if self._warden is None:
            return
        if self._warden.stdin is not None:
            self._warden.stdin.close()
        else:
            self._warden.terminate()
        self._warden.wait(_END_TIMEOUT_SECONDS)

    def _is_over(self) -> bool:
        return self._warden is not None and self._warden.poll() is not None

    def _must_run(self, component: str) -> None:
        status = self.control.exit_statuses().get(component)
        if status is not None:
            raise StartError(
                f"{component} ended with status {status}; its log ends:\n{log_tail(self.folder, component)}"
            )


def _environment() -> dict[str, str]:
    """Return a small environment: settings of the caller's shell, a proxy above all, must not reach a component."""
    path = os.environ.get("PATH", os.defpath)
    return {
        "PATH": f"{path}:/usr/local/sbin:/usr/sbin:/sbin",
        "HOME": os.environ.get("HOME", "/"),
        "PYTHONPATH": str(_PACKAGE_ROOT),
    }
