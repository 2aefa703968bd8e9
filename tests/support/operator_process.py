"""The operator as a process of its own, as a person starts it against a cluster from outside."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster_harness.waiting import PATIENCE_SECONDS, wait_for
from http_probe import fetch, free_address

"""Longer than a lease of one that was killed, and than Python takes to start on a busy machine."""


class OperatorProcess:
    """One running operator. Its log is a file, so that nothing blocks it."""

    def __init__(self, kubeconfig: Path, namespace: str, folder: Path, *flags: str) -> None:
        self._address = free_address()
        self._log_file = folder / f"operator-{self._address.rpartition(':')[2]}.log"
        command = [
            sys.executable,
            "-c",
            "import sys; from cta_group_operator.cli import main; sys.exit(main())",
            "run",
            f"--kubeconfig={kubeconfig}",
            f"--namespace={namespace}",
            "--webhook-port=0",
            f"--metrics-address={self._address}",
            *flags,
        ]
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        with self._log_file.open("w") as log:
            self.process = subprocess.Popen(command, stderr=log, stdout=log, env=environment)

    @property
    def log(self) -> str:
        """What it logged until now."""
        return self._log_file.read_text()

    @property
    def leads(self) -> bool:
        """Whether it says that it leads."""
        return self.metric("cta_group_leader") == 1

    @property
    def metrics_url(self) -> str:
        """Where it tells its metrics."""
        return f"http://{self._address}/metrics"

    def metric(self, series: str) -> float | None:
        """Return the value of one series as it is written in the exposition; None when it is not there."""
        try:
            text = fetch(self.metrics_url)
        except OSError:
            return None
        found = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else None

    def ready(self) -> bool:
        """Return whether /readyz is content."""
        try:
            return fetch(f"http://{self._address}/readyz") == "ok\n"
        except OSError:
            return False

    def wait_leading(self) -> None:
        """Wait until it leads; a process that ended meanwhile fails with its log."""

        def leads() -> bool:
            assert self.process.poll() is None, self.log
            return self.leads

        wait_for(leads, "the operator to lead")

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """End it by a signal and return its exit status; safe to call twice."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


@contextmanager
def running_operator(kubeconfig: Path, namespace: str, folder: Path, *flags: str) -> Iterator[OperatorProcess]:
    """Run an operator that leads until the block ends, however it ends."""
    operator = OperatorProcess(kubeconfig, namespace, folder, *flags)
    try:
        operator.wait_leading()
        yield operator
    finally:
        operator.end()  # gives the lease up, so that the next one need not wait
