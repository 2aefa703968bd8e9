"""A container that ends and is started again is told in the same words in each of the states that it shows."""

import pytest

from cta_group_core.endings import ContainerFacts, words_of_ending

WORDS = "container vllm ended with exit code 1; its log says why: kubectl logs --previous"


@pytest.mark.parametrize(
    "container",
    [
        ContainerFacts("vllm", exit_code=1),
        ContainerFacts("vllm", waiting="CrashLoopBackOff", last_exit_code=1),
        ContainerFacts("vllm", last_exit_code=1),
    ],
)
def test_the_words_do_not_change_with_each_attempt(container: ContainerFacts) -> None:
    """Ended, waited for and started once more: one sentence with the code of the last end."""
    assert words_of_ending(container) == WORDS


def test_a_server_that_ends_well_again_and_again_is_none() -> None:
    """Kubelet starts it again with pauses, although it said that all is well."""
    told = words_of_ending(ContainerFacts("vllm", waiting="CrashLoopBackOff", last_exit_code=0))
    assert told.startswith("container vllm ended with exit code 0")


@pytest.mark.parametrize(
    "container",
    [
        ContainerFacts("vllm", ready=True),
        ContainerFacts("vllm"),
        ContainerFacts("vllm", ready=True, last_exit_code=1),
        ContainerFacts("init", exit_code=0),
        ContainerFacts("init", exit_code=0, last_exit_code=1),
        ContainerFacts("vllm", waiting="ContainerCreating"),
    ],
)
def test_what_serves_or_has_done_its_work_is_not_told(container: ContainerFacts) -> None:
    """A failure that is over is history."""
    assert not words_of_ending(container)
