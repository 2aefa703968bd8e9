"""Edits of vLLM's arguments that make them fit a slice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.errors import SliceTooSmall
from cta_group_core.vllm.align import Alignment, align
from cta_group_core.vllm.arguments import read_arguments
from cta_group_core.vllm.memory import SliceMemory
from cta_group_core.vllm.plan import Server
from cta_group_core.vllm.surroundings import Surroundings

QUARTER = SliceMemory(groups=32, limit_mib=35788, total_mib=143155, product="NVIDIA H200")
FITS = "0.2275"
FLAG = "--gpu-memory-utilization"
SEQUENCES = "--max-num-seqs=256"


def aligned(command: list[str], args: list[str], *shares: SliceMemory) -> Alignment:
    """Align a container for a quarter of an H200, or for other slices; the release is not known."""
    return align(command, args, Server(read_arguments(command, args), shares or (QUARTER,)))


@pytest.mark.parametrize(
    ("command", "args", "edited_command", "edited_args", "before"),
    [
        ([], ["m"], [], ["m", f"{FLAG}={FITS}", SEQUENCES], None),
        (["vllm", "serve", "m"], [], ["vllm", "serve", "m"], [f"{FLAG}={FITS}", SEQUENCES], None),
        ([], ["m", f"{FLAG}=0.9"], [], ["m", f"{FLAG}={FITS}", SEQUENCES], "0.9"),
        ([], ["m", FLAG, "0.9", "--port", "1"], [], ["m", FLAG, FITS, "--port", "1", SEQUENCES], "0.9"),
        ([], ["m", "--gpu_mem=0.9"], [], ["m", f"--gpu_mem={FITS}", SEQUENCES], "0.9"),
        (
            ["vllm", "serve", f"{FLAG}=0.9"],
            ["m"],
            ["vllm", "serve", f"{FLAG}={FITS}"],
            ["m", SEQUENCES],
            "0.9",
        ),
        ([], ["m", f"{FLAG}=0.1", f"{FLAG}=0.9"], [], ["m", f"{FLAG}=0.1", f"{FLAG}={FITS}", SEQUENCES], "0.9"),
        ([], ["--", "m"], [], [f"{FLAG}={FITS}", SEQUENCES, "--", "m"], None),
        (
            [],
            ["m", "--served-model-name", "a", "b"],
            [],
            ["m", "--served-model-name", "a", "b", f"{FLAG}={FITS}", SEQUENCES],
            None,
        ),
        (
            [],
            ["m", "--kv-cache-memory-bytes=8G"],
            [],
            ["m", "--kv-cache-memory-bytes=8G", f"{FLAG}={FITS}", SEQUENCES],
            None,
        ),
        (
            ["bash", "-c", 'vllm serve m "$@"', "--"],
            ["-tp=1"],
            ["bash", "-c", 'vllm serve m "$@"', "--"],
            ["-tp=1", f"{FLAG}={FITS}", SEQUENCES],
            None,
        ),
        (
            ["bash", "-c", 'vllm serve m --gpu-memory-utilization 0.9 "$@"', "--"],
            [],
            ["bash", "-c", 'vllm serve m --gpu-memory-utilization 0.9 "$@"', "--"],
            [f"{FLAG}={FITS}", SEQUENCES],
            "0.9",
        ),
    ],
)
def test_a_share_that_does_not_fit_is_written_where_vllm_reads_it(
    command: list[str], args: list[str], edited_command: list[str], edited_args: list[str], before: str | None
) -> None:
    """Lowered in the occurrence that wins, in the user's spelling; added when there is none; behind `$@` too."""
    result = aligned(command, args)
    assert (list(result.command), list(result.args)) == (edited_command, edited_args)
    assert [(edit.flag, edit.before, edit.after) for edit in result.edits] == [
        (FLAG, before, FITS),
        ("--max-num-seqs", None, "256"),
    ]
    assert result.changes


@pytest.mark.parametrize("value", ["0.2275", "0.2", ".2", "1e-1"])
def test_a_user_s_value_that_fits_stays(value: str) -> None:
    """A lower value is never raised, and not rewritten either."""
    result = aligned([], ["m", FLAG, value])
    assert (result.edits, result.args, result.changes) == ((), ("m", FLAG, value), False)


def test_the_reason_of_a_change_has_the_numbers() -> None:
    """A person sees what was asked, what fits and in which slice."""
    edit = aligned([], ["m", f"{FLAG}=0.9"]).edits[0]
    assert edit.as_json() == {
        "flag": FLAG,
        "from": "0.9",
        "to": FITS,
        "why": f"at most {FITS} of the whole GPU's memory starts in 32 groups of NVIDIA H200 (35788 of 143155 MiB), "
        "0.9 does not",
    }


def test_eager_mode_leaves_more() -> None:
    """Without CUDA graphs the reserve is smaller."""
    edit = aligned([], ["m", "--enforce-eager"]).edits[0]
    assert edit.after == "0.2292"


