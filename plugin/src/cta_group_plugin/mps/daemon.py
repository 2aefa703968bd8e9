"""Starts the control daemon of one GPU as a process that outlives us, and notices when it ends."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from cta_group_plugin.errors import MpsUnavailable
from cta_group_plugin.mps.folders import MpsFolders
from cta_group_plugin.mps.program import ControlProgram

# Foreground, and one server for all user ids: without -M the clients of a second user id wait until those of the first
# have gone (measured on R580), and containers run under any user id.
DAEMON_FLAGS: Final = ("-f", "-M")

_SHOWN_CHARACTERS = 200


@dataclass(slots=True)
class DaemonProcess:
    """A daemon that this process started. It lives in a session of its own, so no signal to us reaches it."""

    pid: int
    _output: Path
    _end: str | None = None

    @classmethod
    def start(cls, program: ControlProgram, folders: MpsFolders) -> Self:
        """Start the daemon; it does not answer yet. Raises MpsUnavailable."""
        folders.make()
        command = program.command(*DAEMON_FLAGS)
        # Not through asyncio or subprocess.Popen: both tie the life of the child to an object here.
        try:
            pid = os.posix_spawn(
                command[0],
                command,
                program.environment_for(folders),
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, str(folders.output), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o640),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
                setsid=True,
                setsigdef=[signal.SIGPIPE],  # Python ignores it, and a child would inherit that
            )
        except OSError as error:
            raise MpsUnavailable(f"GPU {folders.gpu}: {command[0]} cannot be started: {error}") from error
        return cls(pid=pid, _output=folders.output)

    def ended(self) -> str | None:
        """Return in words how it ended; None while it runs."""
        if self._end is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._end = f"the daemon ended {_how(status)}{self._last_words()}"
        return self._end

    def terminate(self) -> None:
        """Ask a daemon that does not listen yet to end."""
        if self.ended() is None:
            os.kill(self.pid, signal.SIGTERM)

    def _last_words(self) -> str:
        try:
            lines = self._output.read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            return ""
        said = [line.strip() for line in lines if line.strip()]
        return f", saying {said[-1][:_SHOWN_CHARACTERS]!r}" if said else ""


def _how(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"with exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
