"""Keeps the compute mode of one GPU right for how it is used, and gives back the mode that was found.

A client that misses the pipe folder of its daemon runs on the whole GPU without any limit and without an error, as
measured on R580. While a GPU is shared its mode is therefore EXCLUSIVE_PROCESS, in which such a client is refused. The
mode that was found is noted in the GPU's folder before it is changed, so that whoever comes later can restore it.
"""

import time
from collections.abc import Callable
from functools import partial

from cta_group_plugin.errors import DriverError, MpsUnavailable
from cta_group_plugin.logs import EventLog
from cta_group_plugin.mps.driver_calls import DriverCalls
from cta_group_plugin.mps.folders import MpsFolders
from cta_group_plugin.mps.timing import Timing
from cta_group_plugin.plain_files import read_plain
from cta_group_plugin.ports import ComputeMode, ComputeModes
from cta_group_plugin.settings import ComputeModeUse

_LOG = EventLog(__name__)


class ModeKeeper:
    """The compute mode of one GPU. Every method raises MpsUnavailable with what could not be done."""

    def __init__(
        self,
        folders: MpsFolders,
        modes: ComputeModes,
        use: ComputeModeUse,
        timing: Timing,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """With ``use`` UNTOUCHED no mode is changed, but for one that was changed before: that is restored."""
        self._folders = folders
        self._modes = modes
        self._touches = use is ComputeModeUse.EXCLUSIVE
        self._calls = DriverCalls(timing.driver_seconds)
        self._verify_seconds = timing.verify_seconds
        self._clock = clock
        self._right: tuple[ComputeMode, float] | None = None

    async def share(self) -> None:
        """Let nobody but the MPS server make contexts."""
        await (self._become(ComputeMode.EXCLUSIVE_PROCESS) if self._touches else self.restore())

    async def give_whole(self) -> None:
        """Let the processes of one tenant make contexts as they like."""
        await (self._become(ComputeMode.DEFAULT) if self._touches else self.restore())

    async def restore(self) -> None:
        """Give back the mode that was found, if it was ever changed."""
        try:
            found = ComputeMode(read_plain(self._folders.found_mode).decode("ascii").strip())
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            where = self._folders.found_mode
            raise MpsUnavailable(f"GPU {self._folders.gpu}: {where} does not tell a compute mode: {error}") from error
        await self._become(found)
        self._folders.found_mode.unlink(missing_ok=True)
        self._right = None

    async def _become(self, wanted: ComputeMode) -> None:
        if self._was_right(wanted):
            return
        self._right = None
        gpu = self._folders.gpu
        try:
            found = await self._calls.ask(partial(self._modes.get, gpu))
            if found is not wanted:
                self._note(found)
                await self._calls.ask(partial(self._modes.set, gpu, wanted))
                _LOG.info("compute_mode_changed", gpu=gpu, before=found, now=wanted)
                found = await self._calls.ask(partial(self._modes.get, gpu))
        except DriverError as error:
            raise MpsUnavailable(
                f"GPU {gpu}: its compute mode cannot be made {wanted}: {error}; with --compute-mode untouched it is "
                "left as it is"
            ) from error
        if found is not wanted:
            raise MpsUnavailable(f"GPU {gpu}: its compute mode was made {wanted} and is {found} all the same")
        self._right = (wanted, self._clock())

    def _note(self, found: ComputeMode) -> None:
        if not self._folders.found_mode.exists():
            self._folders.make()
            self._folders.write(self._folders.found_mode, f"{found}\n")

    def _was_right(self, wanted: ComputeMode) -> bool:
        """Tell whether it was right a moment ago; anybody else may change it at any time."""
        if self._right is None or self._right[0] is not wanted:
            return False
        return self._clock() - self._right[1] < self._verify_seconds
