"""Settings that fit a slice, beside the share of memory: sequences, tokens, context, a KV cache of a given size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.errors import SliceTooSmall
from cta_group_core.vllm.align import Alignment, align
from cta_group_core.vllm.arguments import read_arguments
from cta_group_core.vllm.flags import Flag
from cta_group_core.vllm.memory import SliceMemory
from cta_group_core.vllm.model_size import ModelSize
from cta_group_core.vllm.plan import Server
from cta_group_core.vllm.releases import fits_length_itself, release_of
from cta_group_core.vllm.values import Utilization

H200 = {8: 8947, 16: 17894, 32: 35788, 64: 71577}
"""Memory limits of slices of an H200, in MiB, as they were when real servers started in them."""
STARTED = {8: "0.0505", 16: "0.105", 32: "0.23", 64: "0.48"}
EVERY_RELEASE = {"--gpu-memory-utilization", "--max-num-seqs", "--max-num-batched-tokens", "--max-model-len"}
SMALL = ModelSize(weights_mib=1147, layers=28, known="measured", exact=True, kv_bytes_per_token=114688)


def slice_of(groups: int, product: str = "NVIDIA H200") -> SliceMemory:
    """Return a slice of an H200."""
    return SliceMemory(groups, H200[groups], 143155, product)


def planned(*words: str, groups: int = 32, version: str | None = "0.25.0", size: ModelSize | None = None) -> Alignment:
    """Align `vllm serve m WORDS` for a slice."""
    args = ["m", *words]
    return align([], args, Server(read_arguments([], args), [slice_of(groups)], version, size))


def values(result: Alignment) -> dict[str, str]:
    """Return what is set."""
    return {edit.flag.removeprefix("--"): edit.after for edit in result.edits}


@pytest.mark.parametrize(
    ("groups", "sequences", "tokens"),
    [(8, "64", "2048"), (16, "128", "2048"), (32, "256", "2048"), (64, "512", "4096")],
)
def test_what_vllm_takes_from_the_card_is_scaled_to_the_slice(groups: int, sequences: str, tokens: str) -> None:
    """1024 sequences and 8192 tokens on a whole H200; and never a share above one that was seen to start."""
    found = values(planned(groups=groups))
    assert (found["max-num-seqs"], found["max-num-batched-tokens"], found["max-model-len"]) == (
        sequences,
        tokens,
        "auto",
    )
    assert Utilization.parse(found["gpu-memory-utilization"]) <= Utilization.parse(STARTED[groups])


@pytest.mark.parametrize(
    "words",
    [
        ["--max-num-seqs=512", "--max-num-batched-tokens=16384", "--max-model-len=4096"],
        ["--max-num-seqs=$(N)", "--max-num-batched-tokens=$(N)", "--max-model-len=$(N)"],
    ],
)
def test_what_the_user_gives_is_not_touched(words: list[str]) -> None:
    """Larger or smaller than the slice's part, known or not."""
    assert set(values(planned(*words))) == {"gpu-memory-utilization"}


@pytest.mark.parametrize("value", ["0.05", "0.2275"])
def test_who_gives_a_share_that_fits_keeps_everything(value: str) -> None:
    """Nothing is added to it."""
    assert planned(f"--gpu-memory-utilization={value}").edits == ()


def test_fewer_sequences_can_be_all_that_a_share_needs() -> None:
    """A share that fits a small slice only with a smaller warm-up is left, and the sequences are set."""
    smallest = SliceMemory(8, 4999, 81008, "NVIDIA H100 80GB HBM3")
    args = ["m", "--gpu-memory-utilization=0.029"]
    result = align([], args, Server(read_arguments([], args), [smallest]))
    assert values(result) == {"max-num-seqs": "64"}


@pytest.mark.parametrize(
    "word",
    [
        "--no-enable-chunked-prefill",
        "--runner=pooling",
        "--task=embed",
        "--convert=embed",
        "--disable-chunked-mm-input",
        '--speculative-config={"model": "x"}',
        "-sc.method=ngram",
        "--speculative-model=x",
    ],
)
def test_tokens_are_left_where_fewer_could_keep_it_from_starting(word: str) -> None:
    """Such servers may need a whole prompt in one step."""
    assert "max-num-batched-tokens" not in values(planned(word))


@pytest.mark.parametrize(
    ("words", "tokens"),
    [
        (["Qwen/Qwen3-4B"], "2048"),
        (["/models/llama-8b"], "2048"),
        (["/mnt/models", "--served-model-name=llama3"], "2048"),
        (["BAAI/bge-m3"], None),
        (["Qwen/Qwen3-Embedding-0.6B"], None),
        (["cross-encoder/ms-marco-MiniLM-L6-v2"], None),
        (["/mnt/models"], None),
        (["s3://models/current"], None),
        (["$(MODEL)"], None),
        (["BAAI/bge-m3", "--max-model-len=4096"], "4096"),
        (["BAAI/bge-m3", "--max-model-len=1024"], "2048"),
        (["BAAI/bge-m3", "--max-model-len=8192"], None),
        (["/mnt/models", "--max-model-len=auto"], None),
    ],
)
def test_a_model_that_may_need_whole_prompts_keeps_the_tokens_for_its_context(
    words: list[str], tokens: str | None
) -> None:
    """VLLM ends where prompts are not split and fewer tokens a step are allowed than the longest context."""
    found = align([], words, Server(read_arguments([], words), [slice_of(32)], "0.25.0"))
    assert values(found).get("max-num-batched-tokens") == tokens


