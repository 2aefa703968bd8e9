"""Makes kubelet know us, and know us again after every restart of kubelet.

kubelet keeps plugins by resource name and by socket, forgets all of them when it restarts, and wipes their sockets
while it starts. So: a socket name never used before for each registration, bound and served before Register is called,
and one Register for each ``kubelet.sock``. A registration ends when ``kubelet.sock`` is made anew, when our own socket
file goes, and when kubelet ends its ListAndWatch though it lives and no newer process of ours has followed; then a new
one follows under a new name. Pods that wait or crash fail for good when that takes longer than the 0.9 s before kubelet
admits its pods, so the files are looked at every 20 ms: two ``stat``, which no lost file-system event can break.
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

import grpc.aio

from cta_group_core.backoff import wait_seconds
from cta_group_plugin.calls import cancellable
from cta_group_plugin.charge import ChargeKeeper
from cta_group_plugin.errors import BadSetting, KubeletUnavailable
from cta_group_plugin.kubelet_api import deviceplugin_v1beta1_pb2 as api
from cta_group_plugin.kubelet_api.deviceplugin_v1beta1_pb2_grpc import (
    DevicePluginStub,
    RegistrationStub,
    add_DevicePluginServicer_to_server,
)
from cta_group_plugin.logs import EventLog
from cta_group_plugin.metrics import Metrics
from cta_group_plugin.service import OPTIONS, DevicePluginService, Stream
from cta_group_plugin.socket_files import SocketIdentity, channel_to, is_served, socket_identity
from cta_group_plugin.sockets import with_hint
from cta_group_plugin.state import NodeState

_log = EventLog(__name__)

_KUBELET_SOCKET: Final = "kubelet.sock"
_LOOK_SECONDS: Final = 0.02
_REGISTER_TIMEOUT_SECONDS: Final = 15.0
"""kubelet dials us inside the call, with 10 s of its own."""
_LISTEN_TIMEOUT_SECONDS: Final = 10.0
"""kubelet opens ListAndWatch right after it answered."""
_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 10.0
_LASTING_SECONDS: Final = 10.0
"""A registration that lasted this long was good: the next failure begins with the shortest pause again."""
_LONGEST_SOCKET_PATH: Final = 107
_GRACE_SECONDS: Final = 0.2
"""An answer on its way gets this long; the stream of devices is cut after it."""
_LIVENESS_SECONDS: Final = 3.0
_LARGEST_MESSAGE_BYTES: Final = 16 << 20


def pause_seconds(failures: int, chance: float) -> float:
    """Return how long to wait after so many failures in a row; ``chance``, 0 to 1, spreads it over its second half."""
    longest = wait_seconds(failures, _FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS)
    return longest * (0.5 + chance / 2)


@dataclass(frozen=True, slots=True)
class _Registration:
    """One socket and the server behind it."""

    path: Path
    identity: SocketIdentity | None
    server: grpc.aio.Server
    stream: Stream

    async def close(self) -> None:
        """End the stream and the server, and remove the socket file if it is still ours."""
        try:
            await cancellable(self.server.stop(_GRACE_SECONDS))
        finally:
            if self.identity and socket_identity(self.path) == self.identity:
                with suppress(OSError):
                    self.path.unlink()


class Registrar:
    """Keeps one registration with the kubelet of this node."""

    def __init__(
        self,
        state: NodeState,
        folder: Path,
        resource_name: str,
        service: Callable[[Stream], DevicePluginService],
        metrics: Metrics,
        *,
        charge: ChargeKeeper,
        on_registered: Callable[[], None] = lambda: None,
        look_seconds: float = _LOOK_SECONDS,
    ) -> None:
        """Take kubelet's folder of device plugins; raises BadSetting when it is too long a path for a socket.

        ``charge`` knows the other processes of ours in that folder. ``look_seconds`` is how often files are looked at.
        """
        self._state = state
        self._folder = folder
        self._resource_name = resource_name
        self._service = service
        self._metrics = metrics
        self._charge = charge
        self._on_registered = on_registered
        self._look_seconds = look_seconds
        self._count = 0
        self._current: _Registration | None = None
        self._check_path()

    async def run(self) -> NoReturn:
        """Register for ever, from the moment there is a GPU that may be offered. Cancelling it ends all."""
        view = self._state.view
        while not view.may_register:
            view = await self._state.change_after(view)
        try:
            failures = 0
            while True:
                kubelet = await self._kubelet_socket()
                registration = await self._register()
                if registration is None:
                    failures += 1
                    await self._pause(failures, kubelet)
                    continue
                before, self._current = self._current, registration
                if before:
                    await before.close()
                failures = await self._until_void(registration, kubelet, failures)
                await self._while_followed(registration, kubelet)
                await self._pause(failures, kubelet)
        finally:
            self._state.learn_registration("", "the plugin is stopping")
            if self._current:
                await self._current.close()

    async def liveness_problem(self) -> str:
        """Ask ourselves through our own socket, as kubelet does; return what is wrong, empty when nothing is."""
        if self._current is None or socket_identity(self._current.path) != self._current.identity:
            return ""
        async with channel_to(self._current.path) as channel:
            try:
                await cancellable(
                    DevicePluginStub(channel).GetDevicePluginOptions(api.Empty(), timeout=_LIVENESS_SECONDS)
                )
            except grpc.aio.AioRpcError as error:
                return f"{self._current.path}: {error.code().name}: {error.details()}"
        return ""

    def _check_path(self) -> None:
        longest = self._folder / f"{self._charge.own_begin_with}999999.sock"
        if len(str(longest).encode()) > _LONGEST_SOCKET_PATH:
            raise BadSetting(
                f"--device-plugin-dir={self._folder}: a socket in it has a path of more than "
                f"{_LONGEST_SOCKET_PATH} bytes, the most that Linux allows"
            )

    async def _kubelet_socket(self) -> SocketIdentity:
        """Wait until kubelet listens: a kubelet that ended leaves its socket behind."""
        path = self._folder / _KUBELET_SOCKET
        while (found := socket_identity(path)) is None or not is_served(path):
            self._state.learn_registration("", f"{path} is not there" if found is None else f"nobody serves {path}")
            await asyncio.sleep(self._look_seconds)
        return found

    async def _register(self) -> _Registration | None:
        """Serve under a new name and tell kubelet; ``None`` when there can be no socket, or kubelet did not take it."""
        self._count += 1
        path = self._folder / f"{self._charge.own_begin_with}{self._count}.sock"
        async with AsyncExitStack() as undone:
            try:
                registration = await self._serve(path)
                undone.push_async_callback(registration.close)
                await self._announce(path.name)
            except KubeletUnavailable as problem:
                self._metrics.registration_failures.inc()
                self._state.learn_registration("", str(problem))
                _log.warning("registration_failed", socket=path.name, problem=problem)
                return None
            undone.pop_all()
        self._metrics.registrations.inc()
        self._state.learn_registration(registration.path.name)
        self._charge.look()
        self._on_registered()
        _log.info("registered", socket=registration.path.name, resource=self._resource_name)
        return registration

    async def _serve(self, path: Path) -> _Registration:
        stream = Stream()
        server = grpc.aio.server(options=[("grpc.max_receive_message_length", _LARGEST_MESSAGE_BYTES)])
        add_DevicePluginServicer_to_server(self._service(stream), server)
        try:
            server.add_insecure_port(f"unix://{path}")
        except (OSError, RuntimeError) as error:  # the disk is full, no descriptor is left, the folder is not ours
            raise KubeletUnavailable(f"{path}: no socket can be made: {error}") from error
        await server.start()
        return _Registration(path, socket_identity(path), server, stream)

    async def _announce(self, endpoint: str) -> None:
        kubelet = self._folder / _KUBELET_SOCKET
        request = api.RegisterRequest(
            version="v1beta1", endpoint=endpoint, resource_name=self._resource_name, options=OPTIONS
        )
        async with channel_to(kubelet) as channel:
            try:
                await cancellable(RegistrationStub(channel).Register(request, timeout=_REGISTER_TIMEOUT_SECONDS))
            except grpc.aio.AioRpcError as error:
                told = f"{kubelet}: Register failed: {error.code().name}: {error.details()}"
                raise KubeletUnavailable(with_hint(told)) from error

    async def _until_void(self, registration: _Registration, kubelet: SocketIdentity, failures: int) -> int:
        """Wait until the registration is worth nothing; return the new number of failures in a row."""
        clock = asyncio.get_running_loop().time
        since = clock()
        while not (reason := self._void_reason(registration, kubelet, clock() - since)):
            with suppress(TimeoutError):
                async with asyncio.timeout(self._look_seconds):
                    await registration.stream.ended.wait()
        self._state.learn_registration("", reason)
        _log.info("registration_ended", socket=registration.path.name, reason=reason)
        return 0 if clock() - since >= _LASTING_SECONDS else failures + 1

    def _void_reason(self, registration: _Registration, kubelet: SocketIdentity, age_seconds: float) -> str:
        if socket_identity(self._folder / _KUBELET_SOCKET) != kubelet:
            return f"{_KUBELET_SOCKET} was made anew or removed"
        if socket_identity(registration.path) != registration.identity:
            return "our own socket file was removed"
        if registration.stream.ended.is_set():
            return "kubelet ended its ListAndWatch"
        if age_seconds > _LISTEN_TIMEOUT_SECONDS and not registration.stream.opened.is_set():
            return "kubelet did not begin its ListAndWatch"
        return ""

    async def _while_followed(self, registration: _Registration, kubelet: SocketIdentity) -> None:
        """Leave a kubelet that ended our stream to the process that took over, or both would register for ever."""
        while registration.stream.ended.is_set() and self._charge.has_newer(registration.identity):
            if socket_identity(self._folder / _KUBELET_SOCKET) != kubelet:
                return
            await asyncio.sleep(self._look_seconds)

    async def _pause(self, failures: int, kubelet: SocketIdentity) -> None:
        """Wait longer after each failure, but not a moment once kubelet.sock is another one."""
        if not failures:
            return
        until = asyncio.get_running_loop().time() + pause_seconds(failures, random.random())  # noqa: S311 - spreads load
        while (left := until - asyncio.get_running_loop().time()) > 0:
            if socket_identity(self._folder / _KUBELET_SOCKET) != kubelet:
                return
            await asyncio.sleep(min(self._look_seconds, left))
