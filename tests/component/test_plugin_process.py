"""The program as a process: how it ends, and what it costs."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cta_group_plugin.testing import Ask, FakeKubelet
from plugin_running import plugin_process, short_folder
from plugin_values import pod

PROGRAM = str(Path(sys.executable).with_name("cta-group-plugin"))
LARGEST_RESIDENT_MIB = 50
"""What a node may lose to this process. The libraries that it cannot do without take 39 of it."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signal_ends_it_with_success_and_without_leftovers(number: signal.Signals) -> None:
    """It ends at once, and its socket is gone."""
    with short_folder() as root:
        (root / "plugins").mkdir()
        async with FakeKubelet(root / "plugins") as kubelet, plugin_process(root, "--count=1") as plugin:
            await kubelet.until(lambda kubelet: len(kubelet.devices) == 128)
            plugin.send_signal(number)
            assert await plugin.wait() == 0
            assert [path.name for path in (root / "plugins").iterdir()] == ["kubelet.sock"]


async def test_memory_of_a_node_with_eight_gpus() -> None:
    """Eight full H100s with sixteen tenants fit into the memory that a node may lose."""
    with short_folder() as root:
        (root / "plugins").mkdir()
        async with (
            FakeKubelet(root / "plugins", pod_resources_socket=root / "pods.sock") as kubelet,
            plugin_process(root, "--metrics-address=127.0.0.1:0") as plugin,
        ):
            await kubelet.until(lambda kubelet: len(kubelet.devices) == 1024)
            for number in range(16):
                (container,) = await kubelet.admit(pod(f"vllm-{number}"), [Ask("main", 64)])
                await kubelet.start_container(container)
            assert resident_mib(plugin.pid) < LARGEST_RESIDENT_MIB


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process, shared libraries included."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def test_folder_with_a_path_too_long_for_a_socket_is_a_wrong_setting() -> None:
    """Linux' limit is told before kubelet fails to find the socket."""
    folder = "/var/lib/" + "x" * 90
    command = [
        PROGRAM,
        "run",
        "--source=simulated",
        "--no-publish",
        "--metrics-address=",
        f"--device-plugin-dir={folder}",
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert f"--device-plugin-dir={folder}: a socket in it has a path of more than 107 bytes" in ended.stderr


def test_version_is_that_of_the_distribution() -> None:
    """``--version`` says what pyproject.toml says."""
    said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    declared = Path(__file__).parents[2].joinpath("pyproject.toml").read_text()
    assert f'version = "{said.split()[1]}"' in declared
