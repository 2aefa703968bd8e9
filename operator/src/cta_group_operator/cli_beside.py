"""The commands of ``cta-group-operator`` beside ``run``: each does one thing and ends, in a Job or by hand."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from cta_group_core.command_options import one_of, whole_number
from cta_group_operator import cli_texts
from cta_group_operator.cli_options import Options, add_what_and_where, own_namespace
from cta_group_operator.settings import Settings

if TYPE_CHECKING:
    from cta_group_operator.release_check import CheckSettings

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - it has no public name


def add_gates_command(commands: _Commands, environment: Mapping[str, str]) -> None:
    """Add ``release-gates``."""
    what = "take the gate of placement off every waiting pod"
    options = _options_of("release-gates", what, cli_texts.ABOUT_GATES, commands, environment)
    options.add("--timeout-seconds", whole_number(1, 3600), 45, "how long it tries", "SECONDS")


def add_check_command(commands: _Commands, environment: Mapping[str, str]) -> None:
    """Add ``check-release``."""
    what = "tell whether a release does its work"
    options = _options_of("check-release", what, cli_texts.ABOUT_CHECK, commands, environment)
    options.add("--namespace", str, own_namespace(Settings(identity="").namespace), "namespace of the release", "NAME")
    options.add("--lease-name", str, Settings(identity="").lease_name, "lease by which its operator leads", "NAME")
    meaning = "namespace of the rehearsed pod; empty: there is none that admission looks at, which is a finding"
    options.add("--rehearse-in", str, "default", meaning, "NAME")
    meaning = "what the rehearsed pod asks for: the least that a GPU of the cluster takes"
    options.add("--groups", whole_number(1, 4096), 8, meaning, "GROUPS")
    options.add("--webhook", one_of("on", "off"), "on", "whether the release has one", "on|off")
    options.add("--placement", one_of("on", "off"), "on", "whether the release gates pods", "on|off")
    options.add("--timeout-seconds", whole_number(1, 3600), 60, "how long what is wrong may become right", "SECONDS")


def _options_of(name: str, what: str, about: str, commands: _Commands, environment: Mapping[str, str]) -> Options:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser(name, help=what, description=about, formatter_class=formatter)
    options = Options(parser, environment)
    add_what_and_where(options)
    return options


# Imported where they are used, so that --help does not wait for a client of the API.
def release_gates(parsed: argparse.Namespace) -> int:
    """Release what waits, say so, and return the exit code."""
    from cta_group_operator.release_gates import GateSettings, run  # noqa: PLC0415

    settings = GateSettings(parsed.kubeconfig, parsed.resource_name, float(parsed.timeout_seconds))
    report = run(settings)
    print(report.words(settings.resource_name))
    return 0 if report.is_done else 1


def check_release(parsed: argparse.Namespace) -> int:
    """Check the release, say what was found, and return the exit code."""
    from cta_group_operator.release_check import run  # noqa: PLC0415

    report = run(check_settings_of(parsed))
    print(report.words())
    return 0 if report.is_well else 1


def check_settings_of(parsed: argparse.Namespace) -> "CheckSettings":
    """Return the settings of ``check-release`` out of its parsed command line."""
    from cta_group_operator.release_check import CheckSettings  # noqa: PLC0415

    return CheckSettings(
        kubeconfig=parsed.kubeconfig,
        resource_name=parsed.resource_name,
        namespace=parsed.namespace,
        lease_name=parsed.lease_name,
        rehearse_in=parsed.rehearse_in,
        groups=parsed.groups,
        webhook=parsed.webhook == "on",
        placement=parsed.placement == "on",
        timeout_seconds=float(parsed.timeout_seconds),
    )
