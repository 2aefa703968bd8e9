"""What is planned for a slice is accepted by vLLM's own parser, and starts the stand-in where it is."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from cluster_harness.vllm_sources import RELEASES, Release
from cta_group_core.vllm.align import align
from cta_group_core.vllm.arguments import read_arguments
from cta_group_core.vllm.memory import SliceMemory
from cta_group_core.vllm.plan import Server as Planned
from stand_in_process import Daemon, Server
from vllm_parsing import answers_of

TOTAL_MIB = 143155
LIMITS = {8: 8947, 16: 17894, 32: 35788, 64: 71577}
"""Slices of an H200 in which real servers were seen to start."""


def planned(words: list[str], groups: int, version: str) -> list[str]:
    """Return the words with what is set for the slice."""
    share = SliceMemory(groups, LIMITS[groups], TOTAL_MIB, "NVIDIA H200")
    return list(align([], words, Planned(read_arguments([], words), [share], version)).args)


@pytest.fixture
def running() -> Iterator[ExitStack]:
    """End what was started."""
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize(
    "words", [[], ["--enforce-eager"], ["--gpu-memory-utilization=0.95"]], ids=["plain", "eager", "much"]
)
@pytest.mark.parametrize("groups", sorted(LIMITS))
def test_the_stand_in_starts_with_what_is_planned(
    running: ExitStack, tmp_path: Path, groups: int, words: list[str]
) -> None:
    """In each slice that was measured; with its own words it ends as vLLM does."""
    environment = {
        "CTA_GROUP_COUNT": str(groups),
        "CTA_GROUP_CAPACITY": "128",
        "CTA_GROUP_MEMORY_MIB": str(LIMITS[groups]),
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"0={LIMITS[groups]}M",
    }
    total = f"--stand-in-gpu-total-mib={TOTAL_MIB}"

    def started(name: str, line: list[str], around: Mapping[str, str]) -> Server:
        daemon = Daemon(tmp_path / name, {"sm_percent": 25, "memory_mib": None})
        running.callback(daemon.die)
        pipe = {"CUDA_MPS_PIPE_DIRECTORY": str(daemon.folder)}
        server = Server(["serve", "--port=0", total, *line], {**around, **pipe}, daemon)
        running.callback(server.close)
        return server

    assert started("as-planned", planned(["m", *words], groups, "0.25.0"), environment).get("/health") == (200, "")
    unplanned = started("as-given", ["m", *words], environment)
    assert "is less than desired GPU memory utilization" in unplanned.ended(1)


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)
def test_vllm_accepts_what_is_planned(release: Release) -> None:
    """Every flag exists in the release, and has the value that was meant."""
    lines = [planned(["m"], groups, release.version) for groups in sorted(LIMITS)]
    lines += [planned(["--", "m"], 32, release.version), planned(["m", "--gpu-mem=0.9"], 8, release.version)]
    for line, read in zip(lines, answers_of(release, lines), strict=True):
        assert "refused" not in read, read
        ours = read_arguments(["vllm", "serve"], line)
        share = ours.utilization().given
        assert share is not None
        assert read["gpu_memory_utilization"] == float(share.text or "")
        assert (read["max_model_len"], read["model"]) == (-1, "m")
        assert f"--max-num-seqs={read['max_num_seqs']}" in line
        assert f"--max-num-batched-tokens={read['max_num_batched_tokens']}" in line