@pytest.mark.parametrize(("given", "sequences"), [("128", "128"), ("300", "256"), ("$(N)", "256")])
def test_no_more_sequences_are_set_than_tokens_a_step_are_given(given: str, sequences: str) -> None:
    """VLLM refuses that; by itself it would take fewer."""
    assert values(planned(f"--max-num-batched-tokens={given}"))["max-num-seqs"] == sequences


@pytest.mark.parametrize(
    "version", [None, "0.6.6", "0.9.2", "0.10.2", "0.11.0", "0.13.0", "0.14.0", "0.25.0", "0.33.0"]
)
def test_only_flags_that_the_release_has_are_set(version: str | None) -> None:
    """The four that every release has; the automatic length and fewer tokens only where the release is known to do."""
    result = planned(version=version)
    assert {edit.flag for edit in result.edits} <= EVERY_RELEASE
    new_enough = version is not None and release_of(version) >= (0, 14, 0)  # type: ignore[operator]
    assert ("max-model-len" in values(result)) is new_enough is fits_length_itself(version)
    splits = version is not None and release_of(version) >= (0, 11, 0)  # type: ignore[operator]
    assert ("max-num-batched-tokens" in values(result)) is splits


@pytest.mark.parametrize("version", ["2025.9.1", "1.0.0"])
def test_a_number_that_no_release_has_is_not_taken_for_a_new_one(version: str) -> None:
    """Whoever tags by date or by numbers of their own may have an old release inside."""
    assert values(planned(version=version)) == values(planned(version=None))


def test_a_release_is_three_numbers() -> None:
    """Of a tag; nothing else says one."""
    assert (release_of("v0.28.0rc1"), release_of("latest"), release_of(None)) == ((0, 28, 0), None, None)


@pytest.mark.parametrize("product", ["NVIDIA A100-SXM4-80GB", "NVIDIA L40S"])
def test_ordinary_cards_have_fewer_sequences_to_begin_with(product: str) -> None:
    """VLLM takes 256 and 2048 there, whatever the memory of an A100."""
    share = SliceMemory(54, 40000, 81008 if "A100" in product else 60000, product)
    result = values(align([], ["m"], Server(read_arguments([], ["m"]), [share], "0.25.0")))
    assert int(result["max-num-seqs"]) in {128, 168}
    assert "max-num-batched-tokens" not in result


def test_a_kv_cache_that_leaves_no_room_is_lowered_when_the_model_is_known() -> None:
    """Bytes are not limited by the share: weights, profile, context and reserve have to fit beside them."""
    result = planned("--kv-cache-memory-bytes", "34G", size=SMALL)
    assert int(values(result)["kv-cache-memory-bytes"]) <= (35788 - 148 - 3072 - 1178 - 1147) * 2**20
    assert result.args[2] == values(result)["kv-cache-memory-bytes"]
    assert "kv-cache-memory-bytes" not in values(planned("--kv-cache-memory-bytes=28G", size=SMALL))
    assert "kv-cache-memory-bytes" not in values(planned("--kv-cache-memory-bytes=34G"))


def test_more_sequences_than_usual_leave_a_smaller_share() -> None:
    """2048 take twice the warm-up."""
    usual, many = (planned(f"--max-num-seqs={count}") for count in (1024, 2048))
    assert Utilization.parse(many.edits[0].after) < Utilization.parse(usual.edits[0].after)


_SHARES = ["--gpu-memory-utilization=0.9", "--gpu-mem=0.02", "--gpu_memory_utilization", "0.5"]
_OTHERS = ["--max-num-seqs=4096", "--max-num-seqs", "8", "--max-model-len=8k", "--kv-cache-memory-bytes=60G", "--", "x"]
_WORDS = st.sampled_from([*_SHARES, *_OTHERS, "--enforce-eager"])


@given(
    st.lists(_WORDS, max_size=7),
    st.sampled_from(sorted(H200)),
    st.sampled_from([None, "0.9.2", "0.25.0"]),
    st.sampled_from([None, SMALL]),
    st.sampled_from([[], ["vllm", "serve"], ["bash", "-c", 'vllm serve "$@"', "--"], ["bash", "-c", "vllm serve m"]]),
)
def test_reading_what_was_edited_gives_the_plan_and_a_second_time_changes_nothing(
    words: list[str], groups: int, version: str | None, size: ModelSize | None, command: list[str]
) -> None:
    """Whatever was written: each setting is read back, none of the user's that fits was touched, none was raised."""
    args = ["m", *words]
    before = read_arguments(command, args)
    try:
        result = align(command, args, Server(before, [slice_of(groups)], version, size))
    except SliceTooSmall:
        return
    if not result.changes:
        assert (list(result.command), list(result.args)) == (command, args)
        return
    after = read_arguments(result.command, result.args)
    for edit in result.edits:
        flag = Flag(edit.flag)
        last, old = after.last(flag), before.last(flag)
        assert last is not None
        assert last.text == edit.after
        assert (old.text if old else None) == edit.before
        if edit.before is not None:
            assert float(edit.after) < float(edit.before.replace("G", "e10"))
    untouched = [one.text for one in before.occurrences if one.flag.value not in {edit.flag for edit in result.edits}]
    assert untouched == [one.text for one in after.occurrences if one.flag.value not in {e.flag for e in result.edits}]
    again = align(result.command, result.args, Server(after, [slice_of(groups)], version, size))
    assert again.edits == ()
