"""Arguments as they are written by mistake, in short, for older releases, and for work without a server."""

import pytest

from cta_group_core.vllm.arguments import read_arguments

SERVE = ["vllm", "serve", "Qwen/Qwen3-4B"]


def test_flags_are_told_by_their_long_names() -> None:
    """Whoever looks for a flag finds it, however short it was written, with a key or with its value attached."""
    words = ["-q", "fp8", "-n2", "-r=1", "-ep", "-sc.method", "ngram", "--speculative_conf.x=1", "-cc", "{}", "-O3"]
    read = {one.name: one.values for one in read_arguments(["vllm", "serve", "m"], words).others}
    assert read == {
        "--quantization": ("fp8",),
        "--nnodes": ("2",),
        "--node-rank": ("1",),
        "--enable-expert-parallel": (),
        "--speculative-config.method": ("ngram",),
        "--speculative-config.x": ("1",),
        "--compilation-config": ("{}",),
    }


@pytest.mark.parametrize(
    ("command", "readable"),
    [
        (["vllm", "run-batch", "-i", "in.jsonl", "-o", "out.jsonl"], True),
        (["python3", "-m", "vllm.entrypoints.openai.run_batch", "--input-file=x"], True),
        (["vllm", "bench", "throughput", "--n", "1", "--profile", "--input-len", "512"], True),
        (["vllm", "bench", "latency", "--batch-size", "8"], True),
        (["vllm", "bench", "serve", "--base-url", "http://x"], False),
    ],
)
def test_work_without_a_server_is_read_and_its_own_flags_are_not_looked_at(
    command: list[str],
    readable: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """It loads the model as a server does, and takes the engine's flags."""
    found = read_arguments(command, ["--model", "m", "--gpu-memory-utilization=0.5"])
    assert (found.line.readable, found.problems) == (readable, ())
    assert (found.model, str(found.utilization().value)) == (("m", "0.5") if readable else (None, "None"))


@pytest.mark.parametrize(
    ("words", "enabled"),
    [
        (["--enable-chunked-prefill=False"], False),
        (["--enable_chunked_prefill", "true"], True),
        (["--enable-chunked-prefill", "False", "--port=1"], False),
    ],
)
def test_a_switch_with_a_truth_value_is_not_called_refused(words: list[str], enabled: bool) -> None:  # noqa: FBT001
    """Older releases took one, so nobody can say that every vLLM ends; the model stays the model."""
    found = read_arguments([*SERVE, *words], None)
    assert [(one.name, one.enabled) for one in found.others] == [("--enable-chunked-prefill", enabled)]
    assert [one.rejected for one in found.problems] == [False]
    assert found.model == "Qwen/Qwen3-4B"


def test_a_model_of_several_words_is_told() -> None:
    """Somebody wrote all arguments in one item, and vLLM looks for a model of that name."""
    (problem,) = read_arguments(None, ["org/m --port 8000"]).problems
    assert "write each word as an item of its own" in str(problem)
    assert not problem.rejected


def test_words_behind_a_text_that_does_not_use_them_are_told() -> None:
    """`sh -c "vllm serve" m`: the shell gives them to nobody."""
    found = read_arguments(["sh", "-c"], ["vllm serve", "m", "--port=1"])
    assert "its parameters, which it does not use" in found.line.reason
    assert (found.model, found.line.args_end) == (None, None)
