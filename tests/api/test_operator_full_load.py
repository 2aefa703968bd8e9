"""Two hundred pods at once on sixteen nodes: whatever the order, no node refuses one, and what fits runs.

The API server, the scheduler and the operator are real, KWOK keeps the nodes alive, kubelets and plugins are a model.
"""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest

from admission_endpoint import webhook_of
from admission_running import local_certificate, write_pair
from chart_rendering import NAMESPACE
from cluster_harness.control_plane import ControlPlane
from cluster_harness.kwok import KWOK, KWOK_LABEL, start_kwok
from conditions import until
from cta_group_core.names import LABEL_REQUESTS
from cta_group_operator.adapters.connection import load_connection
from cta_group_operator.adapters.kube import KubeClient
from gpu_cluster import CAPACITY, GpuCluster
from http_probe import free_address
from many_kubelets import ManyKubelets, groups_of
from operator_fixtures import cluster, kinds, operator_kubeconfig
from operator_process import OperatorProcess, running_operator

__all__ = ["cluster", "kinds", "operator_kubeconfig"]

pytestmark = pytest.mark.usefixtures("kwok", "kinds")

_NODES, _GPUS = 16, 4
_SIZES = {8: 56, 16: 42, 32: 40, 64: 28, 96: 14, 128: 12, 256: 6, 512: 2}
"""How many pods ask for so many groups. Together a sixth more than the nodes have."""
_PODS = sum(_SIZES.values())
_DEADLINE_SECONDS = 240.0
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


