"""The command line ``kubectl cta``. A command is imported when it is called, so that ``plan`` starts at once."""

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from cta_group_cli.errors import BadInput
from cta_group_cli.exits import Exit
from cta_group_cli.outcome import outcome_of
from cta_group_core.slices import DEFAULT_RESERVE_MIB

if TYPE_CHECKING:
    from cta_group_cli.adapters.rest import Rest
    from cta_group_cli.ports import ClusterReader

_PROGRAM = "kubectl cta"
_TIMEOUT_SECONDS = 10.0
_LONGEST_TIMEOUT_SECONDS = 86400.0

_ABOUT = """\
Slices of GPUs in CTA groups: who holds what, why something does not run, what a request would get.

examples:
  kubectl cta top                                     nodes, GPUs, and who holds how much of them
  kubectl cta explain deployment/llama -n team-a      why it does not run, in one sentence with numbers
  kubectl cta quota -n team-a                         what the team may hold and holds
  kubectl cta plan --gpu h100-sxm --groups 32         SMs and memory of such a slice; needs no cluster
  kubectl cta doctor                                  what is wrong with the nodes and the release, and how to mend it

exit status of every command: 0 fine, 1 something needs a person, 2 it could not be answered"""

_TOP = """\
Show every node's GPUs (free groups of all, the largest request that fits now, health) and who holds them.

examples:
  kubectl cta top
  kubectl cta top gpu-node-7
  kubectl cta top -o json | jq '.nodes[].gpus[] | select(.free > 0)'

A node whose GPUs are simulated is marked. LARGEST is the largest request that fits on that GPU now: a request is
always on one GPU, or on whole GPUs. Exit status 1: a GPU is unhealthy, or no node tells."""

_EXPLAIN = """\
Say in one sentence why a workload does not run, with the numbers behind it.

examples:
  kubectl cta explain deployment/llama
  kubectl cta explain sts/llama -n team-a
  kubectl cta explain pod/llama-0 -o json

The sentence is the operator's (object CTAWorkload). Where it has written none, the answer is read from the objects
themselves: a quota's refusal from ReplicaSets and events, a pod's gate, conditions and containers.
Exit status 0: nothing is in the way; 1: something is; 2: no such object."""

_QUOTA = """\
Show each CTAQuota: groups, used, pending, and the part of each namespace.

examples:
  kubectl cta quota
  kubectl cta quota -n team-a        only the quotas of this namespace
  kubectl cta quota -o json

USED counts waiting pods too. PENDING are groups of pods that the quota keeps from being created: kubectl cta explain
DEPLOYMENT tells. Below the table: what is wrong with a quota. A namespace that no CTAQuota names is not limited.
Exit status 1: some are pending, or a quota is not enforced everywhere."""

_PLAN = """\
Tell what a request gets on a GPU: SMs, the percentage that the driver is given, memory. Needs no cluster.

examples:
  kubectl cta plan --gpu h100-sxm --groups 32
  kubectl cta plan --gpu a100-80 --groups 54 --reserve-mib 2048 -o json
  kubectl cta plan --list

A request is a fraction of one GPU in whole steps, one whole GPU, or several whole GPUs; a plan is about one.
Exit status 2: no such request, or no such GPU; the sentence says what there is."""

_DOCTOR = """\
Say what is wrong with the release and its nodes, the worst first, and how to mend each.

examples:
  kubectl cta doctor
  kubectl cta doctor gpu-node-7
  kubectl cta doctor -o json | jq '.findings[] | select(.severity == "error")'

It reads what the nodes publish, Nodes, the release's workloads and pods, webhook, policies, the pods that ask for
groups and kubelet's feature gates, and lets the API server admit a pod for show (nothing is stored). What you may not
read is said and not looked at. On a node itself, also without a cluster, driver, MPS and kubelet are asked by
  kubectl -n cta-group exec ds/cta-group-plugin -- cta-group-plugin doctor
Exit status 1: a finding that is an error or a warning; what is only worth knowing (info) leaves it 0. 2: no such node,
or the cluster does not answer."""


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
    parser = _Parser(prog=_PROGRAM, description=_ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_top(commands)
    _add_explain(commands)
    _add_quota(commands)
    _add_plan(commands)
    _add_doctor(commands)
    return parser


def _add_top(commands: _Commands) -> None:
    top = _command(commands, "top", "nodes, GPUs, and who holds how much of them", _TOP)
    top.add_argument("node", nargs="?", metavar="NODE", help="only this node")
    _add_connection(top, with_namespace=False)
    top.set_defaults(run=_run_top)


def _add_explain(commands: _Commands) -> None:
    explain = _command(commands, "explain", "why a workload does not run, in one sentence with numbers", _EXPLAIN)
    explain.add_argument("object", metavar="KIND/NAME", help="deployment/llama, sts/llama, job/batch, pod/llama-0, ...")
    _add_connection(explain, with_namespace=True)
    explain.set_defaults(run=_run_explain)


def _add_quota(commands: _Commands) -> None:
    quota = _command(commands, "quota", "what each team may hold, and holds", _QUOTA)
    _add_connection(quota, with_namespace=True)
    quota.set_defaults(run=_run_quota)


def _add_plan(commands: _Commands) -> None:
    plan = _command(commands, "plan", "what a request would get; needs no cluster", _PLAN)
    what = plan.add_mutually_exclusive_group(required=True)
    what.add_argument("--gpu", metavar="PROFILE", help="GPU by its short name: h100-sxm, l4, ...")
    what.add_argument("--list", action="store_true", help="list every GPU that is known, with its groups")
    plan.add_argument("--groups", type=int, metavar="N", help="CTA groups that a pod would ask for; needed with --gpu")
    plan.add_argument(
        "--reserve-mib",
        type=int,
        default=DEFAULT_RESERVE_MIB,
        metavar="MIB",
        help="memory of the GPU that is never given out, as set in the chart (default: %(default)s)",
    )
    plan.set_defaults(run=_run_plan)


def _add_doctor(commands: _Commands) -> None:
    doctor = _command(commands, "doctor", "what is wrong with nodes and release, and how to mend it", _DOCTOR)
    doctor.add_argument("node", nargs="?", metavar="NODE", help="only this node")
    _add_connection(doctor, with_namespace=False)
    doctor.set_defaults(run=_run_doctor)


def _command(commands: _Commands, name: str, what_for: str, about: str) -> argparse.ArgumentParser:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser(name, help=what_for, description=about, formatter_class=formatter)
    parser.add_argument("-o", "--output", choices=["json"], help="print facts for programs instead of a table")
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

    return show_top(_connect(arguments), arguments.node, as_json=bool(arguments.output))


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


def _run_doctor(arguments: argparse.Namespace) -> Exit:
    from cta_group_cli.adapters.doctor_reader import KubernetesDoctorReader
    from cta_group_cli.doctor.show import show_checkup

    reader = KubernetesDoctorReader(_rest(arguments))
    return show_checkup(reader, arguments.node, as_json=bool(arguments.output))
