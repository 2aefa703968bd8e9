"""What the cluster harness decides and builds without any cluster."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from cluster_harness.control_plane_spec import ControlPlaneOptions
from cluster_harness.errors import BuildError, DeadlineError
from cluster_harness.go_build import MODULES, GoModule, ensure_module
from cluster_harness.images import write_archive
from cluster_harness.node_plan import NodePlan
from cluster_harness.waiting import wait_for

# Stands in for the Go command: notes that it was called, and writes what it was told to build.
FAKE_GO = """\
#!/bin/sh
echo "$6" >> "$CALLS"
[ -z "$REFUSES" ] || { echo "$REFUSES" >&2; exit 1; }
echo built > "$5"
"""
BUILD = """
import sys
from cluster_harness.go_build import GoModule, ensure_module
print(ensure_module(GoModule(sys.argv[1], ("example.com/cmd/one", "example.com/cmd/two"))))
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GoModule:
    """Return a module of two commands; Go and the cache are those of the test."""
    source, bin_folder = tmp_path / "module", tmp_path / "bin"
    source.mkdir()
    bin_folder.mkdir()
    (source / "go.mod").write_text("module example.com\n")
    (source / "go.sum").write_text("")
    (bin_folder / "go").write_text(FAKE_GO)
    (bin_folder / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_folder}:/usr/bin:/bin")
    monkeypatch.setenv("CTA_GROUP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.delenv("REFUSES", raising=False)
    return GoModule(str(source), ("example.com/cmd/one", "example.com/cmd/two"))


def calls(folder: Path) -> list[str]:
    """Return the packages that Go was told to build."""
    return (folder / "calls").read_text().splitlines()


def test_two_processes_build_a_module_once(module: GoModule, tmp_path: Path) -> None:
    """The second process waits for the first and takes what it built."""
    argv = [sys.executable, "-c", BUILD, module.name]
    environment = os.environ | {"PYTHONPATH": str(MODULES.parent)}
    racing = [subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    folders = {Path(process.communicate(timeout=60)[0].strip()) for process in racing}
    assert calls(tmp_path) == ["example.com/cmd/one", "example.com/cmd/two"]
    assert [sorted(path.name for path in folder.iterdir()) for folder in folders] == [["one", "two"]]


def test_another_go_sum_means_another_build(module: GoModule, tmp_path: Path) -> None:
    """Binaries are never those of an earlier version of the sources."""
    before = ensure_module(module)
    Path(module.name, "go.sum").write_text("example.com/other v1.0.0 h1:\n")
    assert ensure_module(module) != before
    assert len(calls(tmp_path)) == 4


def test_a_failed_build_is_told_in_the_compilers_words_and_tried_again(
    module: GoModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A half built folder is never taken for a whole one."""
    monkeypatch.setenv("REFUSES", "undefined: x")
    with pytest.raises(BuildError, match=r"(?s)one: .*undefined: x"):
        ensure_module(module)
    monkeypatch.delenv("REFUSES")
    assert (ensure_module(module) / "two").exists()


@pytest.mark.parametrize("says", ["go.mod requires go >= 1.26.0 (running go 1.19)", "unknown directive: tool"])
def test_a_go_that_is_too_old_is_named_as_the_reason(
    module: GoModule, monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    """The reader is told what to install, not only what the old compiler stumbled over."""
    monkeypatch.setenv("REFUSES", says)
    with pytest.raises(BuildError, match=r"(?s)too old.*Go 1\.26"):
        ensure_module(module)


def test_no_go_at_all_is_told_as_such(module: GoModule, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without Go the message names what is built and what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match=r"one: Go is needed .* install Go 1\.26"):
        ensure_module(module)


def test_the_same_folder_gives_the_same_archive(tmp_path: Path) -> None:
    """An archive depends on names, modes and content only, and names its image for containerd."""
    archives: list[Path] = []
    for copy in ("first", "second"):
        root = tmp_path / copy
        (root / "bin").mkdir(parents=True)
        (root / "bin/tool").write_text("content")
        (root / "bin/alias").symlink_to("tool")
        os.utime(root / "bin/tool", (len(archives), len(archives)))
        archives.append(write_archive(root, "localhost/tool:1", tmp_path / f"{copy}.tar", {"Cmd": ["tool"]}))
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with tarfile.open(archives[0]) as tar:
        index = tar.extractfile("index.json")
        assert index is not None
        manifest = json.load(index)["manifests"][0]
    assert manifest["annotations"] == {"io.containerd.image.name": "localhost/tool:1"}


def test_feature_gates_reach_each_component_and_extra_flags_their_own() -> None:
    """Gates are written as Kubernetes reads them; a flag goes to the component it is for, after the gates."""
    options = ControlPlaneOptions({"A": True, "B": False}, {"kube-scheduler": ("--v=2",)})
    assert options.flags_of("kube-scheduler") == ("--feature-gates=A=true,B=false", "--v=2")
    assert options.flags_of("kube-apiserver") == ("--feature-gates=A=true,B=false",)
    assert ControlPlaneOptions().flags_of("kube-apiserver") == ()


def test_a_kubelet_folder_on_the_machine_itself_is_refused() -> None:
    """A folder that the node does not have to itself would appear on the machine, so it is refused in words."""
    with pytest.raises(ValueError, match=r"'/srv/kubelet' must lie below one of /etc, /opt, /var"):
        NodePlan(kubelet_root="/srv/kubelet")


def test_a_missed_deadline_says_what_was_last_seen() -> None:
    """Whoever reads the failure knows how far it had come."""
    with pytest.raises(DeadlineError, match=r"three pods: not within 0 s, last seen \[\]"):
        wait_for(list, "three pods", timeout_seconds=0)
