"""Where the components of a cluster run: a warden, a supervisor and a state folder that come and go together."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Self, TypeVar

from cluster_harness.components import log_tail
from cluster_harness.control import Control
from cluster_harness.errors import DeadlineError, HarnessError, StartError
from cluster_harness.state_folder import DETACH, WARDEN_PID
from cluster_harness.waiting import wait_for

_PACKAGE_ROOT = Path(__file__).resolve().parent.parent
_END_SECONDS = 120.0
"""Both are far more than it takes: several clusters may start and end at once on two cores."""
_GOGC = "400"
"""Heaps here are small: at Go's default an eighth of the processor time would go into collecting garbage."""

T = TypeVar("T")


class Machine:
    """Where the components of a cluster run: a warden, its supervisor and a state folder.

    The one that started it ends it by ``close()``, or by dying, unless it called ``detach()`` before.
    """

    def __init__(self, folder: Path, warden: int, process: subprocess.Popen[bytes] | None = None) -> None:
        self.folder = folder
        self.control = Control(folder)
        self._warden: int | None = warden  # a descriptor of the process: never another one that got its number
        self._process = process  # the same, where it is a child of this process

    @classmethod
    def start(cls, folder: Path, lock: int) -> Self:
        """Start the warden, which takes over ``lock``, and return when its supervisor answers."""
        with tempfile.TemporaryFile() as log:  # not in the folder, which a warden that fails removes
            warden = subprocess.Popen(
                [sys.executable, "-m", "cluster_harness.warden", str(folder)],
                cwd="/",
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[lock],
                start_new_session=True,
            )
            os.close(lock)
            machine = cls(folder, os.pidfd_open(warden.pid), warden)
            try:
                machine._wait_for_supervisor(log)
            except BaseException:
                machine.close()
                raise
        return machine

    @classmethod
    def attach(cls, folder: Path) -> Self:
        """Return the machine of a cluster that was started elsewhere; HarnessError where none runs in the folder."""
        try:
            warden = os.pidfd_open(int((folder / WARDEN_PID).read_text()))
        except OSError as error:
            raise HarnessError(f"no cluster runs in {folder}") from error
        machine = cls(folder, warden)
        if not machine.control.answers():  # the number may belong to another process by now
            os.close(warden)
            raise HarnessError(f"no cluster runs in {folder}")
        return machine

    def wait(self, probe: Callable[[], T | None], component: str, timeout_seconds: float) -> T:
        """Wait for a sign that the component works; StartError with its log when it ends or the sign never comes."""

        def checked() -> T | None:
            self._must_run(component)
            return probe()

        try:
            return wait_for(checked, component, timeout_seconds)
        except DeadlineError as error:
            raise StartError(f"{error}; its log ends:\n{log_tail(self.folder, component)}") from error

    def detach(self) -> None:
        """Let the cluster live on when this process ends."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(DETACH)
            self._process.stdin.close()

    def close(self) -> None:
        """End every process and remove the state folder; return when that is done. Once is enough, twice is fine."""
        if self._warden is None:
            return
        with contextlib.suppress(ProcessLookupError):  # it has ended already
            signal.pidfd_send_signal(self._warden, signal.SIGTERM)
        if not self._is_over(_END_SECONDS):
            raise DeadlineError(f"the warden of {self.folder} has not ended within {_END_SECONDS:g} s")
        if self._process is not None:
            self._process.communicate()
        os.close(self._warden)
        self._warden = None

    def _wait_for_supervisor(self, log: IO[bytes]) -> None:
        wait_for(lambda: self.control.answers() or self._is_over(), "start of the warden")
        if self._is_over():
            log.seek(0)
            raise StartError(f"the cluster in {self.folder} ended at once:\n{log.read().decode(errors='replace')}")

    def _is_over(self, timeout_seconds: float = 0.0) -> bool:
        return self._warden is None or bool(select.select([self._warden], [], [], timeout_seconds)[0])

    def _must_run(self, component: str) -> None:
        status = self.control.exit_statuses().get(component)
        if status is not None:
            log = log_tail(self.folder, component)
            raise StartError(f"{component} ended with status {status} in {self.folder}; its log ends:\n{log}")


def _environment() -> dict[str, str]:
    """Return a small environment: settings of the caller's shell, a proxy above all, must not reach a component."""
    path = os.environ.get("PATH", os.defpath)
    return {
        "PATH": f"{path}:/usr/local/sbin:/usr/sbin:/sbin",
        "HOME": os.environ.get("HOME", "/"),
        "GOGC": _GOGC,
        "PYTHONPATH": str(_PACKAGE_ROOT),
    }
