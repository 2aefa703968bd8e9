"""The command ``cta-group-plugin doctor``: its options, and where it gets the settings of the plugin from.

``kubectl exec`` gives a program the environment of the container and not the arguments of its first process, in which
the chart puts the settings. They are read from there, as if they had come by the environment.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from cta_group_plugin.cli_options import Options, absolute_path, one_of
from cta_group_plugin.settings import ComputeModeUse, RunSettings

ABOUT_DOCTOR: Final = """\
Say what is wrong with this node, the worst first, and how to mend each: driver and CUDA against what limiting a slice
needs, GPUs (compute mode, MIG, PCIe link, persistence, foreign processes, a second device plugin), kubelet's sockets,
MPS, CDI specifications, the container toolkit's own MPS mount. Nothing is changed, and no cluster is needed.

  kubectl -n cta-group exec ds/cta-group-plugin -- cta-group-plugin doctor
  cta-group-plugin doctor -o json

In the plugin's container it takes the settings of the plugin that runs there; each option wins over them.
Exit status 0: nothing needs a person; 1: an error or a warning; 2: a setting is wrong."""

_PROGRAM: Final = "cta-group-plugin"
_COMMAND: Final = "run"
_FIRST_PROCESS: Final = Path("/proc/1/cmdline")


def add_doctor_options(parser: argparse.ArgumentParser, options: Options) -> None:
    """Add what only this command has; the options of ``run`` belong to it too."""
    parser.add_argument("-o", "--output", choices=["json"], help="print facts for programs instead of sentences")
    meaning = "root folder of the host, as far as it can be seen from here"
    options.add("--host-root", absolute_path, Path("/"), meaning, "DIR")
    uses = one_of(*(use.value for use in ComputeModeUse))
    meaning = "what the MPS supervisor was told to do with compute modes"
    options.add("--compute-mode", uses, ComputeModeUse.EXCLUSIVE.value, meaning, "USE")


def start_doctor(parsed: argparse.Namespace, run_settings: RunSettings) -> int:
    """Examine the node and return the exit code."""
    from cta_group_plugin.doctor.gather import DoctorSettings  # noqa: PLC0415 - with pydantic, which no other needs
    from cta_group_plugin.doctor.show import run  # noqa: PLC0415

    looks_only = replace(run_settings, publish=False)
    settings = DoctorSettings(looks_only, parsed.host_root, ComputeModeUse(parsed.compute_mode))
    return run(settings, as_json=bool(parsed.output))


def with_inherited(environment: Mapping[str, str], first_process: Path = _FIRST_PROCESS) -> dict[str, str]:
    """Return the environment with the settings of the running plugin below it; unchanged where none runs."""
    try:
        words = first_process.read_bytes().decode("utf-8", errors="replace").split("\0")
    except OSError:
        return dict(environment)
    return {**settings_of_command(words), **environment}


def settings_of_command(words: Sequence[str]) -> dict[str, str]:
    """Return the flags of ``cta-group-plugin run`` as environment variables; nothing for another command."""
    programs = [place for place, word in enumerate(words) if Path(word).name == _PROGRAM]
    if not programs or words[programs[0] + 1 : programs[0] + 2] != [_COMMAND]:
        return {}
    flags = [word for word in words[programs[0] + 2 :] if word.startswith("--")]
    return dict(_setting(flag) for flag in flags)


def _setting(flag: str) -> tuple[str, str]:
    name, separator, value = flag.partition("=")
    if separator:
        return Options.variable(name), value
    if name.startswith("--no-"):
        return Options.variable(name.removeprefix("--no-")), "false"
    return Options.variable(name), "true"
