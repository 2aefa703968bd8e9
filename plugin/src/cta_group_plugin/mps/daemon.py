"""The control daemon of one GPU as a process that outlives us: started, found again, its end noticed, killed."""

import asyncio
import json
import os
import signal
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Final, Self

from cta_group_plugin.errors import MpsUnavailable
from cta_group_plugin.logs import EventLog
from cta_group_plugin.mps.folders import MpsFolders
from cta_group_plugin.mps.processes import Process, in_session_of, kill
from cta_group_plugin.mps.program import ControlProgram
from cta_group_plugin.plain_files import read_plain

# Foreground, and one server for all user ids: without -M the clients of a second user id wait until those of the first
# have gone (measured on R580), and containers run under any user id.
DAEMON_FLAGS: Final = ("-f", "-M")

_LOG = EventLog(__name__)
_SHOWN_CHARACTERS = 200
_MOST_OUTPUT_BYTES = 1 << 20


@dataclass(slots=True)
class DaemonProcess:
    """A daemon and its servers. It leads a session of its own, so no signal to us reaches it."""

    process: Process
    _folders: MpsFolders
    _end: str | None = field(default=None, init=False)

    @classmethod
    def start(cls, program: ControlProgram, folders: MpsFolders) -> Self:
        """Start the daemon; it does not answer yet. Raises MpsUnavailable."""
        folders.make()
        command = program.daemon_command(*DAEMON_FLAGS)
        environment = program.environment_for(folders)
        output = folders.open_output()
        # Not through asyncio or subprocess.Popen: both tie the life of the child to an object here. Nothing of ours
        # stays open in the daemon: a runtime does not end a container as long as somebody holds the container's output.
        try:
            pid = os.posix_spawn(
                command[0],
                command,
                environment,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, output, 1),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
                setsid=True,
                setsigdef=[signal.SIGPIPE],  # Python ignores it, and a child would inherit that
            )
        except OSError as error:
            raise MpsUnavailable(f"GPU {folders.gpu}: {command[0]} cannot be started: {error}") from error
        finally:
            os.close(output)
        return cls._noted(pid, folders)

    @classmethod
    def _noted(cls, pid: int, folders: MpsFolders) -> Self:
        """Write down which process it is, for the supervisor that comes after this one."""
        process = Process.with_pid(pid) or Process(pid=pid, started_ticks=0)  # the latter has ended already
        try:
            folders.write(folders.record, json.dumps(asdict(process)))
        except MpsUnavailable:
            kill([process])
            # Not here: a process that hangs in the driver ends when the driver lets it.
            threading.Thread(target=os.waitpid, args=(pid, 0), name="daemon's end", daemon=True).start()
            raise
        return cls(process, folders)

    @classmethod
    def found(cls, folders: MpsFolders) -> Self | None:
        """Return the daemon that an earlier supervisor started, if it still runs. Raises MpsUnavailable."""
        try:
            process = _recorded(read_plain(folders.record).decode("ascii"))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, RecursionError) as error:
            # Whoever listens is taken over all the same, and the record is made anew with the next daemon.
            _LOG.warning("mps_daemon_record_unreadable", gpu=folders.gpu, path=folders.record, problem=error)
            return None
        except OSError as error:
            raise MpsUnavailable(f"GPU {folders.gpu}: the record of its MPS daemon cannot be read: {error}") from error
        return cls(process, folders) if process.is_alive() else None

    def ended(self) -> str | None:
        """Return in words how it ended; None while it runs."""
        if self._end is None:
            try:
                pid, status = os.waitpid(self.process.pid, os.WNOHANG)
            except ChildProcessError:  # an earlier supervisor's child
                self._end = None if self.process.is_alive() else f"the daemon ended{self._last_words()}"
            else:
                self._end = f"the daemon ended {_how(status)}{self._last_words()}" if pid else None
        return self._end

    async def until_end(self) -> None:
        """Return when it has ended."""
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        try:
            held = os.pidfd_open(self.process.pid)
        except ProcessLookupError:
            return
        try:
            if self.process.is_alive():
                loop.add_reader(held, ended.set)
                await ended.wait()
        finally:
            loop.remove_reader(held)
            os.close(held)

    def terminate(self) -> None:
        """Ask a daemon that does not listen yet to end."""
        if self.ended() is None:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End the daemon and its servers at once, and their clients' work with them."""
        kill(in_session_of(self.process))

    def cut_output(self) -> None:
        """Forget what it printed when that is much: the folder is memory on most hosts, and it tells every command."""
        with suppress(OSError):  # as long as it is not much more, nothing is lost by the next try
            if self._folders.output.stat().st_size > _MOST_OUTPUT_BYTES:
                os.truncate(self._folders.output, 0)

    def _last_words(self) -> str:
        try:
            lines = read_plain(self._folders.output).decode(errors="replace").split("\n")
        except OSError:
            return ""
        said = [line.strip() for line in lines if line.strip()]
        return f", saying {said[-1][:_SHOWN_CHARACTERS]!r}" if said else ""


def _recorded(text: str) -> Process:
    """Read the record. Raises ValueError, TypeError or RecursionError for anything else."""
    process = Process(**json.loads(text))
    if type(process.pid) is not int or type(process.started_ticks) is not int or process.pid < 1:
        raise ValueError(f"{process} names no process")
    return process


def _how(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"with exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
