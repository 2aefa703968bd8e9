"""The words of this machine's MPS control daemon, beside those that the supervisor and the simulated daemon rely on."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from cta_group_plugin.inventory import ServedGpu
from cta_group_plugin.mps.folders import MpsFolders
from gpu_node import inherited, until
from gpu_processes import CONTROL_DAEMON, kill_mps_processes
from mps_dialogue import BEFORE_A_SERVER, NO_DAEMON, SECOND_DAEMON, WITH_A_SERVER, Turn


class Daemon:
    """NVIDIA's control daemon in a folder of its own, as the supervisor runs it."""

    def __init__(self, root: Path, gpu: ServedGpu) -> None:
        folders = MpsFolders.under(root, gpu.facts.uuid)
        folders.make()
        self._environment = {
            **inherited(),
            "CUDA_VISIBLE_DEVICES": gpu.facts.uuid,
            "CUDA_MPS_PIPE_DIRECTORY": str(folders.pipe),
            "CUDA_MPS_LOG_DIRECTORY": str(folders.log),
        }

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run it until the block ends."""
        command = [CONTROL_DAEMON, "-f", "-M"]
        with subprocess.Popen(
            command, env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as daemon:
            try:
                yield
            finally:
                daemon.terminate()

    def run(self, *flags: str, line: str = "") -> subprocess.CompletedProcess[str]:
        """Run the program once more."""
        return subprocess.run(
            [CONTROL_DAEMON, *flags],
            input=line,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )

    def ask(self, command: str) -> str:
        """Return what is printed for a command; the exit code is 0 whatever it is."""
        answered = self.run(line=f"{command}\n")
        assert (answered.returncode, answered.stderr) == (0, "")
        return answered.stdout

    def listens(self) -> bool:
        """Tell whether it takes commands."""
        return self.run(line="get_server_list\n").returncode == 0


@pytest.fixture
def daemon(gpu: ServedGpu, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Give the test a daemon that does not run yet; no process of it is left after the test."""
    root = tmp_path_factory.mktemp("mps")
    yield Daemon(root, gpu)
    kill_mps_processes(root)


def talk(daemon: Daemon, turns: Sequence[Turn], server: str = "") -> list[Turn]:
    """Ask every question and return it with its answer, the server's process id out of both."""
    answered = []
    for turn in turns:
        said = daemon.ask(turn.command.replace("{server}", server))
        answered.append(Turn(turn.command, said.replace(server, "{server}") if server else said))
    return answered


async def test_the_daemon_says_what_was_recorded(daemon: Daemon) -> None:
    """Every answer, to sense and nonsense, is the one that the supervisor was written for."""
    nobody = daemon.run(line="get_server_list\n")
    assert (nobody.returncode, nobody.stdout, nobody.stderr) == (1, "", NO_DAEMON)
    with daemon.running():
        await until(daemon.listens, "the daemon listens", seconds=10)
        second = daemon.run("-f", "-M")
        assert (second.returncode, second.stdout) == (1, SECOND_DAEMON)
        assert talk(daemon, BEFORE_A_SERVER) == list(BEFORE_A_SERVER)
        await until(lambda: bool(daemon.ask("get_server_list")), "a server is there", seconds=10)
        server = daemon.ask("get_server_list").strip()
        await until(lambda: daemon.ask(f"get_server_status {server}") == "ACTIVE\n", "it is active", seconds=10)
        assert talk(daemon, WITH_A_SERVER, server) == list(WITH_A_SERVER)
