"""kopf, run inside our event loop with an explicit registry."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import kopf


def make_registry(login: Callable[[], kopf.ConnectionInfo]) -> kopf.OperatorRegistry:
    """Return a registry whose only handler says how to reach the API server: no client library is asked for it."""
    registry = kopf.OperatorRegistry()

    async def log_in(**_: Any) -> kopf.ConnectionInfo:
        return login()

    kopf.on.login(registry=registry, id="connection")(log_in)
    return registry


def make_settings() -> kopf.OperatorSettings:
    """Return settings measured with thousands of objects: lists in pages, workers that end soon, nothing posted."""
    settings = kopf.OperatorSettings()
    settings.watching.chunk_size = 200
    settings.queueing.idle_timeout = 0.5
    settings.scanning.disabled = True  # the kinds are there before kopf starts
    settings.posting.enabled = False
    return settings


async def run_kopf(registry: kopf.OperatorRegistry, started: Callable[[], None]) -> None:
    """Run until cancelled. ``started`` is called when kopf has put its own signal handlers in place.

    When it ends, kopf cancels every task that did not exist when this was called.
    """
    logging.getLogger("kopf").setLevel(logging.WARNING)
    existing = asyncio.all_tasks()
    # By itself kopf asks for the user's name, and a container's user has none.
    identity: Any = "cta-group-operator"
    tasks = await kopf.spawn_tasks(
        registry=registry, settings=make_settings(), clusterwide=True, standalone=True, identity=identity
    )
    started()
    await kopf.run_tasks(tasks, ignored=existing)
