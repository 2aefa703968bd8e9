"""Finds the control program and says where it was looked for when it is not there."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cta_group_plugin.errors import MpsUnavailable
from cta_group_plugin.mps.folders import MpsFolders

# NVIDIA's packages install into the first of these; the last is where GKE's and other driver installers mount it.
_USUAL_FOLDERS: Final = ("/usr/bin", "/usr/local/bin", "/usr/local/nvidia/bin")

SIMULATED_MODULE: Final = "cta_group_plugin.simulated.mps_control"


@dataclass(frozen=True, slots=True)
class ControlProgram:
    """How to run the control program, NVIDIA's or the simulated one."""

    name: str
    """Its path, or a name to be looked for."""
    arguments: tuple[str, ...] = ()
    """What follows the path before any flag."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What it inherits: PATH (it starts the server program, and it is looked for there), LD_LIBRARY_PATH."""

    def command(self, *flags: str) -> list[str]:
        """Return the command line. Raises MpsUnavailable with the places where the program was looked for.

        It is looked for each time, so a driver that is installed later is found without a restart.
        """
        return [str(self._path()), *self.arguments, *flags]

    def environment_for(self, folders: MpsFolders) -> dict[str, str]:
        """Return the environment of a daemon or a client of one GPU."""
        return {
            **self.environment,
            "CUDA_MPS_PIPE_DIRECTORY": str(folders.pipe),
            "CUDA_MPS_LOG_DIRECTORY": str(folders.log),
            # The daemon sees this one GPU, which therefore is its device 0.
            "CUDA_VISIBLE_DEVICES": folders.gpu,
        }

    def _path(self) -> Path:
        places = self._places()
        present = [place for place in places if place.is_file()]
        for place in present:
            if os.access(place, os.X_OK):
                return place
        if present:
            raise MpsUnavailable(f"the MPS control program {present[0]} is there but cannot be executed")
        looked = ", ".join(str(place) for place in places)
        raise MpsUnavailable(f"the MPS control program was not found; looked for {looked}; set --control-binary")

    def _places(self) -> list[Path]:
        if "/" in self.name:
            return [Path(self.name)]
        folders = [*filter(None, self.environment.get("PATH", "").split(":")), *_USUAL_FOLDERS]
        return [Path(folder) / self.name for folder in dict.fromkeys(folders)]


def simulated_program(environment: Mapping[str, str]) -> ControlProgram:
    """Return the simulated control program, run by the Python that runs us."""
    return ControlProgram(sys.executable, ("-m", SIMULATED_MODULE), environment)
