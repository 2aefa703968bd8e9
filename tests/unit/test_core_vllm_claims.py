"""An annotation about changed arguments is believed where the arguments say the same, and nowhere else."""

import json

import pytest

from cta_group_core.vllm.claims import believed, claims_of
from cta_group_core.vllm.detect import ContainerFacts
from cta_group_core.vllm.surroundings import Surroundings

FLAG = "--gpu-memory-utilization"
SERVER = ContainerFacts("vllm", "vllm/vllm-openai:v0.27.1", args=("--model=m", FLAG, "0.2274", "--max-num-seqs=64"))


def claim(flag: str = FLAG, to: object = "0.2274") -> dict[str, object]:
    """Return one change."""
    return {"flag": flag, "from": None, "to": to, "why": "fits"}


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ([claim()], [FLAG]),
        ([claim(), claim("--max-num-seqs", "64")], [FLAG, "--max-num-seqs"]),
        ([claim(to="0.5")], []),
        ([claim(), claim("--max-num-seqs", "1")], []),
        ([claim("--enforce-eager", "true")], []),
        ([claim(to=0.2274)], []),
        ([{"flag": FLAG, "to": "0.2274"}], []),
        ([["a", "list"]], []),
        ({"flag": FLAG}, []),
        (7, []),
        ([], []),
        (None, []),
    ],
)
def test_claims_are_held_against_the_arguments(text: object, flags: list[str]) -> None:
    """All changes must be there as they are told; anything else is no claim at all."""
    sidecar = ContainerFacts("sidecar", "busybox", args=("sleep",))
    assert [one.flag for one in believed(json.dumps(text), [sidecar, SERVER])] == flags


@pytest.mark.parametrize("text", ["", "free text", "[" * 100_000])
def test_what_is_no_json_claims_nothing(text: str) -> None:
    """Whatever somebody writes there."""
    assert claims_of(text) == ()


def test_arguments_of_a_variable_count() -> None:
    """KServe's runtimes take what admission added from a variable."""
    runs = ContainerFacts(
        "main",
        "vllm/vllm-openai:v0.27.1",
        command=("/bin/sh", "-c"),
        args=("exec vllm serve m ${VLLM_ADDITIONAL_ARGS}",),
        surroundings=Surroundings({"VLLM_ADDITIONAL_ARGS": f"{FLAG}=0.2274"}),
    )
    text = json.dumps([claim()])
    assert len(believed(text, [runs])) == 1
    assert believed(text, [ContainerFacts("main", runs.image, runs.command, runs.args)]) == ()
