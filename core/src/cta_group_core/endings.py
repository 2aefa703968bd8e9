"""A container that ends and is started again: its pod is called Running all the while, and serves nobody.

Kubernetes shows one such container in three ways by turns: terminated, waiting in CrashLoopBackOff, and running but not
ready. The words here are the same in all three, so that what is said does not change with each attempt.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """What kubelet says about one container."""

    name: str
    ready: bool = False
    waiting: str = ""
    """Why it waits; empty when it does not."""
    exit_code: int | None = None
    """Of the process that ended and was not started again yet."""
    last_exit_code: int | None = None
    """Of the process before the one that runs or is waited for."""


def words_of_ending(container: ContainerFacts) -> str:
    """Say that a container ends again and again, and where its reason is; empty for one that does not.

    A container that is ready, or that ended well, is none: an old failure of something that serves is no obstacle.
    """
    code = container.exit_code
    if code is None and not container.ready:
        code = container.last_exit_code
    if not code and container.waiting != "CrashLoopBackOff":
        return ""
    return f"{words_of_last_ending(container.name, code or 0)} --previous"


def words_of_last_ending(container: str, exit_code: int) -> str:
    """Say that a container ended and is not started again, and where its reason is."""
    return f"container {container} ended with exit code {exit_code}; its log says why: kubectl logs"
