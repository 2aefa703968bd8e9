"""kopf, run inside our event loop with an explicit registry."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

import kopf

_GRACE_SECONDS: Final = 5
_CONNECT_SECONDS: Final = 20
_ANSWER_SECONDS: Final = 30
"""For a whole page of a list. By itself kopf waits five minutes for one whose connection carries nothing any more."""
_PAGE_SIZE: Final = 100
"""A page is read in one step during which no thread of the process does anything else."""


def make_registry(login: Callable[[], kopf.ConnectionInfo]) -> kopf.OperatorRegistry:
    """Return a registry whose only handler says how to reach the API server: no client library is asked for it."""
    registry = kopf.OperatorRegistry()

    async def log_in(**_: Any) -> kopf.ConnectionInfo:
        return login()

    kopf.on.login(registry=registry, id="connection")(log_in)
    return registry


def make_settings(watch_seconds: int) -> kopf.OperatorSettings:
    """Return settings measured with thousands of objects: lists in pages, workers that end soon, nothing posted.

    Watches are as short as those of the other kinds, so that one whose connection is dead is not believed in for long.
    """
    settings = kopf.OperatorSettings()
    settings.watching.server_timeout = watch_seconds
    settings.watching.inactivity_timeout = watch_seconds + _GRACE_SECONDS
    settings.networking.connect_timeout = _CONNECT_SECONDS
    settings.networking.request_timeout = _ANSWER_SECONDS
    settings.watching.chunk_size = _PAGE_SIZE
    settings.queueing.idle_timeout = 0.5
    settings.scanning.disabled = True  # the kinds are there before kopf starts
    settings.posting.enabled = False
    return settings


async def run_kopf(registry: kopf.OperatorRegistry, started: Callable[[], None], *, watch_seconds: int) -> None:
    """Run until cancelled. ``started`` is called when kopf has put its own signal handlers in place.

    ``watch_seconds``: after so long the API server ends a watch.

    When it ends, kopf cancels every task that did not exist when this was called.
    """
    logging.getLogger("kopf").setLevel(logging.WARNING)
    existing = asyncio.all_tasks()
    # By itself kopf asks for the user's name, and a container's user has none.
    identity: Any = "cta-group-operator"
    tasks = await kopf.spawn_tasks(
        registry=registry, settings=make_settings(watch_seconds), clusterwide=True, standalone=True, identity=identity
    )
    started()
    await kopf.run_tasks(tasks, ignored=existing)
