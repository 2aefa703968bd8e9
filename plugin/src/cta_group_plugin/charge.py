"""Notices when two processes of this plugin serve one node, as while one takes over from another, and which counts.

kubelet calls the process that registered last and takes the list of devices from whichever sends one. So the process
that a newer one has followed falls silent towards kubelet and the API, and goes on answering what kubelet still asks;
one that is not registered yet leaves the talking to the one that is. The sockets in kubelet's folder tell: each process
has its own, it is there before the registration, and nobody listens at one whose process is gone.
"""

import asyncio
import os
from pathlib import Path
from typing import Final, NoReturn
from zlib import crc32

from cta_group_plugin.socket_files import SocketIdentity, is_served, socket_identity
from cta_group_plugin.state import NodeState, NodeView

_LOOK_SECONDS: Final = 0.05
_LIST_SECONDS: Final = 1.0
"""How often the folder is read although its time says that nothing came or went."""


def is_followed(view: NodeView) -> bool:
    """Tell whether another process has taken over from this one: what both keep on the host is that one's now."""
    return view.generation > 0 and view.other_in_charge


async def while_followed(state: NodeState) -> None:
    """Wait until no other process has taken over from this one."""
    view = state.view
    while is_followed(view):
        view = await state.change_after(view)


class ChargeKeeper:
    """Keeps :class:`NodeState` told whether another process of ours is in charge of the node."""

    def __init__(self, state: NodeState, folder: Path, resource_name: str, process: str = "") -> None:
        """Take kubelet's folder of device plugins, and a name for this process that no other has; empty: a new one.

        A plugin of ours for another resource is none that could take over.
        """
        self._state = state
        self._folder = folder
        self._ours_begin_with = f"cta-group-{crc32(resource_name.encode()):08x}-"
        self.own_begin_with = f"{self._ours_begin_with}{process or os.urandom(4).hex()}-"
        """What the names of this process' sockets begin with, and no other's."""
        self._others: tuple[Path, ...] = ()
        self._listed_at = float("-inf")
        self._folder_time = 0

    async def run(self) -> NoReturn:
        """Look for ever."""
        while True:
            self.look()
            await asyncio.sleep(_LOOK_SECONDS)

    def has_newer(self, own: SocketIdentity | None) -> bool:
        """Tell whether another process serves a socket that was made after ``own``; any counts when there is none."""
        self._list_sockets()
        return any(_came_after(path, own) for path in self._others)

    def look(self) -> bool:
        """Look once, some microseconds while nobody else is there, and return whether another one is in charge."""
        name = self._state.view.registered_as
        in_charge = self.has_newer(socket_identity(self._folder / name) if name else None)
        if in_charge != self._state.view.other_in_charge:
            self._state.learn_charge(other_in_charge=in_charge)
        return in_charge

    def _list_sockets(self) -> None:
        now, folder_time = self._state.now(), _changed_at(self._folder)
        if folder_time == self._folder_time and now - self._listed_at < _LIST_SECONDS:
            return
        try:
            sockets = tuple(self._folder.glob(f"{self._ours_begin_with}*.sock"))
        except OSError:
            return  # somebody removes it now, or no descriptor is left: what was there last counts until the next look
        self._folder_time, self._listed_at = folder_time, now
        self._others = tuple(path for path in sockets if not path.name.startswith(self.own_begin_with))


def _came_after(path: Path, own: SocketIdentity | None) -> bool:
    found = socket_identity(path)
    return found is not None and (own is None or found[-1] > own[-1]) and is_served(path)


def _changed_at(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0
