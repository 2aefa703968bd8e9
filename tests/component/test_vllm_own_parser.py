"""Our reader against vLLM's own argument parser, of an older release and of the newest one.

The parser is vLLM's code out of its source distribution; `vllm_own_parser` tells how it runs without torch.
"""

from typing import Any

import pytest
import yaml

from cluster_harness.vllm_sources import RELEASES, Release
from cta_group_core.vllm.arguments import Arguments, read_arguments
from cta_group_core.vllm.flags import ARITIES, Arity, Flag
from cta_group_core.vllm.surroundings import Surroundings
from vllm_command_lines import Line, Writer
from vllm_parsing import answers_of, options_of

LINES = 800
CONFIG = {"gpu_memory_utilization": 0.4, "max-num-seqs": 32, "enforce-eager": True, "served-model-name": ["a", "b"]}
_COUNTS = {
    Flag.MAX_NUM_SEQS: "max_num_seqs",
    Flag.MAX_NUM_BATCHED_TOKENS: "max_num_batched_tokens",
    Flag.KV_CACHE_MEMORY_BYTES: "kv_cache_memory_bytes",
    Flag.TENSOR_PARALLEL_SIZE: "tensor_parallel_size",
    Flag.PIPELINE_PARALLEL_SIZE: "pipeline_parallel_size",
    Flag.DATA_PARALLEL_SIZE: "data_parallel_size",
    Flag.DATA_PARALLEL_SIZE_LOCAL: "data_parallel_size_local",
    Flag.PORT: "port",
}


@pytest.fixture(params=RELEASES, ids=lambda release: release.version, scope="module")
def compared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[Line, Arguments, dict[str, Any]]]:
    """Each line with our reading and vLLM's."""
    config = tmp_path_factory.mktemp("config") / "vllm.yaml"
    config.write_text(yaml.safe_dump(CONFIG))
    writer = Writer(seed=6, config=config)
    lines = [writer.line() for _ in range(LINES)]
    around = Surroundings(configs={str(config): CONFIG})
    ours = [read_arguments(["vllm", "serve"], line, around) for line in lines]
    return list(zip(lines, ours, answers_of(request.param, lines), strict=True))


def differences(found: Arguments, theirs: dict[str, Any]) -> dict[str, tuple[object, object]]:
    """Return what we read and what vLLM reads, where the two are not the same."""
    pairs: dict[str, tuple[object, object]] = {"model": (found.model, theirs["model"])}
    for flag, name in _COUNTS.items():
        reading = found.whole_number(flag)
        if reading.given is not None:
            pairs[name] = (reading.value, theirs[name])
        elif flag in {Flag.MAX_NUM_SEQS, Flag.MAX_NUM_BATCHED_TOKENS, Flag.KV_CACHE_MEMORY_BYTES}:
            pairs[name] = (None, theirs[name])
    share = found.utilization()
    if share.given is not None:
        pairs["gpu_memory_utilization"] = (
            share.given.text and float(share.given.text),
            theirs["gpu_memory_utilization"],
        )
    length = found.model_length()
    pairs["max_model_len"] = (-1 if length.given and length.value is None else length.value, theirs["max_model_len"])
    if found.last(Flag.ENFORCE_EAGER) is not None:
        pairs["enforce_eager"] = (found.switch(Flag.ENFORCE_EAGER), theirs["enforce_eager"])
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def test_lines_that_vllm_accepts_are_read_the_same(compared: list[tuple[Line, Arguments, dict[str, Any]]]) -> None:
    """Same model, same winning value of every flag that the project acts on.

    A line with an abbreviation that another release takes for something else may be left unread, and then says so.
    """
    accepted = [(line, found, theirs) for line, found, theirs in compared if "refused" not in theirs]
    unclear = [line for line, found, _ in accepted if found.problems]
    wrong = {
        " ".join(line): differences(found, theirs)
        for line, found, theirs in accepted
        if not any("ambiguous" in str(problem) for problem in found.problems) and differences(found, theirs)
    }
    assert wrong == {}
    assert len(accepted) > LINES / 2
    assert len(unclear) < len(accepted) / 5


def test_what_we_say_that_vllm_refuses_it_refuses(compared: list[tuple[Line, Arguments, dict[str, Any]]]) -> None:
    """A problem that is called certain is one."""
    claimed = [(line, theirs) for line, found, theirs in compared if any(one.rejected for one in found.problems)]
    assert [" ".join(line) for line, theirs in claimed if "refused" not in theirs] == []
    assert claimed


def unseen(found: Arguments) -> bool:
    """Tell whether nothing in our reading hints at a refusal."""
    reasons = [found.utilization().unreadable, found.model_length().unreadable]
    reasons += [found.whole_number(flag).unreadable for flag in _COUNTS]
    return not found.problems and not any(reasons)


def test_what_vllm_refuses_is_never_read_as_if_it_were_right(
    compared: list[tuple[Line, Arguments, dict[str, Any]]],
) -> None:
    """Every refusal has a problem or a value that cannot be read."""
    refused = [(line, found, theirs["refused"]) for line, found, theirs in compared if "refused" in theirs]
    assert {" ".join(line): why for line, found, why in refused if unseen(found)} == {}
    assert len(refused) > LINES / 20


_WORDS = {"0": Arity.SWITCH, "1": Arity.VALUE, "+": Arity.MANY, "*": Arity.MANY, "?": Arity.OPTIONAL}


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)
def test_our_table_has_every_option_of_the_release(release: Release) -> None:
    """With the number of words that follow it; without it a value would be taken for the model."""
    theirs = {spelling: _WORDS[words] for spelling, words in options_of(release).items()}
    assert {
        spelling: (ARITIES.get(spelling), arity)
        for spelling, arity in theirs.items()
        if ARITIES.get(spelling) is not arity
    } == {}
    assert len(theirs) > 300
