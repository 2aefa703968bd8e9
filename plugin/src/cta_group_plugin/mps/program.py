"""Finds the control program and says where it was looked for when it is not there."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cta_group_plugin.adapters.driver_root import DriverRoot
from cta_group_plugin.errors import MpsUnavailable
from cta_group_plugin.mps.folders import MpsFolders

# NVIDIA's packages install into the first of these; the last is where GKE's and other driver installers mount it.
_USUAL_FOLDERS: Final = ("/usr/bin", "/usr/local/bin", "/usr/local/nvidia/bin")

SERVER_NAME: Final = "nvidia-cuda-mps-server"
"""The control daemon starts it by this name and finds it on its PATH (seen on R580)."""

SIMULATED_MODULE: Final = "cta_group_plugin.simulated.mps_control"


class ProgramUnusable(MpsUnavailable):
    """A program is not there, or cannot be run: whatever is asked, no daemon can be started here."""


@dataclass(frozen=True, slots=True)
class ControlProgram:
    """How to run the control program, NVIDIA's or the simulated one."""

    name: str
    """Its path, or a name to be looked for."""
    arguments: tuple[str, ...] = ()
    """What follows the path before any flag."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What it inherits: PATH, LD_LIBRARY_PATH."""
    driver_root: DriverRoot | None = None
    server: str | None = None
    """Name of the server program that a daemon needs; None: none."""

    def command(self, *flags: str) -> list[str]:
        """Return the command line. Raises ProgramUnusable with the places where the program was looked for.

        It is looked for each time, so a driver that is installed later is found without a restart.
        """
        return [
            str(self._found(self.name, "control", "set --control-binary or --driver-root")),
            *self.arguments,
            *flags,
        ]

    def daemon_command(self, *flags: str) -> list[str]:
        """Return the command line of a daemon, which needs the server program too. Raises ProgramUnusable."""
        if self.server is not None:
            self._found(self.server, "server", "it belongs beside the control program")
        return self.command(*flags)

    def environment_for(self, folders: MpsFolders) -> dict[str, str]:
        """Return the environment of a daemon or a client of one GPU. Raises ProgramUnusable."""
        return {
            **self.environment,
            **self._search_paths(),
            "CUDA_MPS_PIPE_DIRECTORY": str(folders.pipe),
            "CUDA_MPS_LOG_DIRECTORY": str(folders.log),
            # The daemon sees this one GPU, which therefore is its device 0.
            "CUDA_VISIBLE_DEVICES": folders.gpu,
        }

    def _search_paths(self) -> dict[str, str]:
        paths = {"PATH": ":".join(map(str, self._program_folders()))}
        if self.driver_root is None:
            return paths
        try:
            libraries = self.driver_root.library_folders()
        except OSError as error:
            raise ProgramUnusable(
                f"the driver's libraries cannot be linked in {self.driver_root.links}: {error}"
            ) from error
        inherited = filter(None, [self.environment.get("LD_LIBRARY_PATH", "")])
        return {**paths, "LD_LIBRARY_PATH": ":".join([*map(str, libraries), *inherited])}

    def _found(self, name: str, what: str, advice: str) -> Path:
        places = [Path(name)] if "/" in name else [folder / name for folder in self._program_folders()]
        present = [place for place in places if place.is_file()]
        for place in present:
            if os.access(place, os.X_OK):
                return place
        if present:
            raise ProgramUnusable(f"the MPS {what} program {present[0]} is there but cannot be executed")
        looked = ", ".join(str(place) for place in places)
        raise ProgramUnusable(f"the MPS {what} program was not found; looked for {looked}; {advice}")

    def _program_folders(self) -> list[Path]:
        own = [Path(self.name).parent] if "/" in self.name else []
        inherited = [Path(folder) for folder in self.environment.get("PATH", "").split(":") if folder]
        usual = list(map(Path, _USUAL_FOLDERS))
        if self.driver_root is not None:
            return list(dict.fromkeys([*own, *self.driver_root.program_folders(), *inherited]))
        return list(dict.fromkeys([*own, *inherited, *usual]))


def simulated_program(environment: Mapping[str, str]) -> ControlProgram:
    """Return the simulated control program, run by the Python that runs us."""
    return ControlProgram(sys.executable, ("-m", SIMULATED_MODULE), environment)
