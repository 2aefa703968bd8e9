"""Parallel vLLM servers need whole GPUs."""

import re

import pytest

from cta_group_core.vllm.arguments import read_arguments
from cta_group_core.vllm.parallel import parallel_objection, ranks_of


def objection(groups: int, *words: str) -> str | None:
    """Return what is wrong with these arguments on GPUs of 128 groups."""
    return parallel_objection(ranks_of(read_arguments(["vllm", "serve", "m", *words], None)), groups, 128)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (32, []),
        (32, ["-tp", "1", "-pp=1"]),
        (128, ["-tp=1"]),
        (256, ["-tp=2"]),
        (512, ["-tp=2", "--pipeline-parallel-size", "2"]),
        (32, ["-dp=8", "--data-parallel-size-local=1"]),
        (32, ["-dp=8", "--data-parallel-rank", "3"]),
        (32, ["-tp=$(TP)"]),
    ],
)
def test_as_many_ranks_as_gpus_are_fine(groups: int, words: list[str]) -> None:
    """One rank in a slice, one rank a whole GPU, and engines of a group that spans pods."""
    assert objection(groups, *words) is None


@pytest.mark.parametrize(
    ("groups", "words", "said"),
    [
        (32, ["-tp", "2"], "tensor parallel size 2.*only one rank runs.*2 whole GPUs \\(256 groups\\)"),
        (64, ["-pp=2", "-tp=2"], "tensor parallel size 2, pipeline parallel size 2.*512 groups"),
        (32, ["-dp=2"], "data parallel size 2"),
        (128, ["-tp=2"], "needs 2 GPUs, and 128 groups are 1: ask for 256"),
        (256, ["-tp=2", "-dp=2"], "needs 4 GPUs, and 256 groups are 2: ask for 512"),
    ],
)
def test_more_ranks_than_gpus_are_refused_with_what_to_ask_for(groups: int, words: list[str], said: str) -> None:
    """The sentence has the sizes asked, and the request that would do."""
    assert re.search(said, objection(groups, *words) or "")


@pytest.mark.parametrize("words", [["-n", "2", "-r", "1"], ["-n2"], ["--nnodes=2"], ["--nnodes=$(SIZE)"]])
def test_servers_of_several_nodes_are_known_by_short_flags_too(words: list[str]) -> None:
    """Their ranks are spread over pods."""
    assert objection(1024, "-tp=16", *words) is None
    assert all("needs 16 GPUs" in (objection(1024, "-tp=16", *one) or "") for one in ([], ["-n1"], ["--nnodes", "1"]))
