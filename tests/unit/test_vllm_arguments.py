"""Reading vLLM's arguments in the forms that people write them."""

import pytest

from cta_group_core.vllm.arguments import read_arguments
from cta_group_core.vllm.flags import Flag
from cta_group_core.vllm.values import Utilization
from cta_group_core.vllm.words import Form

SERVE = ["vllm", "serve", "Qwen/Qwen3-4B"]


def utilization(*words: str) -> str | None:
    """Return the share that `vllm serve MODEL words...` asks for."""
    value = read_arguments([*SERVE, *words], None).utilization().value
    return None if value is None else str(value)


@pytest.mark.parametrize(
    "words",
    [
        ["--gpu-memory-utilization=0.9"],
        ["--gpu-memory-utilization", "0.90"],
        ["--gpu_memory_utilization", ".9"],
        ["--gpu_memory-utilization=9e-1"],
        ["--gpu-memory-util", "0.9"],
        ["--gpu_mem=0.9"],
        ["--device-memory-utilization", "0.9"],
        ["--gpu-memory-utilization", "0.3", "--enforce-eager", "--gpu-memory-utilization", "0.9"],
        ["--device-memory-utilization=0.3", "--gpu-memory-utilization=0.9"],
        ["--lora-modules", "a=b", "c=d", "--gpu-memory-utilization", "0.9"],
        ["--compilation-config.pass_config.fuse", "--gpu-memory-utilization=0.1", "--gpu-memory-utilization=0.9"],
    ],
)
def test_every_spelling_of_the_share_is_read_and_the_last_one_wins(words: list[str]) -> None:
    """`=`, two words, underscores, abbreviations, the alias and repetition mean what they mean to vLLM."""
    assert utilization(*words) == "0.9"


@pytest.mark.parametrize(
    ("words", "flag", "value"),
    [
        (["-tp", "2"], Flag.TENSOR_PARALLEL_SIZE, 2),
        (["-tp=2"], Flag.TENSOR_PARALLEL_SIZE, 2),
        (["--tensor-parallel", "2"], Flag.TENSOR_PARALLEL_SIZE, 2),
        (["-pp", "4"], Flag.PIPELINE_PARALLEL_SIZE, 4),
        (["--pipeline_parallel_size=4"], Flag.PIPELINE_PARALLEL_SIZE, 4),
        (["-dp", "3"], Flag.DATA_PARALLEL_SIZE, 3),
        (["--data-parallel-size", "3", "--data-parallel-size-local", "1"], Flag.DATA_PARALLEL_SIZE, 3),
        (["--max-num-seqs=64"], Flag.MAX_NUM_SEQS, 64),
        (["--max-num-batched-tokens", "8k"], Flag.MAX_NUM_BATCHED_TOKENS, 8000),
        (["--kv-cache-memory", "1G"], Flag.KV_CACHE_MEMORY_BYTES, 2**30),
        (["--port", "8001"], Flag.PORT, 8001),
    ],
)
def test_counts_are_read_with_their_short_and_human_forms(words: list[str], flag: Flag, value: int) -> None:
    """Short flags, neighbours with a longer name, and suffixes of sizes are told apart."""
    assert read_arguments([*SERVE, *words], None).whole_number(flag).value == value


@pytest.mark.parametrize(
    ("text", "value"), [("auto", None), ("-1", None), ("8192", 8192), ("8K", 8192), ("25.6k", 25600)]
)
def test_the_context_length_may_be_automatic_or_human(text: str, value: int | None) -> None:
    """`-1` is a value and no flag; `auto` is no number."""
    reading = read_arguments([*SERVE, "--max-model-len", text], None).model_length()
    assert reading.given is not None
    assert (reading.value, reading.unreadable) == (value, "")


@pytest.mark.parametrize(
    ("text", "said"),
    [("8.5K", "8.5k is decimal"), ("many", "not a whole number"), ("", "not a whole number"), ("$(LEN)", "kubelet")],
)
def test_a_value_that_cannot_be_read_is_said(text: str, said: str) -> None:
    """Nothing is guessed from a broken value or from one that only kubelet knows."""
    reading = read_arguments([*SERVE, f"--max-model-len={text}"], None).model_length()
    assert reading.value is None
    assert said in reading.unreadable


@pytest.mark.parametrize("text", ["0", "1.1", "-0.2", "nan", "inf", "half", "$(UTIL)"])
def test_a_share_that_vllm_would_refuse_is_unreadable(text: str) -> None:
    """Shares are above 0 and at most 1."""
    reading = read_arguments([*SERVE, f"--gpu-memory-utilization={text}"], None).utilization()
    assert reading.value is None
    assert reading.unreadable


def test_an_escaped_reference_is_no_reference() -> None:
    """`$$(NAME)` reaches vLLM as text."""
    reading = read_arguments([*SERVE, "--gpu-memory-utilization=$$(X)"], None).utilization()
    assert "not a number" in reading.unreadable


