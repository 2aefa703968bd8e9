"""A process with the real adapter and the real binding over the fake library, as an object of the test."""

import base64
import os
import pickle
import selectors
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from cta_group_plugin.errors import DriverError
from cta_group_plugin.gpu_source import GpuUse, Vitals
from cta_group_plugin.ports import GpuEvent, GpuProcess, Inventory
from fake_nvml.scenario import Scenario

_ANSWER_SECONDS = 20.0


class DriverProcess:
    """Calls of :class:`cta_group_plugin.adapters.nvml.NvmlSource` in that process. Errors are raised here again."""

    def __init__(self, process: subprocess.Popen[str], scenario_file: Path) -> None:
        self._process = process
        self._scenario_file = scenario_file

    def become(self, scenario: Scenario) -> None:
        """Change what the library answers from now on."""
        scenario.write(self._scenario_file)

    def open(self) -> None:
        """Call open."""
        self.call("open")

    def inventory(self) -> Inventory:
        """Call inventory."""
        answer = self.call("inventory")
        assert isinstance(answer, Inventory)
        return answer

    def processes(self, uuid: str) -> tuple[GpuProcess, ...]:
        """Call processes."""
        answer = self.call(f"processes {uuid}")
        assert isinstance(answer, tuple)
        return answer

    def vitals(self, uuid: str) -> Vitals:
        """Call vitals."""
        answer = self.call(f"vitals {uuid}")
        assert isinstance(answer, Vitals)
        return answer

    def use(self, uuid: str) -> GpuUse:
        """Call use."""
        answer = self.call(f"use {uuid}")
        assert isinstance(answer, GpuUse)
        return answer

    def wait_events(self, timeout_seconds: float) -> tuple[GpuEvent, ...]:
        """Call wait_events."""
        self.begin(f"wait {timeout_seconds}")
        return self.events()

    def call(self, line: str) -> object:
        """Make one call and return its answer."""
        self.begin(line)
        return self.answer()

    def begin(self, line: str) -> None:
        """Make one call without waiting for its answer."""
        _pipe(self._process.stdin).write(line + "\n")
        _pipe(self._process.stdin).flush()

    def events(self) -> tuple[GpuEvent, ...]:
        """Return the answer of a wait that was begun."""
        answer = self.answer()
        assert isinstance(answer, tuple)
        return answer

    def answer(self) -> object:
        """Return the answer of the call that was begun."""
        output = _pipe(self._process.stdout)
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            if not selector.select(_ANSWER_SECONDS):
                raise TimeoutError(f"no answer within {_ANSWER_SECONDS} s")
        line = output.readline()
        if not line:
            raise EOFError(f"the process ended with {self._process.wait()}")
        answer = pickle.loads(base64.b64decode(line))  # noqa: S301 - written by our own child
        if isinstance(answer, DriverError):
            raise answer
        return answer


@contextmanager
def driver_process(library: Path, scenario: Scenario, folder: Path) -> Iterator[DriverProcess]:
    """Run the process until the block ends. ``folder`` takes the scenario and may hold a ``sys`` folder."""
    scenario_file = folder / "scenario"
    scenario.write(scenario_file)
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(library),
        "FAKE_NVML_SCENARIO": str(scenario_file),
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }
    command = [sys.executable, "-m", "fake_nvml.session", "--sysfs", str(folder / "sys")]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield DriverProcess(process, scenario_file)
        finally:
            process.kill()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
