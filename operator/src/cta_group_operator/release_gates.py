"""The command ``cta-group-operator release-gates``: takes the gate of placement off every pod that waits, once.

A gate outlives the operator that would take it off, so whoever uninstalls the operator runs this; the chart does so by
a Job after everything else of the release is gone. It needs nothing of the project in the cluster: neither the operator
nor its kinds.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cta_group_core.names import DEFAULT_RESOURCE_NAME, GATE_PLACEMENT
from cta_group_core.plurals import counted
from cta_group_operator.adapters.connection import load_connection
from cta_group_operator.adapters.kube import KubeClient
from cta_group_operator.errors import ApiError, NotFound
from cta_group_operator.listing import items
from cta_group_operator.ports import Json, KubeApi
from cta_group_operator.resources import NODES, PODS

_UNBOUND: Final = "spec.nodeName="
"""A gated pod is never bound. No label is trusted here: whoever may edit a pod may take ours off."""
_AT_ONCE: Final = 8
_CLEAN_LOOKS: Final = 2
"""So often in a row no gate must be seen: an API server goes on asking a webhook for about a second after its end."""
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class GateSettings:
    """Everything that ``release-gates`` can be told."""

    kubeconfig: Path | None = None
    """None: the service account of the pod."""
    resource_name: str = DEFAULT_RESOURCE_NAME
    timeout_seconds: float = 45.0
    """How long it tries; pods that are gated still then are told."""
    pause_seconds: float = 2.0
    """Between two looks at all pods."""


@dataclass(frozen=True, slots=True)
class GateReport:
    """What became of the gates."""

    released: Sequence[str] = ()
    """``namespace/name`` of each pod whose gate was taken off."""
    left: Sequence[str] = ()
    """Those that are gated still."""
    problem: str = ""
    """What the API server said last when something did not work."""
    nodes: Sequence[str] = ()
    """Nodes whose kubelet goes on listing the resource."""

    @property
    def is_done(self) -> bool:
        """Whether no gate is known to be left."""
        return not self.left and not self.problem

    def words(self, resource: str) -> str:
        """Return the report for people, a line for each thing."""
        told = [f"gate {GATE_PLACEMENT}: taken off {_named(self.released)}"]
        if self.left:
            told.append(f"gated still: {_named(self.left)}")
        if self.problem:
            told.append(f"the API server said: {self.problem}")
        if self.nodes:
            told.append(
                f"kubelet goes on listing {resource}, with nothing to give out, on {_named(self.nodes, 'node')}: "
                "capacity falls to 0 five minutes after the plugin's end, and the entry stays until the Node object is "
                "made anew or patched"
            )
        return "\n".join(told)


def _named(names: Sequence[str], thing: str = "pod") -> str:
    number = counted(len(names), thing)
    more = ", ..." if len(names) > _SHOWN else ""
    return f"{number} ({', '.join(names[:_SHOWN])}{more})" if names else number


def run(settings: GateSettings) -> GateReport:
    """Release what waits in the cluster that is meant. Raises BadSetting for a kubeconfig that cannot be used."""
    return asyncio.run(_run(settings))


async def _run(settings: GateSettings) -> GateReport:
    async with KubeClient(load_connection(settings.kubeconfig)) as api:
        return await GateRelease(api, settings).run()


class GateRelease:
    """Looks at all pods again and again, until no gate is seen any more or the time is over."""

    def __init__(self, api: KubeApi, settings: GateSettings) -> None:
        self._api = api
        self._settings = settings
        self._released: list[str] = []
        self._left: list[str] = []
        self._problem = ""

    async def run(self) -> GateReport:
        """Release what waits, and what is gated meanwhile."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.timeout_seconds):
                await self._until_clean()
        nodes = await _nodes_with(self._api, self._settings.resource_name)
        return GateReport(sorted(self._released), sorted(self._left), self._problem, nodes)

    async def _until_clean(self) -> None:
        clean = 0
        while True:
            clean = clean + 1 if await self._look() else 0
            if clean == _CLEAN_LOOKS:
                return
            await asyncio.sleep(self._settings.pause_seconds)

    async def _look(self) -> bool:
        """Release every pod that is gated now; tell whether there was none.

        The time may be over in the middle: what went wrong before is forgotten only when a whole look went well.
        """
        limit = asyncio.Semaphore(_AT_ONCE)
        try:
            gated = [pod async for pod in _gated(self._api)]
        except ApiError as error:
            self._problem = str(error)
            return False
        self._left = [_name(pod) for pod in gated]
        if all(await asyncio.gather(*(self._release(pod, limit) for pod in gated))):
            self._problem = ""
        return not gated

    async def _release(self, pod: Json, limit: asyncio.Semaphore) -> bool:
        """Release one pod; return False when the API server would not."""
        name, meta = _name(pod), pod["metadata"]
        try:
            async with limit:
                await self._api.json_patch(PODS.path(meta["namespace"], meta["name"]), _patch(pod))
        except NotFound:
            self._left.remove(name)  # it is gone, and its gate with it
        except ApiError as error:  # when it only changed meanwhile, the next look finds it so and says nothing more
            self._problem = str(error)
            return False
        else:
            self._left.remove(name)
            self._released.append(name)
        return True


async def _gated(api: KubeApi) -> AsyncIterator[Json]:
    async for pod in items(api, PODS.path(), {"fieldSelector": _UNBOUND}):
        if GATE_PLACEMENT in _gates(pod) and "deletionTimestamp" not in pod["metadata"]:
            yield pod


def _name(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _gates(pod: Json) -> list[str]:
    return [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()]


def _patch(pod: Json) -> list[dict[str, Any]]:
    gate = f"/spec/schedulingGates/{_gates(pod).index(GATE_PLACEMENT)}"
    return [
        {"op": "test", "path": "/metadata/uid", "value": pod["metadata"]["uid"]},
        {"op": "test", "path": f"{gate}/name", "value": GATE_PLACEMENT},
        {"op": "remove", "path": gate},
    ]


async def _nodes_with(api: KubeApi, resource: str) -> list[str]:
    try:
        nodes = [node async for node in items(api, NODES.path())]
    except ApiError:
        return []  # the gates are what matters; this is a remark
    return sorted(node["metadata"]["name"] for node in nodes if resource in node.get("status", {}).get("capacity", {}))