@pytest.mark.parametrize(
    ("command", "args", "model"),
    [
        (None, ["Qwen/Qwen3-4B", "--port=8000"], "Qwen/Qwen3-4B"),
        (None, ["--model", "Qwen/Qwen3-4B"], "Qwen/Qwen3-4B"),
        (None, ["--port", "8000", "Qwen/Qwen3-4B"], "Qwen/Qwen3-4B"),
        (None, ["--enforce-eager", "Qwen/Qwen3-4B"], "Qwen/Qwen3-4B"),
        (None, ["--served-model-name", "qwen", "small", "--model=m"], "m"),
        (None, ["serve", "m"], "m"),
        (["/opt/venv/bin/vllm", "serve"], ["m", "-q", "awq"], "m"),
        (["vllm"], ["serve", "m"], "m"),
        (["python3", "-m", "vllm.entrypoints.openai.api_server"], ["--model=m"], "m"),
        (["python3", "-m", "vllm.entrypoints.cli.main", "serve", "m"], None, "m"),
        (["tini", "--", "vllm", "serve", "m"], [], "m"),
        (["env", "A=b", "vllm", "serve"], ["m"], "m"),
        (None, ["-O3", "-n1", "m"], "m"),
        (None, ["--compilation-config.level", "3", "m"], "m"),
        (None, ["-cc.mode", "3", "-sc.method=ngram", "m"], "m"),
        (None, ["--additional-config.text=two words", "m"], "m"),
        (["vllm", "serve"], ["--port", "8000"], None),
    ],
)
def test_the_model_is_found_in_list_forms(command: list[str] | None, args: list[str] | None, model: str | None) -> None:
    """Positional, `--model`, below every launcher, and never a flag's value."""
    arguments = read_arguments(command, args)
    assert (arguments.form, arguments.model, arguments.problems) == (Form.LIST, model, ())


@pytest.mark.parametrize(
    ("command", "args"),
    [
        (["/bin/sh", "-c"], ["vllm serve m --gpu-memory-utilization 0.9"]),
        (["bash", "-lc", "exec vllm serve m \\\n  --gpu-memory-utilization=0.9"], None),
        (["/bin/bash", "-lc", "--"], ["vllm serve m --gpu-memory-util '0.9'"]),
        (None, ["sh", "-c", "vllm serve m --gpu_memory_utilization=0.9"]),
    ],
)
def test_one_plain_command_in_a_shell_string_is_read_but_has_no_place(
    command: list[str] | None, args: list[str] | None
) -> None:
    """Such a string is understood, so that a fitting value in it is not reported as missing."""
    arguments = read_arguments(command, args)
    assert arguments.form is Form.SHELL
    reading = arguments.utilization()
    assert reading.value == Utilization(9000)
    assert reading.given is not None
    assert reading.given.word.place is None


@pytest.mark.parametrize(
    ("command", "args", "form"),
    [
        (None, None, Form.UNKNOWN),
        ([], [], Form.UNKNOWN),
        (["python3", "app.py"], ["--port", "1"], Form.UNKNOWN),
        (["bash", "/scripts/start.sh"], None, Form.SCRIPT),
        (["bash"], None, Form.SCRIPT),
    ],
)
def test_other_commands_are_not_taken_for_vllm(command: list[str] | None, args: list[str] | None, form: Form) -> None:
    """A program, a script file or the image's own command has a reason instead of arguments."""
    arguments = read_arguments(command, args)
    assert (arguments.form, arguments.line.readable) == (form, False)
    assert arguments.line.reason


@pytest.mark.parametrize(
    ("words", "said", "rejected"),
    [
        (["--max-model-len 8192"], "one word with a space", True),
        (["--enforce-eager=true"], "takes no value", True),
        (["--port"], "needs a value", True),
        (["--port", "--enforce-eager"], "needs a value", True),
        (["other"], "one model", True),
        (["--max-num", "3"], "ambiguous", False),
        (["--disable-bandwidth-scheduler"], "no release", False),
        (["-tp2"], "no release", False),
        (["--config=file.yaml"], "ignores the file", False),
    ],
)
def test_what_vllm_would_refuse_or_nobody_knows_is_reported(
    words: list[str],
    said: str,
    rejected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """A problem names the word, and tells a certain refusal from a flag of some other release."""
    problems = [one for one in read_arguments([*SERVE, *words], None).problems if said in str(one)]
    assert [one.rejected for one in problems] == [rejected]


def test_the_value_of_an_unknown_flag_is_not_taken_for_the_model() -> None:
    """A flag of a newer release may have a value."""
    assert read_arguments(["vllm", "serve"], ["--brand-new", "x", "m"]).model == "m"


def test_sources_that_cannot_be_seen_are_named() -> None:
    """A config file and a word that kubelet fills in may hold more flags."""
    arguments = read_arguments(["vllm", "serve", "m", "--config", "/c.yaml", "$(EXTRA)"], None)
    assert arguments.hidden == ("--config /c.yaml", "$(EXTRA)")
    assert arguments.problems == ()


def test_eager_mode_can_be_switched_on_and_off() -> None:
    """`--no-enforce-eager` after `--enforce-eager` wins."""
    on = read_arguments([*SERVE, "--enforce-eager"], None)
    off = read_arguments([*SERVE, "--enforce-eager", "--no-enforce-eager"], None)
    assert (on.switch(Flag.ENFORCE_EAGER), off.switch(Flag.ENFORCE_EAGER)) == (True, False)


def test_words_after_a_bare_double_dash_are_no_flags() -> None:
    """The parser ends its options there."""
    arguments = read_arguments(["vllm", "serve"], ["--", "m"])
    assert arguments.model == "m"
    assert arguments.end_of_options is not None
