"""The options of ``run`` about the health of the GPUs."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Final

from cta_group_core.health.xid_policy import XidPolicy, parse_overrides
from cta_group_plugin.cli_options import Options, absolute_path, whole_number
from cta_group_plugin.settings import HealthSettings

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
    )


def _folder_or_nothing(text: str) -> Path:
    return absolute_path(text) if text else _NOTHING
