"""``python -m cluster_harness.cli``: a private cluster by hand, known by a folder of the caller's choice."""

import argparse
import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from cluster_harness.cluster import Cluster
from cluster_harness.errors import HarnessError

_NOTE = "cluster-folder"  # says in --dir where the cluster's state lies


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out one command; 1 and a sentence on standard error when it cannot be done."""
    arguments = _parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        return run(arguments)
    except HarnessError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1


def find_cluster(folder: Path) -> Cluster | None:
    """Return the cluster that was brought up with ``--dir FOLDER``, None when none runs."""
    note = folder / _NOTE
    if not note.exists():
        return None
    try:
        return Cluster.attach(Path(note.read_text()))
    except HarnessError:
        return None


def bring_up(folder: Path, *, start: Callable[[], Cluster] = Cluster.start) -> Cluster:
    """Start a cluster that ends with this process, and note it in ``folder``; ``detach`` lets it live on."""
    cluster = start()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _NOTE).write_text(str(cluster.folder))
    return cluster


def take_down(folder: Path) -> bool:
    """End the cluster that ``folder`` knows and forget it; return whether one ran."""
    cluster = find_cluster(folder)
    if cluster is not None:
        cluster.close()
    (folder / _NOTE).unlink(missing_ok=True)
    return cluster is not None


def _up(arguments: argparse.Namespace) -> int:
    cluster = find_cluster(arguments.dir)
    if cluster is not None:
        print(f"already up: {cluster.admin_kubeconfig}")
        return 0
    cluster = bring_up(arguments.dir)
    print(f"export KUBECONFIG={cluster.admin_kubeconfig}", flush=True)
    if arguments.detach:
        cluster.detach()
        return 0
    ends = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    print("up until this command ends (Ctrl-C)", flush=True)
    signal.sigwait(ends)
    take_down(arguments.dir)
    return 0


def _down(arguments: argparse.Namespace) -> int:
    print("down" if take_down(arguments.dir) else "nothing was up")
    return 0


def _kubeconfig(arguments: argparse.Namespace) -> int:
    print(_must_run(arguments).admin_kubeconfig)
    return 0


def _kubectl(arguments: argparse.Namespace) -> int:
    kubeconfig = _must_run(arguments).admin_kubeconfig
    places = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    program = shutil.which("kubectl", path=places)
    if program is None:
        raise HarnessError("kubectl is neither beside this Python nor on PATH")
    os.execve(program, [program, *arguments.command], os.environ | {"KUBECONFIG": str(kubeconfig)})  # noqa: S606


def _exec(arguments: argparse.Namespace) -> int:
    command = _must_run(arguments).node.namespaces.command([it for it in arguments.command if it != "--"])
    os.execvp(command[0], command)  # noqa: S606 - this process becomes the command, as it would in a shell


def _load(arguments: argparse.Namespace) -> int:
    cluster = _must_run(arguments)
    for archive in arguments.archive:
        cluster.import_image(archive)
    return 0


def _must_run(arguments: argparse.Namespace) -> Cluster:
    cluster = find_cluster(arguments.dir)
    if cluster is None:
        raise HarnessError(f"no cluster is up for --dir {arguments.dir}; start one with: up --dir {arguments.dir}")
    return cluster


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cluster", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.add_argument("--dir", type=Path, required=True, help="folder by which the cluster is known")
        added.set_defaults(run=run)
        return added

    up = command("up", _up, "Start a cluster.")
    up.add_argument("--detach", action="store_true", help="leave it running when the command ends")
    command("down", _down, "End the cluster and remove everything of it.")
    command("kubeconfig", _kubeconfig, "Print the path of the administrator's kubeconfig.")
    kubectl = command("kubectl", _kubectl, "Run kubectl as administrator.")
    kubectl.add_argument("command", nargs=argparse.REMAINDER)
    execute = command("exec", _exec, "Run a command in the node's namespaces.")
    execute.add_argument("command", nargs=argparse.REMAINDER)
    load = command("load", _load, "Load image archives on the node.")
    load.add_argument("archive", type=Path, nargs="+")
    return parser


if __name__ == "__main__":
    sys.exit(main())
