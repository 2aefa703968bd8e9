"""A random walk over everything that happens to a node, one seed a walk, with every step written down."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from cta_group_core.ids import GpuUuid
from cta_group_plugin.ports import GpuEvent, GpuEventKind, PodName
from cta_group_plugin.status import status_of
from cta_group_plugin.testing.kubelet_model import Asked, Container, Pod, Refused, Role
from model_node import ModelNode
from model_pods import PodMaker
from model_rules import Kind, by_card

_PODS_AT_MOST = 14
_SETTLED_SECONDS = 13.0
"""Longer than every period of the plugin, its polls of the GPUs included."""
_XIDS = (13, 31, 31, 79, 92, 92, 95, 119, 123456, 123457)
"""Application, report, suspect and fatal ones, and one that nobody knows."""

Step = Callable[[], Awaitable[None]]


class Walk:
    """One walk. After each step everything that must hold is looked at."""

    def __init__(self, seed: str, kinds: Sequence[Kind], *, max_clients: int = 0) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - a test that can be repeated
        self.node = ModelNode(kinds, self.chance, max_clients=max_clients)
        self.history: list[str] = []
        self.counts: Counter[str] = Counter()
        self._maker = PodMaker(self.chance, kinds)
        self._pods = 0
        account = 0 if max_clients else 1
        self._steps: dict[Step, int] = {
            self.admit: 30,
            self.admit_at_random: 3,
            self.go_on: 30,
            self.go_on_together: 8,
            self.crash: 6,
            self.end_pod: 16,
            self.wait: 12,
            self.settle: 3,
            self.restart_plugin: 3,
            self.restart_kubelet: 3,
            self.restart_both: 2,
            self.reboot: 2,
            self.xid: 2,
            self.silence_daemon: 2,
            self.kill_daemon: 2,
            self.hear_daemons: 3,
            self.vanish: 1,
            # While nobody tells how many share a GPU, nobody can count them.
            self.lose_account: account,
            self.lose_supervisor: 1,
        }

    async def run(self, steps: int) -> None:
        """Walk; raises AssertionError with what is wrong and the last steps that led there."""
        await self.node.start_plugin()
        for number in range(steps):
            (step,) = self.chance.choices(list(self._steps), weights=list(self._steps.values()))
            self._note(f"{number}: {step.__name__}")
            await step()
            self._assert_nothing_wrong()
        await self.settle()
        await self.node.kill_plugin()

    def _note(self, text: str) -> None:
        self.history.append(f"[{asyncio.get_running_loop().time():.2f}] {text}")
        self.counts[text.partition(": ")[2].split(" ")[0]] += 1

    def _assert_nothing_wrong(self) -> None:
        if problems := self.node.problems():
            steps = "\n  ".join(self.history[-25:])
            raise AssertionError(f"{problems[0]}\nafter\n  {steps}")

    # ------------------------------------------------------------------ pods
    async def admit(self, *, at_random: bool = False) -> None:
        """Let a pod come, most often to a node that kubelet would send it to."""
        if len(self.node.kubelet.pods) >= _PODS_AT_MOST:
            await self.end_pod()
        self._pods += 1
        name, asks = PodName("team", f"p{self._pods}"), self._maker.asks()
        self.history.append(f"      {name.name} asks {[(each.role.value, each.groups) for each in asks]}")
        try:
            pod = await self.node.kubelet.admit(name, asks, skips_preference=at_random)
        except Refused as refused:
            self.history.append(f"      refused: {refused}")
            self.counts["refused"] += 1
        else:
            self.history.append(f"      on { {uuid[-1:]: len(ids) for uuid, ids in by_card(pod.ids).items()} }")
            self.counts["admitted"] += 1

    async def admit_at_random(self) -> None:
        """Let a pod come whose devices kubelet chooses itself, as with topology."""
        await self.admit(at_random=True)

    async def go_on(self) -> None:
        """Start the next containers of one pod, or end its init container."""
        if pods := list(self.node.kubelet.pods.values()):
            await self._go_on(self.chance.choice(pods))

    async def go_on_together(self) -> None:
        """Let several pods go on at once."""
        pods = list(self.node.kubelet.pods.values())
        await asyncio.gather(*map(self._go_on, self.chance.sample(pods, min(4, len(pods)))))

    async def crash(self) -> None:
        """End a container, which starts again when its pod goes on."""
        if running := [container for _, container in self.node.containers() if container.runs]:
            self.chance.choice(running).runs = False

    async def end_pod(self) -> None:
        """End a pod; its devices are free."""
        if pods := list(self.node.kubelet.pods):
            self._forget(self.chance.choice(pods))

    # ------------------------------------------------------------------ time
    async def wait(self) -> None:
        """Let time pass, often less than any period of the plugin."""
        await asyncio.sleep(self.chance.choice((0.0, 0.05, 0.3, 1.0, 2.5, 6.0, 30.0, 90.0)))

    async def settle(self) -> None:
        """Let nothing happen but one pod that is refused, so that the plugin must know who holds what."""
        self.node.account.is_away = self.node.supervisor.is_away = False
        await asyncio.sleep(_SETTLED_SECONDS)
        if not self.node.kubelet.free() or not (plugin := self.node.plugin):
            return
        with suppress(Refused):
            await self.node.kubelet.admit(PodName("team", "probe"), [Asked("odd", 1)])
        await asyncio.sleep(_SETTLED_SECONDS)
        await self._all_that_can_start()
        status = status_of(plugin.state.view, resource_name="x", enforcement=plugin.enforcement)
        for told in status.gpus:
            held, listed = self.node.held_on(told.uuid), self.node.listed_on(told.uuid)
            allocated = sorted(each.groups for each in told.allocations)
            if told.health != "Healthy":
                continue  # kubelet does not offer its groups, and so does not say which are free
            if (told.free, allocated) != (told.capacity - held, listed):
                self.node.wrong.append(
                    f"{told.uuid}: {told.free} groups told free of {told.capacity - held}, {allocated} told "
                    f"allocated of {listed}"
                )

    # ------------------------------------------------------------------ processes
    async def restart_plugin(self) -> None:
        """Kill the plugin and start it again."""
        await self.node.kill_plugin()
        await asyncio.sleep(self.chance.choice((0.0, 0.5, 20.0)))
        await self.node.start_plugin()

    async def restart_kubelet(self) -> None:
        """Restart kubelet; the plugin registers again within its window."""
        await self.node.restart_kubelet(registered_after=self.chance.choice((0.02, 0.2)))

    async def restart_both(self) -> None:
        """Restart plugin and kubelet, in one order or the other."""
        if self.chance.random() < 0.5:
            await self.restart_plugin()
            await self.restart_kubelet()
        else:
            await self.node.kill_plugin()
            await self.node.restart_kubelet(registered_after=0.02)
            await self.node.start_plugin()

    async def reboot(self) -> None:
        """Start the node anew, now and then without one of its GPUs."""
        gone = {self._any_gpu()} if self.chance.random() < 0.3 else set()
        await self.node.reboot(without=gone)

    async def lose_account(self) -> None:
        """Stop kubelet from telling who holds what, or let it begin again."""
        self.node.account.is_away = not self.node.account.is_away

    async def lose_supervisor(self) -> None:
        """Take the supervisor away, or bring it back beside its daemons."""
        self.node.supervisor.is_away = not self.node.supervisor.is_away
        self.node.supervisor.restart()

    # ------------------------------------------------------------------ GPUs
    async def xid(self) -> None:
        """Let a GPU have an error."""
        if self.node.plugin:
            code = self.chance.choice(_XIDS)
            self.history.append(f"      XID {code}")
            self.node.plugin.happen(GpuEvent(GpuEventKind.XID, self._any_gpu(), xid=code))

    async def silence_daemon(self) -> None:
        """Silence the daemon of a GPU; its clients go on."""
        self.node.supervisor.silent.add(self._any_gpu())

    async def kill_daemon(self) -> None:
        """Kill the daemon of a GPU, and its clients with it."""
        uuid = self._any_gpu()
        if self.node.supervisor.daemons.pop(uuid, None):
            self.node.crash_all_on(uuid)

    async def hear_daemons(self) -> None:
        """Let all daemons answer."""
        self.node.supervisor.silent.clear()

    async def vanish(self) -> None:
        """Let a GPU fall off the bus, and whoever runs on it die; or bring all back."""
        gone = set() if self.node.gone else {self._any_gpu()}
        for uuid in gone:
            self.node.crash_all_on(uuid)
        self.node.show_gpus(gone)

    # ------------------------------------------------------------------ what they are made of
    async def _go_on(self, pod: Pod) -> None:
        running = [container for container in pod.containers if container.runs]
        if running and running[0].asked.role is Role.INIT and self.chance.random() < 0.5:
            running[0].runs, running[0].has_ended = False, True
            return
        for container in pod.next_to_start():
            if self._is_active(pod):
                await self._start(pod, container)

    async def _start(self, pod: Pod, container: Container) -> None:
        try:
            await self.node.kubelet.start(container)
        except Refused as refused:
            self.history.append(f"      {pod.name.name}/{container.asked.name} waits: {refused}")
            self.counts["waited"] += 1
        else:
            self.counts["started"] += 1
            if by_card(container.ids).keys() & self.node.gone:
                container.runs = False  # the runtime does not find its GPU

    async def _all_that_can_start(self) -> None:
        """Start what waits. On a GPU that is well, with a daemon that answers, nothing may be in the way."""
        faults = self.node.plugin.state.view.faults if self.node.plugin else {}
        for pod in list(self.node.kubelet.pods.values()):
            for container in pod.next_to_start():
                on = {GpuUuid(uuid) for uuid in by_card(container.ids)}
                if not on & (self.node.gone | self.node.supervisor.silent | faults.keys()):
                    await self._start(pod, container)
                    if not container.runs:
                        self.node.wrong.append(f"{pod.name.name}/{container.asked.name} waits without a reason")

    def _is_active(self, pod: Pod) -> bool:
        return self.node.kubelet.pods.get(pod.name) is pod

    def _forget(self, name: PodName) -> None:
        self.node.kubelet.pods.pop(name)
        self.history.append(f"      {name.name} ends")

    def _any_gpu(self) -> GpuUuid:
        return self.chance.choice(self.node.facts).uuid