def test_the_smallest_share_over_the_kinds_of_gpu_is_taken() -> None:
    """A pod that can land on two kinds of GPU gets a value that starts on both."""
    h100 = SliceMemory(groups=32, limit_mib=19996, total_mib=81008, product="NVIDIA H100 80GB HBM3")
    edit = aligned([], ["m"], QUARTER, h100).edits[0]
    assert edit.after == "0.207"
    assert "H100" in edit.why


def test_a_slice_without_room_is_refused() -> None:
    """No arguments are invented for a slice in which vLLM cannot start."""
    with pytest.raises(SliceTooSmall):
        aligned([], ["m"], SliceMemory(groups=2, limit_mib=700, total_mib=14930))


@pytest.mark.parametrize(
    ("command", "args", "reason"),
    [
        (["sh", "-c", "vllm serve m"], [], "shell string"),
        (["bash", "-c", 'vllm serve m "$@" --gpu-memory-utilization 0.9', "--"], ["x=1"], "will not accept"),
        (["bash", "-c", 'vllm serve m "$@" --gpu-memory-utilization 0.9', "--"], [], "shell string"),
        (["bash", "-c", 'vllm serve m "$@" $MORE', "--"], [], "shell string"),
        (["bash", "start.sh"], [], "script"),
        ([], [], "image's own command"),
        ([], ["m", f"{FLAG}=$(UTIL)"], "kubelet fills it in"),
        ([], ["m", f"{FLAG}=lots"], "not a number"),
        ([], ["m", f"{FLAG} 0.9"], "will not accept"),
        ([], ["m", FLAG], "needs a value"),
    ],
)
def test_what_cannot_be_edited_gets_the_flag_to_add(command: list[str], args: list[str], reason: str) -> None:
    """Shell strings, scripts and values that are not known stay as they are; the exact flag is said."""
    result = aligned(command, args)
    assert not result.changes
    assert (list(result.command), list(result.args)) == (command, args)
    assert reason in result.not_patchable
    assert f"{FLAG}={FITS}" in result.not_patchable


def test_a_fitting_value_in_a_plain_shell_string_needs_nothing() -> None:
    """A string that can be read and is right is not reported."""
    result = aligned(["sh", "-c", f"vllm serve m {FLAG} 0.2"], [])
    assert (result.edits, result.not_patchable) == ((), "")


def test_kserve_s_variable_is_a_way_in() -> None:
    """What its script puts behind its own flags wins; it is written there where no parameter would come through."""
    command = ["bash", "-c", 'eval "exec vllm serve m --gpu-memory-utilization 0.9 ${VLLM_ADDITIONAL_ARGS}"']
    around = Surroundings({"VLLM_ADDITIONAL_ARGS": "--port 1"})
    result = align(command, [], Server(read_arguments(command, [], around), (QUARTER,)))
    assert (result.variable, list(result.command), result.args) == (f"{FLAG}={FITS} {SEQUENCES}", command, ())
    again = Surroundings({"VLLM_ADDITIONAL_ARGS": f"--port 1 {result.variable}"})
    assert align(command, [], Server(read_arguments(command, [], again), (QUARTER,))).edits == ()


def test_a_file_that_is_not_at_hand_may_fit_already() -> None:
    """A flag of ours would win over a lower value in it, so what fits is only said."""
    result = aligned([], ["m", "--config", "/etc/vllm.yaml"])
    assert not result.changes
    assert result.args == ("m", "--config", "/etc/vllm.yaml")
    told = "values from --config /etc/vllm.yaml are not seen here and may fit already; add --gpu-memory-utilization="
    assert result.not_patchable.startswith(told)
    assert "--max-num-seqs" not in result.not_patchable
    assert any("--config /etc/vllm.yaml" in warning for warning in result.warnings)


def test_a_share_beside_such_a_file_is_lowered_and_nothing_else_set() -> None:
    """The command line wins over the file, so a share that is too high there is known to be in force."""
    result = aligned([], ["m", "--config", "/etc/vllm.yaml", f"{FLAG}=0.9"])
    assert [edit.flag for edit in result.edits] == [FLAG]
    assert result.changes


_WORDS = st.sampled_from(
    [
        "m",
        FLAG,
        "--gpu_memory_utilization",
        "0.9",
        "0.1",
        f"{FLAG}=0.5",
        "--gpu-mem=.01",
        "--enforce-eager",
        "--",
        "-tp=2",
    ]
)


@given(st.lists(_WORDS, max_size=6), st.lists(_WORDS, max_size=6))
def test_aligning_twice_changes_nothing_more(rest: list[str], args: list[str]) -> None:
    """After one pass the arguments fit: the second pass finds nothing to do, and the value is never raised."""
    command = ["vllm", "serve", *rest]
    once = aligned(command, args)
    if not once.changes:
        return
    twice = aligned(list(once.command), list(once.args))
    assert twice.edits == ()
    assert (twice.command, twice.args) == (once.command, once.args)
    value = read_arguments(once.command, once.args).utilization().value
    assert str(value) == once.edits[0].after
