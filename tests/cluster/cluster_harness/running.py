"""What a control plane and a cluster have in common: components that are stopped and started by name, and an end."""

import signal
from collections.abc import Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Self

from cluster_harness.components import Component, log_file
from cluster_harness.machine import Machine
from cluster_harness.waiting import PATIENCE_SECONDS

READY_TIMEOUT_SECONDS = PATIENCE_SECONDS
Probe = Callable[[], bool]


class Running:
    """Components that run; ended by leaving the ``with`` block or by ``close``."""

    def __init__(self, machine: Machine, probes: Mapping[str, Probe]) -> None:
        self._machine = machine
        self._probes = dict(probes)
        self._own = frozenset(probes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every process and remove the state folder; return when that is done."""
        self._machine.close()

    def stop_component(self, name: str, how: signal.Signals = signal.SIGTERM) -> int:
        """Stop the component and return its exit status (that of a signal is negative)."""
        return self._machine.control.stop(self._known(name), how)

    def start_component(self, name: str) -> None:
        """Start the stopped component and return when it works."""
        self._machine.control.start(self._known(name))
        self._wait([name])

    def restart_component(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop the component, start it again and return when it works."""
        self.stop_component(name, how)
        self.start_component(name)

    def restore(self) -> None:
        """Start again what a test that failed has left stopped, and return when it works; added programs apart."""
        for name, status in self._machine.control.exit_statuses().items():
            if status is not None and name in self._own:
                self.start_component(name)

    def add_component(self, component: Component, probe: Probe) -> None:
        """Run one more program where the others run, and return when the probe says that it works.

        It is stopped and started by its name like the others, and ends with them.
        """
        self._machine.control.declare(component)
        self._probes[component.name] = probe
        self.start_component(component.name)

    def has_component(self, name: str) -> bool:
        """Return whether a component of that name was ever declared."""
        return name in self._machine.control.names()

    def is_running(self, name: str) -> bool:
        """Return whether a component of that name was started and has not ended."""
        return self._machine.control.exit_statuses().get(name, 0) is None

    def log(self, name: str) -> str:
        """Return the whole log of the component, over its restarts."""
        path = log_file(self._machine.folder, self._known(name))
        return path.read_text(errors="replace") if path.exists() else ""

    def _start_in_order(self, names: Iterable[str], *, each_ready: Collection[str]) -> None:
        """Start the components; the next ones wait for those in ``each_ready``, without which they would give up."""
        started = list(names)
        for name in started:
            self._machine.control.start(name)
            if name in each_ready:
                self._wait([name])
        self._wait(started)

    def _known(self, name: str) -> str:
        names = self._machine.control.names()
        if name not in names:
            raise ValueError(f"no component {name!r}; there are {', '.join(names)}")
        return name

    def _wait(self, names: Iterable[str]) -> None:
        for name in names:
            self._machine.wait(self._probes[name], name, READY_TIMEOUT_SECONDS)
