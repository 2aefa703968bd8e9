"""The leader's work against a real API server, in this process, on a clock that a test puts forward.

What an operator's own process does beside that (kopf, the lease, admission) is left out: CTAQuotas are listed
several times a second. No other operator may lead meanwhile.
"""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from selectors import DefaultSelector
from typing import Any

from budget_world import FakeServerMetrics
from cluster_harness.waiting import wait_for
from conditions import until
from cta_group_operator.adapters.connection import load_connection
from cta_group_operator.adapters.convert_load import read_load
from cta_group_operator.adapters.followed import what_to_follow
from cta_group_operator.adapters.kube import KubeClient
from cta_group_operator.adapters.list_watch import ListWatch
from cta_group_operator.clock import SystemClock
from cta_group_operator.handlers.quotas import Quotas
from cta_group_operator.metrics import Metrics
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.reconcile.work import Work
from cta_group_operator.settings import Settings
from operator_world import READ_LIMIT, READ_POD, RESOURCE, FakeServers

_LIST_AGAIN_SECONDS = 0.2
_OWN_SOCKETS = 1  # of the event loop itself; connections are there until the API server has said goodbye too


class HurriedClock(SystemClock):
    """The system's clock, with time that passes at once."""

    def __init__(self) -> None:
        self._ahead_seconds = 0.0

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return super().monotonic() + self._ahead_seconds

    def leap(self, seconds: float) -> None:
        """Let time pass. Whoever sleeps does not wake: what is due is done with the next event."""
        self._ahead_seconds += seconds


@dataclass(frozen=True)
class HurriedOperator:
    """What a test may know of it: its clock, and what it has heard of pods."""

    clock: HurriedClock
    view: ClusterView

    def leap(self, seconds: float) -> None:
        """Let time pass, see :class:`HurriedClock`."""
        self.clock.leap(seconds)

    def wait_bound(self, namespace: str, name: str) -> None:
        """Wait until it has heard that a pod is bound, which a test may see before."""
        wait_for(lambda: self._node_of(namespace, name), f"the operator to hear that {name} is bound")

    def wait_gone(self, namespace: str, name: str) -> None:
        """Wait until it has heard that a pod is gone."""
        wait_for(lambda: self.view.pods.get(name, namespace) is None, f"the operator to hear that {name} is gone")

    def _node_of(self, namespace: str, name: str) -> str | None:
        pod = self.view.pods.get(name, namespace)
        return pod.node if pod is not None else None


@contextmanager
def hurried_operator(kubeconfig: Path) -> Iterator[HurriedOperator]:
    """Lead until the block ends; what ended it before is raised then."""
    hurried = HurriedOperator(HurriedClock(), ClusterView())
    selector, over = DefaultSelector(), asyncio.Event()
    loop = asyncio.SelectorEventLoop(selector)
    leads, ended = threading.Event(), Future[None]()

    def run() -> None:
        try:
            loop.run_until_complete(_lead(kubeconfig, hurried, leads, over))
            loop.run_until_complete(until(lambda: len(selector.get_map()) <= _OWN_SOCKETS))
            ended.set_result(None)
        except BaseException as error:  # noqa: BLE001 - the end of a thread: the test raises it
            ended.set_exception(error)
        finally:
            loop.close()

    thread = threading.Thread(target=run, name="operator")
    thread.start()
    try:
        wait_for(lambda: leads.is_set() or ended.done(), "the operator to lead")
        yield hurried
    finally:
        if not ended.done():
            loop.call_soon_threadsafe(over.set)
        thread.join()
        ended.result()


async def _lead(kubeconfig: Path, hurried: HurriedOperator, leads: threading.Event, over: asyncio.Event) -> None:
    clock, view, metrics = hurried.clock, hurried.view, Metrics("test")
    async with KubeClient(load_connection(kubeconfig)) as client:
        quotas = Quotas(view.quotas, client, clock, metrics)
        watches = [ListWatch(client, what, clock, metrics) for what in what_to_follow(view, RESOURCE)]
        work = Work(
            Settings(identity="hurried", budget_seconds=0),
            view,
            client,
            clock,
            metrics=metrics,
            read_limit=READ_LIMIT,
            read_pod=READ_POD,
            read_load=read_load,
            servers=FakeServers(),
            server_metrics=FakeServerMetrics(),
        )
        async with asyncio.TaskGroup() as group:
            tasks: list[asyncio.Task[Any]] = [group.create_task(watch.run()) for watch in watches]
            for watch in watches:
                await watch.synced.wait()
            await quotas.list_all()
            work.begin()
            tasks += [group.create_task(loop()) for loop in work.loops().values()]
            tasks.append(group.create_task(_list_often(quotas)))
            leads.set()
            await over.wait()
            for task in tasks:
                task.cancel()


async def _list_often(quotas: Quotas) -> None:
    while True:
        await asyncio.sleep(_LIST_AGAIN_SECONDS)
        await quotas.list_all()
