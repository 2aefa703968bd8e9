"""A cluster by hand: up, looked into, down."""

import os
import subprocess
import sys
from pathlib import Path

from cluster_harness.state_folder import BASE

HARNESS = Path(__file__).resolve().parents[1] / "cluster"


def cli(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run one command of the harness for the cluster that ``folder`` knows."""
    name, *rest = command
    argv = [sys.executable, "-m", "cluster_harness.cli", name, "--dir", str(folder), *rest]
    environment = os.environ | {"PYTHONPATH": str(HARNESS)}
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=300)


def test_a_detached_cluster_lives_until_it_is_taken_down(tmp_path: Path) -> None:
    """It survives the command that started it, is found by the next ones, and goes without a trace."""
    try:
        assert cli(tmp_path, "up", "--detach").returncode == 0
        again = cli(tmp_path, "up", "--detach")
        kubeconfig = Path(cli(tmp_path, "kubeconfig").stdout.strip())
        hostname = cli(tmp_path, "exec", "--", "hostname")
        nodes = cli(tmp_path, "kubectl", "get", "nodes", "-o", "name")
    finally:
        down = cli(tmp_path, "down")
    assert "already up" in again.stdout
    assert kubeconfig.parent.parent == BASE
    assert hostname.stdout.strip() == "node-1"
    assert nodes.stdout.strip() == "node/node-1"
    assert down.stdout.strip() == "down"
    assert not kubeconfig.parent.exists()


def test_without_a_cluster_the_sentence_says_how_to_get_one(tmp_path: Path) -> None:
    """Each command that needs a cluster names the one that starts it; taking down nothing is no error."""
    asked = cli(tmp_path, "kubeconfig")
    assert asked.returncode == 1
    assert f"start one with: up --dir {tmp_path}" in asked.stderr
    assert cli(tmp_path, "down").stdout.strip() == "nothing was up"
