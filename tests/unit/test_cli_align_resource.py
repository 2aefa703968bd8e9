"""``kubectl cta align`` in a cluster whose chart has another ``resourceName``."""

from pathlib import Path

import pytest

from cta_group_cli.cli import main

OWN = "example.com/slice"
MANIFEST = f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: qwen, namespace: team-a}}
spec:
  template:
    spec:
      containers:
      - name: vllm
        image: vllm/vllm-openai:v0.27.1
        args: [Qwen/Qwen3-4B]
        resources: {{limits: {{{OWN}: 32}}}}
"""


def aligned(folder: Path, text: str, *words: str) -> int:
    """Run the command on a file and return its status."""
    file = folder / "app.yaml"
    file.write_text(text)
    return main(["align", "-f", str(file), "--gpu", "h100-sxm", *words])


def test_what_pods_ask_for_is_known_by_the_name_that_is_given(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The request is found and the server fitted to it; by the default name it asks for nothing."""
    assert aligned(tmp_path, MANIFEST, "--resource", OWN) == 0
    fitted = capsys.readouterr().out
    assert ", 32 groups" in fitted
    assert "set      --gpu-memory-utilization=" in fitted
    assert aligned(tmp_path, MANIFEST) == 0
    assert "asks for no groups" in capsys.readouterr().out


def test_refusals_and_advice_name_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """As the cluster's own answers do."""
    assert aligned(tmp_path, MANIFEST.replace("limits: {", "limits: {nvidia.com/gpu: 1, "), "--resource", OWN) == 1
    assert f"{OWN} and nvidia.com/gpu" in capsys.readouterr().out
    aligned(tmp_path, MANIFEST.replace(f"{OWN}: 32", "nvidia.com/gpu: 0.5"), "--resource", OWN)
    assert f"ask for {OWN}" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["cta-group", "", "kubernetes.io/cpu"])
def test_a_name_that_no_device_plugin_can_have_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    """In one sentence with what is allowed."""
    with pytest.raises(SystemExit, match="2"):
        aligned(tmp_path, MANIFEST, "--resource", name)
    said = capsys.readouterr().err
    assert f"{name!r} must look like nvidia.com/cta-group" in said
    assert said.count("\n") == 1
