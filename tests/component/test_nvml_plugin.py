"""The whole plugin process with the real NVML binding over the fake library, seen through its metrics."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cluster_harness.waiting import wait_for
from fake_nvml.recorded import recorded_h200
from fake_nvml.scenario import Scenario, node_of
from http_probe import fetch, free_address
from plugin_running import short_folder

PROGRAM = Path(sys.executable).with_name("cta-group-plugin")

Metrics = Callable[[], str]
StartPlugin = Callable[[Scenario], Metrics]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder whose path leaves room for a socket's name."""
    with short_folder() as made:
        yield made


@pytest.fixture
def start_plugin(nvml_library: Path, folder: Path) -> Iterator[StartPlugin]:
    """Start the plugin on a node and return its metrics; the process ends with the test."""
    with ExitStack() as started:

        def start(scenario: Scenario) -> Metrics:
            scenario.write(folder / "scenario")
            address = free_address()
            # A state folder of its own: a GPU that one run breaks would be broken for the next one.
            folders = ["--device-plugin-dir", str(folder), "--state-dir", str(folder / "state")]
            options = [*folders, "--no-publish", "--metrics-address", address]
            environment = {
                **os.environ,
                "LD_LIBRARY_PATH": str(nvml_library),
                "FAKE_NVML_SCENARIO": str(folder / "scenario"),
            }
            process = subprocess.Popen([str(PROGRAM), "run", *options], env=environment, stderr=subprocess.DEVNULL)
            started.enter_context(process)
            started.callback(process.kill)
            return lambda: fetch(f"http://{address}/metrics")

        yield start


def groups_of(metrics: Metrics, name: str, uuid: str) -> float | None:
    """Return one of the plugin's figures about a GPU; None while it is not served."""
    try:
        lines = metrics().splitlines()
    except OSError:
        return None
    found = [line for line in lines if line.startswith(f"cta_group_{name}{{") and f'gpu_uuid="{uuid}"' in line]
    return float(found[0].rpartition(" ")[2]) if found else None


def test_the_recorded_h200_is_offered_as_128_groups(start_plugin: StartPlugin) -> None:
    """The plugin offers 128 groups of the H200 whose answers were recorded."""
    h200 = recorded_h200()
    metrics = start_plugin(Scenario(gpus=(h200,)))
    assert wait_for(lambda: groups_of(metrics, "capacity", h200.uuid), "the capacity is told") == 128
    assert groups_of(metrics, "allocatable", h200.uuid) == 128


def test_a_fatal_xid_takes_the_groups_of_its_gpu_only(start_plugin: StartPlugin, folder: Path) -> None:
    """An XID that means a reset ends what one GPU offers; its neighbour goes on."""
    node = node_of("a100-80", 2)
    metrics = start_plugin(node)
    hit, other = (gpu.uuid for gpu in node.gpus)
    assert wait_for(lambda: groups_of(metrics, "allocatable", hit), "the groups are offered") == 108
    wait_for(lambda: _happen(node, folder / "scenario") and groups_of(metrics, "allocatable", hit) == 0, "withdrawn")
    assert groups_of(metrics, "capacity", hit) == 108
    assert groups_of(metrics, "allocatable", other) == 108


def _happen(node: Scenario, scenario_file: Path) -> bool:
    """Let one more XID 79 happen; those of before the plugin began to wait for events are lost."""
    happened = scenario_file.read_text(encoding="utf-8").count("event")
    for _ in range(happened + 1):
        node = node.with_xid(0, 79)
    node.write(scenario_file)
    return True
