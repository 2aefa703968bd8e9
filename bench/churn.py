"""Pods that come and go in a large cluster: made as people make them, bound by the scheduler, started by KWOK."""

import asyncio
import json
import random
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from cta_group_operator.errors import ApiError
from operator_cluster import Cluster, pod_spec

SPACE = "churn"
SIZES = (8, 8, 16, 16, 32, 64)
_STOPS_WAITING_SECONDS = 60.0
_LIFE_SECONDS = 15.0


@dataclass
class Churn:
    """Makes pods at a rate, and deletes each some time after it was made."""

    cluster: Cluster
    chance: random.Random
    made: dict[str, float] = field(default_factory=dict)
    """When each pod was asked for, in seconds of the monotonic clock."""
    bound: dict[str, float] = field(default_factory=dict)
    """When each pod was seen to be bound."""
    ungated: set[str] = field(default_factory=set)
    """Pods that came in without a gate."""

    @property
    def path(self) -> str:
        """Where its pods are."""
        return f"/api/v1/namespaces/{SPACE}/pods"

    async def run(self, per_second: float, seconds: float) -> None:
        """Make pods for so long, and wait until the last of them is bound."""
        watching = asyncio.create_task(self._watch())
        try:
            async with asyncio.TaskGroup() as group:
                due = time.monotonic()
                for number in range(int(per_second * seconds)):
                    group.create_task(self._live(f"pod-{number:05}"))
                    due += 1 / per_second
                    await asyncio.sleep(max(0.0, due - time.monotonic()))
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    def bound_seconds(self) -> list[float]:
        """Return from asking until bound, for each pod that was."""
        return [at - self.made[name] for name, at in self.bound.items() if name in self.made]

    async def _live(self, name: str) -> None:
        """Make a pod, wait until it is bound, let it live, and delete it."""
        self.made[name] = time.monotonic()
        body = {"metadata": {"name": name}, "spec": pod_spec(self.chance.choice(SIZES))}
        made = await self.cluster.client.create(self.path, body)
        if not made["spec"].get("schedulingGates"):
            self.ungated.add(name)
        deadline = self.made[name] + _STOPS_WAITING_SECONDS
        while name not in self.bound and time.monotonic() < deadline:  # noqa: ASYNC110 - one of thousands
            await asyncio.sleep(0.5)
        await asyncio.sleep(_LIFE_SECONDS)
        await self.cluster.client.delete(f"{self.path}/{name}")
        if (node := self.cluster.remove(SPACE, name)) is not None:
            await self.cluster.publish(node)

    async def _watch(self) -> None:
        """See pods being bound, and tell their groups in the CTANode of their node."""
        found = await self.cluster.client.get(self.path)
        version = found["metadata"]["resourceVersion"]
        async with asyncio.TaskGroup() as group:
            while True:
                try:
                    async with aclosing(self._events(version)) as events:
                        async for event in events:
                            version = event["object"]["metadata"]["resourceVersion"]
                            self._take(event["object"], group)
                except ApiError:
                    await asyncio.sleep(0.2)

    def _take(self, pod: Mapping[str, Any], group: asyncio.TaskGroup) -> None:
        name = pod["metadata"]["name"]
        if pod["spec"].get("nodeName") and name not in self.bound:
            self.bound[name] = time.monotonic()
            group.create_task(self.cluster.publish(self.cluster.admit(pod)))

    async def _events(self, version: str) -> AsyncGenerator[dict[str, Any], None]:
        query = {"watch": "true", "resourceVersion": version}
        stream = self.cluster.client.stream("GET", self.path, query, read_timeout_seconds=None)
        async with stream as answer:
            rest = b""
            async for chunk in answer.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield json.loads(line)
