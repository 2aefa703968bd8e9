"""Quotas on a real API server hold their sums at every step, whatever people do and wherever the operator ends."""

import asyncio
import os
import random
import time
from http import HTTPStatus
from pathlib import Path

import pytest

from cluster_harness.api_client import ApiClient
from cluster_harness.errors import ApiError
from cluster_harness.waiting import PATIENCE_SECONDS
from cta_group_operator.adapters.connection import load_connection
from cta_group_operator.adapters.kube import KubeClient
from cta_group_operator.errors import Conflict
from gpu_cluster import OURS, GpuCluster
from new_namespaces import make_namespaces
from operator_fixtures import kinds, operator_kubeconfig
from quota_trial import TRIAL_LABEL, FreshOperator, Killed, MortalApi, Watcher

__all__ = ["kinds", "operator_kubeconfig"]

_STEPS, _MOST_STEPS = 24, 240
_STRICT_LOOKS = 10
"""So many at least; where chance makes quotas too small for their pods most of the time it takes more steps."""
_STEPS_TO_SETTLE = 6
_EIGHTS = (0, 16, 32, 64, 96, 128)


class Trial:
    """The people: they relabel namespaces, edit quotas, create and delete pods, all by one seed."""

    def __init__(self, api: ApiClient, client: KubeClient, chance: random.Random, suffix: str) -> None:
        self._api = api
        self._client = client
        self.chance = chance
        self.quotas = [f"q{number}-{suffix}" for number in range(4)]
        self._cohort = f"c-{suffix}"
        self.spaces = [GpuCluster(api, f"s{number}-{suffix}") for number in range(5)]
        self.watcher = Watcher(api, self.quotas)
        self._pods = 0
        self._known: FreshOperator | None = None

    def begin(self) -> None:
        """Make namespaces, quotas and controllers that want pods."""
        make_namespaces(self._api, *(space.namespace for space in self.spaces))
        for name in self.quotas:
            self._declare(name)
        for place, space in enumerate(self.spaces):
            self._relabel(space, self.quotas[place % len(self.quotas)])
            space.make_controller("ReplicaSet", "set", self.chance.choice((8, 32)), replicas=0)
        self.watcher.accept()

    def end(self) -> None:
        """Remove everything."""
        for name in self.quotas:
            self._quietly("delete", f"{OURS}/ctaquotas/{name}")
        for space in self.spaces:
            self._quietly("delete", f"/api/v1/namespaces/{space.namespace}")

    def change(self) -> None:
        """Do one thing that moves what is allowed, or who belongs to whom; what that does to the sums is accepted."""
        space, name = self.chance.choice(self.spaces), self.chance.choice(self.quotas)
        path = f"{OURS}/ctaquotas/{name}"
        match self.chance.randrange(6):
            case 0:
                self._relabel(space, self.chance.choice([*self.quotas, None]))
            case 1:
                self._quietly("patch", path, {"spec": {"groups": self.chance.choice(_EIGHTS)}})
            case 2:
                self._quietly("patch", path, {"spec": {"cohort": self._cohort, "borrowingLimit": self._limit()}})
            case 3:
                self._quietly("patch", path, {"spec": {"cohort": None, "borrowingLimit": None}})
            case 4:
                self._quietly("delete", path)
            case _:
                self._declare(name)
        self.watcher.accept()

    def use(self, space: GpuCluster | None = None) -> None:
        """Create or delete a pod, or let a controller want others; none of that may break a sum."""
        space = space or self.chance.choice(self.spaces)
        match self.chance.randrange(3):
            case 0:
                self._pods += 1
                try:
                    space.create_pod(f"pod-{self._pods}", self.chance.choice((8, 16, 32)))
                except ApiError as no:
                    if "quota" not in no.sentence:
                        raise
            case 1:
                pods = [pod["metadata"]["name"] for pod in space.pods()]
                if pods:
                    path = f"/api/v1/namespaces/{space.namespace}/pods/{self.chance.choice(pods)}"
                    self._quietly("delete", f"{path}?gracePeriodSeconds=0")
            case _:
                path = f"/apis/apps/v1/namespaces/{space.namespace}/replicasets/set"
                self._api.patch(path, {"spec": {"replicas": self.chance.randrange(4)}})
        self.watcher.look()

    async def operate(self, writes: int, *, behind: bool = False) -> list[str]:
        """Run an operator that knows nothing of the one before and ends after so many writes; return what it wrote.

        ``behind``: it believes the ResourceQuotas that the one before had seen.
        """
        stale = self._known.view if behind and self._known is not None else None
        api = MortalApi(self._client, self._before_write, self._after_write, writes)
        operator = self._known = await FreshOperator.start(self._client, api, stale)
        for key in operator.keys(self.quotas):
            self.watcher.begin()
            try:
                await operator.reconciler.reconcile(key)
            except Conflict:
                continue  # it would come again
            except Killed:
                break
        return api.writes

    async def settle(self, *, writes_of_each: int = 1000) -> None:
        """Let operators run until there is nothing left to write, and everything is as it must be."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while await self.operate(writes_of_each) or not self._is_settled():
            assert time.monotonic() < deadline, f"not settled: {self.watcher.limits()}"
            await asyncio.sleep(0.05)

    def _before_write(self, path: str) -> None:
        """Now and then have a pod come or go where the operator is about to write, so that its write is too late."""
        self.watcher.note_counts()
        if self.chance.random() < 0.3:
            self.use(self._space_of(path))

    def _after_write(self, path: str) -> None:
        """Look, and now and then use what was written before Kubernetes has taken notice of it."""
        self.watcher.look()
        if self.chance.random() < 0.5:
            self.use(self._space_of(path))

    def _space_of(self, path: str) -> GpuCluster | None:
        return next((space for space in self.spaces if f"/{space.namespace}/" in path), None)

    def _is_settled(self) -> bool:
        """Tell whether each namespace of a quota has a limit of that quota, in force, and no other has one."""
        specs, limits = self.watcher.specs(), {one.namespace: one for one in self.watcher.limits()}
        for space in self.spaces:
            labels = self._api.get(f"/api/v1/namespaces/{space.namespace}")["metadata"]["labels"]
            keeper, limit = labels.get(TRIAL_LABEL), limits.get(space.namespace)
            if keeper not in specs and limit is not None:
                return False
            if keeper in specs and (limit is None or limit.quota != keeper or limit.enforced != limit.hard):
                return False
        return True

    def _limit(self) -> int | None:
        return self.chance.choice((None, 0, 16, 64))

    def _relabel(self, space: GpuCluster, quota: str | None) -> None:
        path = f"/api/v1/namespaces/{space.namespace}"
        self._api.patch(path, {"metadata": {"labels": {TRIAL_LABEL: quota}}})

    def _declare(self, name: str) -> None:
        cohort = {"cohort": self._cohort} if self.chance.random() < 0.75 else {}
        selector = {"matchLabels": {TRIAL_LABEL: name}}
        spec = {"groups": self.chance.choice(_EIGHTS), "namespaceSelector": selector, **cohort}
        kind = {"apiVersion": "ctagroup.dev/v1alpha1", "kind": "CTAQuota"}
        self._quietly("create", f"{OURS}/ctaquotas", {**kind, "metadata": {"name": name}, "spec": spec})

    def _quietly(self, verb: str, path: str, *content: object) -> None:
        """Do something to an object that may be gone, or there already."""
        try:
            getattr(self._api, verb)(path, *content)
        except ApiError as error:
            if error.code not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                raise


@pytest.fixture
def chance() -> random.Random:
    """Return chance by a seed that is printed; the variable CTA_QUOTA_SEED repeats a run."""
    seed = int(os.environ.get("CTA_QUOTA_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"CTA_QUOTA_SEED={seed}")  # noqa: T201 - pytest shows it when the test fails
    return random.Random(seed)  # noqa: S311 - to be repeated


# Operators end between two writes here; connections that one had open then may be left to the garbage collector.
@pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <(socket|function _SelectorTransport):pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.usefixtures("kinds")
def test_sums_hold_at_every_step(api: ApiClient, operator_kubeconfig: Path, chance: random.Random) -> None:
    """No write makes a sum too large, no limit falls below its use, and an operator that is left alone finishes."""
    assert asyncio.run(_play(api, operator_kubeconfig, chance)) >= _STRICT_LOOKS


async def _play(api: ApiClient, kubeconfig: Path, chance: random.Random) -> int:
    """Play some steps; return how often everything was looked at while nothing was excused.

    A step ends its operator after a few writes, by chance. Some steps are followed by operators of one write each,
    until nothing is left to do: there one was killed between any two writes.
    """
    async with KubeClient(load_connection(kubeconfig)) as client:
        trial = Trial(api, client, chance, f"{chance.randrange(1 << 24):06x}")
        trial.begin()
        try:
            for step in range(_MOST_STEPS):
                if step >= _STEPS and trial.watcher.strict_looks >= _STRICT_LOOKS:
                    break
                trial.change()
                for _ in range(chance.randrange(4)):
                    trial.use()
                await trial.operate(chance.randrange(5), behind=chance.random() < 0.3)
                if step % _STEPS_TO_SETTLE == _STEPS_TO_SETTLE - 1:
                    await trial.settle(writes_of_each=chance.choice((1, 1, 1000)))
            await trial.settle()
        finally:
            trial.end()
    print(f"{trial.watcher.looks} looks, {trial.watcher.strict_looks} of them strict")  # noqa: T201 - as the seed
    return trial.watcher.strict_looks
