"""The command line ``kubectl cta``. A command is imported when it is called, so that ``plan`` starts at once."""

import argparse
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from cta_group_cli import help_texts
from cta_group_cli.errors import BadInput
from cta_group_cli.exits import Exit
from cta_group_cli.outcome import outcome_of
from cta_group_core.command_options import resource_name
from cta_group_core.names import DEFAULT_RESOURCE_NAME
from cta_group_core.slices import DEFAULT_RESERVE_MIB

if TYPE_CHECKING:
    from cta_group_cli.adapters.rest import Rest
    from cta_group_cli.ports import ClusterReader

_PROGRAM = "kubectl cta"
_TIMEOUT_SECONDS = 10.0
_LONGEST_TIMEOUT_SECONDS = 86400.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status (see :class:`Exit`)."""
    arguments = _parser().parse_args(argv)
    return outcome_of(f"{_PROGRAM} {arguments.command}", lambda: arguments.run(arguments))


class _Parser(argparse.ArgumentParser):
    """Refuses in one sentence; the usage is where ``--help`` is."""

    def error(self, message: str) -> NoReturn:
        self.exit(Exit.BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


_Commands: TypeAlias = "argparse._SubParsersAction[_Parser]"  # noqa: SLF001 - the type has no public name


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=_PROGRAM, description=help_texts.ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_top(commands)
    _add_explain(commands)
    _add_quota(commands)
    _add_plan(commands)
    _add_align(commands)
    _add_doctor(commands)
    return parser


def _add_top(commands: _Commands) -> None:
    top = _command(commands, "top", "nodes, GPUs, and who holds how much of them", help_texts.TOP)
    top.add_argument("node", nargs="?", metavar="NODE", help="only this node")
    _add_connection(top, with_namespace=False)
    top.set_defaults(run=_run_top)


def _add_explain(commands: _Commands) -> None:
    explain = _command(
        commands, "explain", "why a workload does not run, in one sentence with numbers", help_texts.EXPLAIN
    )
    explain.add_argument("object", metavar="KIND/NAME", help="deployment/llama, sts/llama, job/batch, pod/llama-0, ...")
    _add_connection(explain, with_namespace=True)
    explain.set_defaults(run=_run_explain)


def _add_quota(commands: _Commands) -> None:
    quota = _command(commands, "quota", "what each team may hold, and holds", help_texts.QUOTA)
    _add_connection(quota, with_namespace=True)
    quota.set_defaults(run=_run_quota)


def _add_plan(commands: _Commands) -> None:
    plan = _command(commands, "plan", "what a request would get; needs no cluster", help_texts.PLAN)
    what = plan.add_mutually_exclusive_group(required=True)
    what.add_argument("--gpu", metavar="PROFILE", help="GPU by its short name: h100-sxm, l4, ...")
    what.add_argument("--list", action="store_true", help="list every GPU that is known, with its groups")
    plan.add_argument("--groups", type=int, metavar="N", help="CTA groups that a pod would ask for; needed with --gpu")
    _add_reserve(plan)
    plan.set_defaults(run=_run_plan)


def _add_align(commands: _Commands) -> None:
    what_for = "what admission would set in the vLLM servers of a manifest; needs no cluster"
    align = _command(commands, "align", what_for, help_texts.ALIGN, outputs=("json", "yaml"))
    align.add_argument("-f", "--filename", required=True, metavar="FILE", help="manifest; - reads standard input")
    align.add_argument("--gpu", required=True, metavar="PROFILE", help="GPU by its short name: h100-sxm, l4, ...")
    align.add_argument(
        "--resource",
        type=_resource,
        default=DEFAULT_RESOURCE_NAME,
        metavar="NAME",
        help="what pods ask for, as the chart's resourceName (default: %(default)s)",
    )
    _add_reserve(align)
    align.set_defaults(run=_run_align)


def _resource(text: str) -> str:
    try:
        return resource_name(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(f"{text!r} {wrong}") from wrong


def _add_reserve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reserve-mib",
        type=int,
        default=DEFAULT_RESERVE_MIB,
        metavar="MIB",
        help="memory of the GPU that is never given out, as set in the chart (default: %(default)s)",
    )


def _add_doctor(commands: _Commands) -> None:
    doctor = _command(commands, "doctor", "what is wrong with nodes and release, and how to mend it", help_texts.DOCTOR)
    doctor.add_argument("node", nargs="?", metavar="NODE", help="only this node")
    _add_connection(doctor, with_namespace=False)
    doctor.set_defaults(run=_run_doctor)


def _command(
    commands: _Commands, name: str, what_for: str, about: str, outputs: Sequence[str] = ("json",)
) -> argparse.ArgumentParser:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser(name, help=what_for, description=about, formatter_class=formatter)
    parser.add_argument("-o", "--output", choices=outputs, help="print facts for programs instead of a table")
    return parser


def _add_connection(parser: argparse.ArgumentParser, *, with_namespace: bool) -> None:
    if with_namespace:
        parser.add_argument("-n", "--namespace", metavar="NAME", help="namespace (default: the context's)")
    parser.add_argument("--kubeconfig", metavar="PATH", help="(default: $KUBECONFIG, then ~/.kube/config)")
    parser.add_argument("--context", metavar="NAME", help="context of the kubeconfig (default: its current one)")
    parser.add_argument(
        "--request-timeout",
        type=_seconds,
        default=_TIMEOUT_SECONDS,
        metavar="SECONDS",
        help="longest wait for one answer of the cluster (default: %(default)s)",
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= _LONGEST_TIMEOUT_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0, of {_LONGEST_TIMEOUT_SECONDS:.0f} at most")
    return seconds


def _connect(arguments: argparse.Namespace) -> "ClusterReader":
    from cta_group_cli.adapters.kubernetes_reader import KubernetesReader

    return KubernetesReader(_rest(arguments))


def _rest(arguments: argparse.Namespace) -> "Rest":
    from cta_group_cli.adapters.connection import Connection
    from cta_group_cli.adapters.rest import Rest

    kubeconfig = arguments.kubeconfig or os.environ.get("KUBECONFIG") or None
    return Rest(Connection(kubeconfig, arguments.context, arguments.request_timeout))


def _run_top(arguments: argparse.Namespace) -> Exit:
    from cta_group_cli.top import show_top
    from cta_group_core.moments import rfc3339

    return show_top(_connect(arguments), arguments.node, now=rfc3339(time.time()), as_json=bool(arguments.output))


def _run_explain(arguments: argparse.Namespace) -> Exit:
    from cta_group_cli.explain import show_explanation

    return show_explanation(
        _connect(arguments), arguments.object, namespace=arguments.namespace, as_json=bool(arguments.output)
    )


def _run_quota(arguments: argparse.Namespace) -> Exit:
    from cta_group_cli.quota import show_quotas

    return show_quotas(_connect(arguments), namespace=arguments.namespace, as_json=bool(arguments.output))


def _run_plan(arguments: argparse.Namespace) -> Exit:
    from cta_group_cli.plan import show_plan, show_profiles

    if arguments.list:
        return show_profiles(as_json=bool(arguments.output))
    if arguments.groups is None:
        raise BadInput("--groups is missing: say how many CTA groups, such as --groups 32")
    return show_plan(arguments.gpu, arguments.groups, reserve_mib=arguments.reserve_mib, as_json=bool(arguments.output))


def _run_align(arguments: argparse.Namespace) -> Exit:
    from cta_group_cli.align import show_alignment

    return show_alignment(
        arguments.filename,
        arguments.gpu,
        reserve_mib=arguments.reserve_mib,
        resource=arguments.resource,
        output=arguments.output,
    )


def _run_doctor(arguments: argparse.Namespace) -> Exit:
    from cta_group_cli.adapters.doctor_reader import KubernetesDoctorReader
    from cta_group_cli.doctor.show import show_checkup

    reader = KubernetesDoctorReader(_rest(arguments))
    return show_checkup(reader, arguments.node, as_json=bool(arguments.output))
