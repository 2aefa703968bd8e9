"""The options of ``run`` about which GPUs are served, and about their health."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Final

from cta_group_core.health.xid_policy import XidPolicy, parse_overrides
from cta_group_core.profiles import PROFILES, profile_named
from cta_group_plugin.cli_options import Options, absolute_path, one_of, whole_number
from cta_group_plugin.gpu_choice import GpuChoice, parse_names
from cta_group_plugin.gpu_choice import parse_overrides as parse_gpu_overrides
from cta_group_plugin.settings import SUPERVISOR_SOCKET_NAME, HealthSettings, RunSettings, SourceKind

_NOTHING: Final = Path()


def add_health_options(options: Options) -> None:
    """Add them to a parser."""
    default = HealthSettings()
    meaning = 'classes of XIDs that differ from the catalogue, as JSON such as {"fatal": [109], "report": [48]}'
    options.add("--xid-policy", parse_overrides, parse_overrides(""), meaning, "JSON")
    meaning = "polls in a row that a GPU must answer before it is healthy again"
    options.add("--health-clean-polls", whole_number(1, 100), default.rules.clean_polls, meaning, "N")
    meaning = "how often each GPU is asked how it is"
    options.add("--poll-seconds", whole_number(1, 300), int(default.poll_seconds), meaning, "SECONDS")
    meaning = (
        f"folder for what must outlive this process (default {default.state_dir}; simulated GPUs: none); empty: none"
    )
    options.add("--state-dir", _folder_or_nothing, None, meaning, "DIR")
    meaning = "proc file system of the host's processes; empty: they cannot be seen from here"
    options.add("--processes-dir", _folder_or_nothing, default.processes_dir, meaning, "DIR")
    meaning = "how long containers wait for memory of an ended process before its GPU is suspect"
    options.add("--late-memory-seconds", whole_number(1, 3600), int(default.late_memory_seconds), meaning, "SECONDS")


def add_gpu_options(options: Options, default: RunSettings) -> None:
    """Add the options that say where the GPUs come from."""
    sources = one_of(*(kind.value for kind in SourceKind))
    options.add("--source", sources, default.source.value, "nvml: the real GPUs; simulated: pretended ones", "SOURCE")
    products = ", ".join(PROFILES)
    options.add("--profile", _profile, default.profile, f"product of the simulated GPUs: {products}", "NAME")
    options.add("--driver-root", absolute_path, None, "folder with the driver, where it is in no usual place", "DIR")
    options.add("--count", whole_number(0, 64), default.count, "how many GPUs are simulated", "N")
    options.add("--mps-root", absolute_path, default.mps_root, "folder on the host of the GPUs' MPS daemons", "DIR")
    meaning = f"the MPS supervisor's socket; default: {SUPERVISOR_SOCKET_NAME} in the MPS folder, or with simulated "
    options.add("--mps-socket", absolute_path, None, meaning + "GPUs a supervisor simulated in this process", "FILE")


def _profile(text: str) -> str:
    return profile_named(text).name


def add_choice_options(options: Options) -> None:
    """Add the options that say which GPUs are ours."""
    names = "UUIDs, indexes or products, separated by commas"
    options.add("--gpu-include", parse_names, parse_names(""), f"the only GPUs to serve: {names}", "NAMES")
    options.add("--gpu-exclude", parse_names, parse_names(""), f"GPUs to leave to others: {names}", "NAMES")
    meaning = 'facts that the driver does not tell, as JSON such as [{"gpu": "GB10", "memoryMiBOverride": 98304}]'
    options.add("--gpu-override", parse_gpu_overrides, parse_gpu_overrides(""), meaning, "JSON")


def choice_of(parsed: argparse.Namespace) -> GpuChoice:
    """Return which GPUs are ours out of the parsed command line."""
    return GpuChoice(parsed.gpu_include, parsed.gpu_exclude, parsed.gpu_override)


def health_settings(parsed: argparse.Namespace, *, is_simulated: bool) -> HealthSettings:
    """Return the settings out of the parsed command line. Simulated GPUs have nothing to remember unless told to."""
    default = HealthSettings()
    rules = replace(default.rules, policy=XidPolicy(parsed.xid_policy), clean_polls=parsed.health_clean_polls)
    usual = None if is_simulated else default.state_dir
    state_dir = usual if parsed.state_dir is None else parsed.state_dir
    return replace(
        default,
        rules=rules,
        poll_seconds=float(parsed.poll_seconds),
        state_dir=None if state_dir == _NOTHING else state_dir,
        processes_dir=None if parsed.processes_dir == _NOTHING else parsed.processes_dir,
        late_memory_seconds=float(parsed.late_memory_seconds),
    )


def _folder_or_nothing(text: str) -> Path:
    return absolute_path(text) if text else _NOTHING
