"""A node for sequences of events: the plugin's real parts between a model of kubelet and one of the MPS supervisor.

Whatever the plugin answers is judged at once; whatever harms a container that runs is noted.
"""

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from cta_group_core.ids import GpuUuid
from cta_group_plugin.health import is_out
from cta_group_plugin.ports import GpuFacts, Inventory
from cta_group_plugin.testing import FakeGpuSource
from cta_group_plugin.testing.kubelet_model import Container, KubeletModel, Pod, listed_containers
from model_account import ModelAccount
from model_judge import Judge
from model_plugin import KeptRecord, ModelPlugin
from model_rules import Card, Kind, by_card
from model_supervisor import Client, ModelSupervisor
from plugin_values import RESERVE_MIB, gpu

_FIRST_LIST_SECONDS = 5.0


class ModelNode:
    """One node. GPUs are named by their index in ``kinds``; one that vanishes keeps its place."""

    def __init__(self, kinds: Sequence[Kind], chance: random.Random, *, max_clients: int = 0) -> None:
        """``max_clients`` as the plugin's setting."""
        self.chance = chance
        self.facts = tuple(gpu(index, kind.profile) for index, kind in enumerate(kinds))
        self.cards: dict[str, Card] = {
            each.uuid: Card(each.uuid, each.index, _with_memory(kind, each))
            for each, kind in zip(self.facts, kinds, strict=True)
        }
        self.gone: set[GpuUuid] = set()
        self.kubelet = KubeletModel(chance)
        self.account = ModelAccount(self.kubelet)
        self.supervisor = ModelSupervisor(chance, self.clients_on)
        self.source = FakeGpuSource(self._inventory())
        self.plugin: ModelPlugin | None = None
        self.wrong: list[str] = []
        """Every answer of the plugin that breaks a rule."""
        self.refused_again: list[Pod] = []
        """Pods that failed because kubelet restarted."""
        self.max_clients = max_clients
        self._record = KeptRecord()
        self._heard = asyncio.Event()

    # ------------------------------------------------------------------ processes that come and go
    async def start_plugin(self) -> None:
        """Start the plugin and let kubelet know it."""
        self.plugin = ModelPlugin(
            self.source,
            self.account,
            self.account.record,
            self.supervisor,
            self._record,
            max_clients=self.max_clients,
        )
        await self.plugin.begin()
        await self.register()

    async def kill_plugin(self) -> None:
        """Kill the plugin; kubelet notices that its devices are gone."""
        if self.plugin:
            await self.plugin.die()
        self.plugin = None
        self.kubelet.forget_plugin()

    async def register(self) -> None:
        """Let kubelet know the plugin and hear its first list, where it has anything to offer."""
        if self.plugin is None or not self.plugin.state.view.may_register:
            return
        self.kubelet.plugin = Judge(self.plugin, self.cards, self.wrong, is_strict=not self.max_clients)
        self._heard.clear()
        self.plugin.listen(self._hear)
        with suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_LIST_SECONDS):
                await self._heard.wait()

    async def restart_kubelet(self, *, registered_after: float) -> None:
        """Restart kubelet, which admits its pods 0.9 s after it can be registered with."""
        self.kubelet.forget_plugin()
        if self.plugin:
            self.plugin.lose_kubelet()
        await asyncio.sleep(registered_after)
        await self.register()
        if registered_after < 0.9:
            await asyncio.sleep(0.9 - registered_after)
        self.admit_again()

    def admit_again(self) -> None:
        """Let kubelet admit its pods after a restart; a pod may fail for a GPU that is broken or gone only."""
        for pod in self.kubelet.refused_again():
            self.refused_again.append(pod)
            view = self.plugin.state.view if self.plugin else None
            if view and self.kubelet.plugin and not any(self._is_out(uuid) for uuid in by_card(pod.ids)):
                self.wrong.append(f"{pod.name} failed for good though none of its GPUs is broken or gone")

    async def reboot(self, *, without: set[GpuUuid]) -> None:
        """Start the node anew: no daemon and no container is left, kubelet remembers its pods."""
        await self.kill_plugin()
        for pod in self.kubelet.pods.values():
            for container in pod.containers:
                container.runs = container.has_ended = False
        self.supervisor.daemons.clear()
        self.supervisor.silent.clear()
        self.supervisor.restart()
        self._record.boots += 1
        self.show_gpus(without)
        await self.start_plugin()
        self.admit_again()

    def show_gpus(self, without: set[GpuUuid]) -> None:
        """Let the driver list all GPUs but some."""
        self.gone = without
        self.source.shown = self._inventory()

    # ------------------------------------------------------------------ containers
    def containers(self) -> Iterator[tuple[Pod, Container]]:
        """Yield every container of every active pod."""
        for pod in self.kubelet.pods.values():
            yield from ((pod, container) for container in pod.containers)

    def clients_on(self, uuid: GpuUuid) -> list[Client]:
        """Return the containers that run on a GPU."""
        return [
            self._client(pod, container, uuid)
            for pod, container in self.containers()
            if container.runs and uuid in by_card(container.ids)
        ]

    def held_on(self, uuid: str) -> int:
        """Return how many groups of a GPU are not free."""
        return sum(len(by_card(pod.ids).get(uuid, ())) for pod in self.kubelet.pods.values())

    def listed_on(self, uuid: str) -> list[int]:
        """Return the sizes of the shares of a GPU that kubelet lists."""
        listed = (by_card(container.ids) for _, container in listed_containers(iter(self.kubelet.pods.values())))
        return sorted(len(on[uuid]) for on in listed if uuid in on)

    def crash_all_on(self, uuid: GpuUuid) -> None:
        """End the clients of a GPU's daemon; kubelet starts them again."""
        for _, container in self.containers():
            if container.runs and uuid in by_card(container.ids):
                container.runs = False

    def problems(self) -> list[str]:
        """Return everything that is wrong now."""
        if self.plugin:
            self.plugin.check()
        return [*self.wrong, *self.supervisor.harm, *self._problems_of_holders()]

    def _problems_of_holders(self) -> Iterator[str]:
        pods = list(self.kubelet.pods.values())
        if sum(len(pod.ids) for pod in pods) != len(frozenset().union(*(pod.ids for pod in pods))):
            yield "a device is held by two pods"
        for uuid, card in ((GpuUuid(each), card) for each, card in self.cards.items()):
            clients = [client for client in self.clients_on(uuid) if not client.whole]
            if sum(client.memory_mib for client in clients) > card.kind.memory_mib:
                yield f"the limits on {uuid} are more than its memory"
            if self.max_clients and len(clients) > self.max_clients:
                yield f"{len(clients)} containers run on {uuid}"
            percent, memory_mib = self.supervisor.daemons.get(uuid, (0, 0))
            for client in clients:
                if percent < client.sm_percent or memory_mib < client.memory_mib:
                    yield f"{client} runs on {uuid} under a ceiling of {percent} % and {memory_mib} MiB"

    def _client(self, pod: Pod, container: Container, uuid: GpuUuid) -> Client:
        kind, groups = self.cards[uuid].kind, len(by_card(container.ids)[uuid])
        name = f"{pod.name.name}/{container.asked.name}"
        if groups == kind.capacity:
            return Client(name, 0, 0, whole=True)
        return Client(name, kind.percent(groups), kind.share_mib(groups))

    def _is_out(self, uuid: str) -> bool:
        known = self.plugin.state.view.faults.get(GpuUuid(uuid)) if self.plugin else None
        return uuid in self.gone or is_out(known)

    def _inventory(self) -> Inventory:
        return Inventory("580.95.05", "13.0", tuple(each for each in self.facts if each.uuid not in self.gone))

    def _hear(self, devices: dict[str, str]) -> None:
        self.kubelet.devices = devices
        self._heard.set()


def _with_memory(kind: Kind, facts: GpuFacts) -> Kind:
    return replace(kind, memory_mib=(facts.memory_total_mib or 0) - RESERVE_MIB)