@pytest.fixture
def chance() -> random.Random:
    """Return chance by a seed that is printed; the variable CTA_LOAD_SEED repeats order and delays."""
    seed = int(os.environ.get("CTA_LOAD_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"CTA_LOAD_SEED={seed}")  # noqa: T201 - pytest shows it when the test fails
    return random.Random(seed)  # noqa: S311 - to be repeated


@pytest.fixture(scope="module")
def kwok(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let KWOK keep the nodes of this module alive."""
    start_kwok(control_plane, tmp_path_factory.mktemp("kwok"), starts_pods=False)
    yield
    control_plane.stop_component(KWOK)


@dataclass
class Load:
    """The nodes, their kubelets, and whoever creates the pods."""

    cluster: GpuCluster
    client: KubeClient
    kubelets: ManyKubelets
    chance: random.Random

    async def create_all(self) -> None:
        """Create every pod at once, in an order of chance."""
        sizes = [groups for groups, count in _SIZES.items() for _ in range(count)]
        self.chance.shuffle(sizes)
        path = f"/api/v1/namespaces/{self.cluster.namespace}/pods"
        bodies = [self.pod(f"pod-{number:03}-{groups}", groups) for number, groups in enumerate(sizes)]
        await asyncio.gather(*(self.client.create(path, body) for body in bodies))

    def pod(self, name: str, groups: int) -> dict[str, Any]:
        """Return a pod as admission leaves it."""
        metadata = {"name": name, "labels": {LABEL_REQUESTS: "true"}}
        return {"metadata": metadata, "spec": self.cluster.pod_spec(groups)}

    async def settle(self) -> None:
        """Wait until every pod runs that has room."""
        try:
            await until(lambda: self.kubelets.is_settled(_PODS) or self.kubelets.refused, seconds=_DEADLINE_SECONDS)
        except TimeoutError:
            pytest.fail(f"not settled: {self.story()}")

    def check(self) -> None:
        """Find no refused pod, and the nodes as full as that mixture makes them."""
        assert not self.kubelets.refused, self.story()
        running = sum(map(groups_of, self.kubelets.running))
        assert running > _NODES * _GPUS * CAPACITY * 0.9, self.story()

    def story(self) -> str:
        """Return what became of the pods."""
        waiting = Counter(map(groups_of, self.kubelets.gated))
        free = {node.name: node.free for node in self.kubelets.nodes.values()}
        counts = f"{len(self.kubelets.pods)} pods, {len(self.kubelets.running)} run"
        return f"{counts}, waiting {dict(waiting)}, refused {self.kubelets.refused}, free {free}"


@asynccontextmanager
async def load_of(plane: ControlPlane, cluster: GpuCluster, chance: random.Random) -> AsyncIterator[Load]:
    """Make the nodes and run their kubelets until the block ends."""
    names = [
        cluster.add_node(f"node-{number:02}", *[[]] * _GPUS, labels={KWOK_LABEL: KWOK}) for number in range(_NODES)
    ]
    async with KubeClient(load_connection(plane.admin_kubeconfig)) as client:
        kubelets = ManyKubelets(client, cluster.namespace, dict.fromkeys(names, _GPUS), chance)
        running = asyncio.create_task(kubelets.run())
        try:
            yield Load(cluster, client, kubelets, chance)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_two_hundred_pods_at_once(
    control_plane: ControlPlane,
    cluster: GpuCluster,
    operator_kubeconfig: Path,
    tmp_path: Path,
    chance: random.Random,
) -> None:
    """No kubelet refuses a pod, and in the end every pod runs that any node has room for."""
    with running_operator(operator_kubeconfig, NAMESPACE, tmp_path) as operator:
        async with load_of(control_plane, cluster, chance) as load:
            await load.create_all()
            await load.settle()
            load.check()
            # A pod may run before the operator has heard of it.
            await until(lambda: counted(operator) == [len(load.kubelets.running)] * 2, seconds=_DEADLINE_SECONDS)


def counted(operator: OperatorProcess) -> list[float | None]:
    """Return how many pods the operator has released, and how many it has seen placed."""
    return [operator.metric(f"cta_group_placement_{name}") for name in ("released_total", "seconds_count")]


async def test_operators_killed_at_full_load(
    control_plane: ControlPlane,
    cluster: GpuCluster,
    operator_kubeconfig: Path,
    tmp_path: Path,
    chance: random.Random,
) -> None:
    """The second replica goes on for the first; without any, pods come in ungated; a third ends the work."""
    admission = Admission(tmp_path)
    with running_operator(operator_kubeconfig, NAMESPACE, tmp_path, *admission.flags) as first:
        second = OperatorProcess(operator_kubeconfig, NAMESPACE, tmp_path)
        try:
            await until(second.ready, seconds=_DEADLINE_SECONDS)
            admission.register(cluster)
            async with load_of(control_plane, cluster, chance) as load:
                await until(lambda: is_gated(load), seconds=_DEADLINE_SECONDS)
                await load.create_all()
                await until(lambda: load.kubelets.running, seconds=_DEADLINE_SECONDS)
                first.end(SIGKILL)
                await until(lambda: second.metric("cta_group_placement_released_total"), seconds=_DEADLINE_SECONDS)
                second.end(SIGKILL)
                assert not is_gated(load)
                with running_operator(operator_kubeconfig, NAMESPACE, tmp_path):
                    await load.settle()
                    load.check()
        finally:
            second.end(SIGKILL)
            admission.remove(cluster)


class Admission:
    """The admission endpoint of one operator, registered for one namespace as the chart does."""

    def __init__(self, folder: Path) -> None:
        self._bundle, pair = local_certificate()
        write_pair(folder, pair)
        self._port = int(free_address().rpartition(":")[2])
        self.flags = (f"--webhook-port={self._port}", f"--webhook-tls-dir={folder}")

    def register(self, cluster: GpuCluster) -> None:
        """Let the API server ask it about pods."""
        url = f"https://127.0.0.1:{self._port}/mutate"
        made = webhook_of(f"load-{cluster.namespace}", url, self._bundle, cluster.namespace)
        cluster.api.create(CONFIGURATIONS, made)

    def remove(self, cluster: GpuCluster) -> None:
        """Take it back."""
        path = f"{CONFIGURATIONS}/load-{cluster.namespace}"
        if cluster.api.find(path):
            cluster.api.delete(path)


def is_gated(load: Load) -> bool:
    """Create a pod for a try, as a person writes it; tell whether it came in with a gate."""
    spec = load.cluster.pod_spec(8)
    del spec["schedulingGates"]
    path = f"/api/v1/namespaces/{load.cluster.namespace}/pods?dryRun=All"
    made = load.cluster.api.create(path, {"metadata": {"name": "tried"}, "spec": spec})
    return bool(made["spec"].get("schedulingGates"))
