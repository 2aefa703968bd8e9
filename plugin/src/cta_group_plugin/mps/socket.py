"""The supervisor's socket: served as long as the process lives, and made anew when somebody removes it.

It lies in a folder of the host, which people and programs clean. Without it no container of the node could start any
more, while nothing here would be wrong.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NoReturn

import grpc.aio

from cta_group_plugin.calls import cancellable
from cta_group_plugin.errors import BadSetting
from cta_group_plugin.logs import EventLog
from cta_group_plugin.mps.service import SupervisorService
from cta_group_plugin.mps.supervisor import MpsSupervisor
from cta_group_plugin.socket_files import SocketIdentity, socket_identity
from cta_group_plugin.supervisor_api.supervisor_pb2_grpc import add_MpsSupervisorServicer_to_server

_LOG = EventLog(__name__)

_LONGEST_PATH: Final = 107  # the kernel's sun_path, less its final zero
_GRACE_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 1.0


@asynccontextmanager
async def serving(supervisor: MpsSupervisor, socket: Path) -> AsyncIterator[None]:
    """Serve the supervisor on a unix socket that only our own user may use. Raises BadSetting when that cannot be."""
    if len(str(socket).encode()) > _LONGEST_PATH:
        raise BadSetting(f"--mps-socket={socket}: a socket's path can have {_LONGEST_PATH} bytes at most")
    served = _Served(supervisor, socket)
    await served.begin()
    keeping = asyncio.create_task(served.keep(), name="supervisor's socket")
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])
        await served.end()


class _Served:
    """The server behind the socket's file, and which file that is."""

    def __init__(self, supervisor: MpsSupervisor, path: Path) -> None:
        self._supervisor = supervisor
        self._path = path
        self._server: grpc.aio.Server | None = None
        self._identity: SocketIdentity | None = None

    async def begin(self) -> None:
        """Make the socket and serve it."""
        server = grpc.aio.server()
        add_MpsSupervisorServicer_to_server(SupervisorService(self._supervisor), server)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.unlink(missing_ok=True)  # of an earlier process: the lock says that it is gone
            server.add_insecure_port(f"unix:{self._path}")
            self._path.chmod(0o600)
        except (OSError, RuntimeError) as error:
            raise BadSetting(f"--mps-socket={self._path}: cannot be served: {error}") from error
        await server.start()
        self._server, self._identity = server, socket_identity(self._path)

    async def keep(self) -> NoReturn:
        """Look at the file for ever."""
        told = ""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            if self._server and socket_identity(self._path) == self._identity:
                continue
            await self.end()
            try:
                await self.begin()
            except BadSetting as problem:
                if str(problem) != told:
                    _LOG.warning("supervisor_socket_gone", problem=problem)
                told = str(problem)
            else:
                _LOG.warning("supervisor_socket_made_anew", socket=self._path)
                told = ""

    async def end(self) -> None:
        """Serve no more, and remove the socket."""
        if self._server:
            await cancellable(self._server.stop(_GRACE_SECONDS))  # removes the socket too
        self._server = None
