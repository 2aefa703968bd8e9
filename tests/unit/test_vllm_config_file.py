"""The file that `--config` names, and the model among vLLM's arguments."""

import pytest

from cta_group_core.vllm.arguments import Arguments, read_arguments
from cta_group_core.vllm.flags import Flag
from cta_group_core.vllm.surroundings import Surroundings

CONTENT = {
    "model": "from-file",
    "gpu_memory_utilization": 0.9,
    "max-num-seqs": 64,
    "enforce-eager": True,
    "enable-prefix-caching": False,
    "served-model-name": ["a", "b"],
    "compilation-config": {"level": 3},
    "lora-modules": [],
}


def read(*words: str, content: dict[str, object] | None = None) -> Arguments:
    """Read `vllm serve WORDS` beside a file /c.yaml."""
    configs = {"/c.yaml": CONTENT if content is None else content}
    return read_arguments(["vllm", "serve"], words, Surroundings(configs=configs))


@pytest.mark.parametrize("words", [("m", "--config", "/c.yaml"), ("--config", "/c.yaml")])
def test_two_words_read_the_file(words: tuple[str, ...]) -> None:
    """With dashes or underscores in its keys, lists, and switches; the model of the command line goes first."""
    found = read(*words)
    assert found.utilization().value is not None
    assert found.whole_number(Flag.MAX_NUM_SEQS).value == 64
    assert found.switch(Flag.ENFORCE_EAGER)
    assert found.model == ("m" if words[0] == "m" else "from-file")
    assert (found.problems, found.hidden) == ((), ())


def test_the_command_line_wins_wherever_it_stands() -> None:
    """The file's flags are put before all others."""
    found = read("m", "--gpu-memory-utilization=0.2", "--config", "/c.yaml", "--max-num-seqs", "8")
    assert str(found.utilization().value) == "0.2"
    assert found.whole_number(Flag.MAX_NUM_SEQS).value == 8


def test_one_word_reads_no_file() -> None:
    """`--config=FILE` is accepted by vLLM, and the file is ignored."""
    found = read("m", "--config=/c.yaml")
    assert found.utilization().given is None
    assert ["ignores the file" in str(problem) for problem in found.problems] == [True]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("m", "--config"), "needs a value"),
        (("m", "--config", "/c.json"), ".yaml or .yml only"),
        (("m", "--config", "/c.yaml", "--config", "/c.yaml"), "one config file"),
        (("--compilation-config.level=3", "--", "m"), "together with --"),
    ],
)
def test_files_that_vllm_refuses_are_reported(words: tuple[str, ...], said: str) -> None:
    """As problems that end every vLLM."""
    found = [one for one in read(*words).problems if said in str(one)]
    assert [one.rejected for one in found] == [True]


def test_a_file_without_a_model_leaves_it_to_the_first_word() -> None:
    """Refused when the model stands later or nowhere, also though argparse would find it."""
    for words, refused in ((["m"], False), ([], True), (["--port", "1", "m"], True), (["--model", "m"], False)):
        found = read(*words, "--config", "/c.yaml", content={"port": 1})
        assert any(one.rejected for one in found.problems) is refused


def test_a_file_that_is_not_at_hand_is_named() -> None:
    """It may hold any flag."""
    assert read("m", "--config", "/other.yaml").hidden == ("--config /other.yaml",)


@pytest.mark.parametrize(
    ("words", "model", "refused"),
    [
        (("--model", "a", "--model", "b"), "a", False),
        (("--port", "1", "--model=a"), "a", False),
        (("b", "--model", "a"), "b", True),
        (("--served-model-name", "n", "--model", "a"), "a", False),
        (("--port", "1", "--served_model_name=n"), None, True),
        (("a", "--served-model-name", "n"), "a", False),
    ],
)
def test_the_model_of_vllm_serve(words: tuple[str, ...], model: str | None, refused: bool) -> None:  # noqa: FBT001
    """The first `--model` is moved to the front; two models, or a served name before any model, are refused."""
    found = read(*words)
    assert (found.model, any(one.rejected for one in found.problems)) == (model, refused)


def test_the_older_server_takes_the_last_model() -> None:
    """`python -m vllm.entrypoints.openai.api_server` does what argparse does."""
    words = ["python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "a", "--model", "b"]
    assert read_arguments(words, None).model == "b"
