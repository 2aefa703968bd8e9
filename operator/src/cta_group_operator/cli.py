"""The command ``cta-group-operator``: reads the settings and starts the operator, or does one thing and ends.

Exit codes: 0 ended as asked, 1 could not go on or left something undone, 2 a setting is wrong.
"""

import argparse
import os
import socket
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from cta_group_core.align_mode import AlignMode
from cta_group_core.command_options import listen_address, one_of, whole_number
from cta_group_core.log_lines import LOG_FORMATS, LOG_LEVELS
from cta_group_operator import __version__, cli_texts
from cta_group_operator.cli_beside import add_check_command, add_gates_command, check_release, release_gates
from cta_group_operator.cli_options import Options, absolute_path, add_what_and_where, own_namespace, scheduler_names
from cta_group_operator.errors import BadSetting
from cta_group_operator.logs import set_up_logs
from cta_group_operator.settings import Lifetimes, Settings

_BAD_INPUT = 2
_CENTURY_SECONDS = 100 * 365 * 86_400
_DEFAULT = Settings(identity="")
"""What the options say where nobody does; the identity is made anew by each process."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        parsed = build_parser(os.environ).parse_args(arguments)
        return _COMMANDS[parsed.command](parsed)
    except BadSetting as bad:
        print(f"cta-group-operator: {bad}", file=sys.stderr)
        return _BAD_INPUT


# Imported where they are used, so that --help does not wait for kopf.
def _start(parsed: argparse.Namespace) -> int:
    from cta_group_operator.app import run  # noqa: PLC0415

    settings = settings_of(parsed)
    set_up_logs(settings.log_level, settings.log_format)
    return run(settings)


_COMMANDS: Final[Mapping[str, Callable[[argparse.Namespace], int]]] = {
    "run": _start,
    "release-gates": release_gates,
    "check-release": check_release,
}


def build_parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    """Return the parser of the whole command line; raises BadSetting for a wrong environment variable."""
    parser = argparse.ArgumentParser(prog="cta-group-operator", description=cli_texts.ABOUT)
    parser.add_argument("--version", action="version", version=f"cta-group-operator {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    formatter = argparse.RawDescriptionHelpFormatter
    run = commands.add_parser(
        "run", help="run the operator", description=cli_texts.ABOUT_RUN, formatter_class=formatter
    )
    options = Options(run, environment)
    _add_cluster_options(options)
    _add_webhook_options(options)
    _add_process_options(options)
    add_gates_command(commands, environment)
    add_check_command(commands, environment)
    return parser


def _add_cluster_options(options: Options) -> None:
    add_what_and_where(options)
    options.add("--namespace", str, own_namespace(_DEFAULT.namespace), "namespace that the operator runs in", "NAME")
    options.add("--lease-name", str, _DEFAULT.lease_name, "lease by which one replica leads", "NAME")
    options.add("--placement", one_of("on", "off"), "on", "gate pods and choose their nodes", "on|off")
    meaning = "what becomes of a controller's pods that a kubelet refused because of their groups"
    options.add("--refused-pods", one_of("delete", "keep"), "delete", meaning, "delete|keep")
    meaning = "schedulers that do not honour gates, separated by commas; their pods are not gated"
    options.add("--gateless-schedulers", scheduler_names, _DEFAULT.gateless_schedulers, meaning, "NAME,...")
    meaning = "how often pods are looked for that came past the webhook"
    options.add("--slipped-pods-seconds", whole_number(1, 86400), _DEFAULT.slipped_pods_seconds, meaning, "SECONDS")
    meaning = "how long a released pod may stay unschedulable before it is planned again"
    options.add("--replan-after-seconds", whole_number(1, 3600), 30, meaning, "SECONDS")
    meaning = "how long a pod may find no room before an autoscaler is shown it, released without a node; 0: never"
    options.add("--scale-up-after-seconds", whole_number(0, 3600), 0, meaning, "SECONDS")
    meaning = "age at which what a node's plugin said is not believed in full any more; plugins confirm it every 300 s"
    options.add("--stale-node-seconds", whole_number(1, 86400), _DEFAULT.stale_node_seconds, meaning, "SECONDS")
    meaning = "what admission does about vLLM's arguments"
    options.add("--alignment", one_of(*AlignMode), _DEFAULT.alignment.value, meaning, "|".join(AlignMode))
    meaning = "how often the vLLM metrics of workloads with a latency budget are read; 0: never"
    options.add("--budget-seconds", whole_number(0, 3600), _DEFAULT.budget_seconds, meaning, "SECONDS")
    meaning = "RuntimeClass without which a pod does not get its GPU; empty: none is needed"
    options.add("--runtime-class", str, _DEFAULT.runtime_class, meaning, "NAME")
    meaning = "what admission does with a pod that asks for groups and names no class"
    options.add("--missing-runtime-class", one_of("report", "set"), "report", meaning, "report|set")


def _add_webhook_options(options: Options) -> None:
    meaning = "port of the admission endpoint; 0: not served"
    options.add("--webhook-port", whole_number(0, 65535), _DEFAULT.webhook_port, meaning, "PORT")
    meaning = "Service by which the API server reaches it"
    options.add("--webhook-service-name", str, _DEFAULT.webhook_service_name, meaning, "NAME")
    meaning = "Secret that the certificate is kept in"
    options.add("--webhook-secret-name", str, _DEFAULT.webhook_secret_name, meaning, "NAME")
    meaning = "name of the webhook configurations whose certificate authority is kept"
    options.add("--webhook-configuration-name", str, _DEFAULT.webhook_configuration_name, meaning, "NAME")
    meaning = "folder with tls.crt and tls.key that somebody else rotates; then no Secret is made"
    options.add("--webhook-tls-dir", absolute_path, None, meaning, "DIR")
    _add_webhook_lifetimes(options)


def _add_webhook_lifetimes(options: Options) -> None:
    default = _DEFAULT.webhook_lifetimes
    for flag, seconds, meaning in (
        ("authority", default.authority_seconds, "how long an authority of ours is good for"),
        ("certificate", default.serving_seconds, "how long a certificate is; it is renewed after two thirds of that"),
        ("propagation", default.propagation_seconds, "from publishing a new authority until it signs"),
        ("overlap", default.overlap_seconds, "from a new certificate until an older authority is trusted no more"),
        ("poll", default.poll_seconds, "how often replicas look for a new certificate, and the leader for work"),
    ):
        options.add(f"--webhook-{flag}-seconds", whole_number(1, _CENTURY_SECONDS), seconds, meaning, "SECONDS")


def _add_process_options(options: Options) -> None:
    meaning = "where /metrics, /healthz and /readyz are served; empty: nowhere"
    options.add("--metrics-address", listen_address, _DEFAULT.metrics_address, meaning, "HOST:PORT")
    meaning = "after so long each watch is opened anew, so that a dead connection is not believed in"
    options.add("--watch-seconds", whole_number(5, 600), _DEFAULT.watch_seconds, meaning, "SECONDS")
    meaning = f"least level that is logged: {', '.join(LOG_LEVELS)}"
    options.add("--log-level", one_of(*LOG_LEVELS), "info", meaning, "LEVEL")
    options.add("--log-format", one_of(*LOG_FORMATS), "text", "text for people, json for collectors", "FORMAT")


def _lifetimes_of(parsed: argparse.Namespace) -> Lifetimes:
    return Lifetimes(
        authority_seconds=parsed.webhook_authority_seconds,
        serving_seconds=parsed.webhook_certificate_seconds,
        propagation_seconds=parsed.webhook_propagation_seconds,
        overlap_seconds=parsed.webhook_overlap_seconds,
        poll_seconds=parsed.webhook_poll_seconds,
    )


def settings_of(parsed: argparse.Namespace) -> Settings:
    """Return the settings out of the parsed command line."""
    return Settings(
        identity=f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}",
        namespace=parsed.namespace,
        resource_name=parsed.resource_name,
        lease_name=parsed.lease_name,
        webhook_port=parsed.webhook_port,
        webhook_service_name=parsed.webhook_service_name,
        webhook_secret_name=parsed.webhook_secret_name,
        webhook_configuration_name=parsed.webhook_configuration_name,
        webhook_tls_dir=parsed.webhook_tls_dir,
        webhook_lifetimes=_lifetimes_of(parsed),
        placement=parsed.placement == "on",
        deletes_refused_pods=parsed.refused_pods == "delete",
        gateless_schedulers=parsed.gateless_schedulers,
        slipped_pods_seconds=parsed.slipped_pods_seconds,
        replan_after_seconds=float(parsed.replan_after_seconds),
        scale_up_after_seconds=float(parsed.scale_up_after_seconds) or None,
        stale_node_seconds=parsed.stale_node_seconds,
        alignment=AlignMode(parsed.alignment),
        budget_seconds=parsed.budget_seconds,
        runtime_class=parsed.runtime_class,
        sets_runtime_class=parsed.missing_runtime_class == "set",
        metrics_address=parsed.metrics_address,
        kubeconfig=parsed.kubeconfig,
        watch_seconds=int(parsed.watch_seconds),
        log_level=parsed.log_level,
        log_format=parsed.log_format,
    )
