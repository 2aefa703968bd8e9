"""Ids in short form, and a change of the form while pods hold ids of the other one."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import grpc.aio
import pytest

from cta_group_core.ids import IdForm
from cta_group_plugin.adapters.state_folder import NUMBERS, StateFolder
from cta_group_plugin.edges import Edges
from cta_group_plugin.errors import StateUnavailable
from cta_group_plugin.id_book import IdBook
from cta_group_plugin.kubelet_api import deviceplugin_v1beta1_pb2 as api
from cta_group_plugin.ports import PodDevices
from cta_group_plugin.settings import Topology
from cta_group_plugin.testing import AdmissionRefused, Ask, FakeGpuSource, FakeKubelet
from plugin_running import FakeNode, plugin_on, registered_plugin, short_folder
from plugin_values import gpu, inventory, node_of, pod, uuid_of


class NodeWithIds(FakeNode):
    """A node whose kubelet has a record of what it gave out, and whose plugin keeps numbers of GPUs."""

    form = IdForm.UUID
    record: tuple[PodDevices, ...] | None = ()
    registered: frozenset[str] = frozenset()

    def edges(self) -> Edges:
        """Return this node's fakes, and the ids as a new process finds them."""
        ids = IdBook(self.form, StateFolder(self.root / "state"))
        ids.recall(self.record or (), self.registered)
        return replace(super().edges(), record=lambda: self.record, ids=ids)

    def remember(self, uid: str, ids: Iterable[str]) -> None:
        """Let kubelet's record have a container with these ids."""
        self.record = (*(self.record or ()), PodDevices(uid, "main", frozenset(ids)))


@pytest.fixture
async def node() -> AsyncIterator[NodeWithIds]:
    """Return a node with two H100s."""
    with short_folder() as root:
        (root / "plugins").mkdir()
        yield NodeWithIds(root, FakeGpuSource(node_of(2)))


@asynccontextmanager
async def plugin_again(node: NodeWithIds, kubelet: FakeKubelet, form: IdForm) -> AsyncIterator[None]:
    """Run a new process with this form beside a kubelet that goes on, and wait until it is registered."""
    node.form = form
    times = len(kubelet.registered)
    async with plugin_on(node):
        await kubelet.until(
            lambda kubelet: len(kubelet.registered) > times and set(kubelet.devices.values()) == {"Healthy"}
        )
        yield


async def test_short_ids_are_what_kubelet_counts_and_hands_out(node: NodeWithIds) -> None:
    """All groups have one, a request stays on one GPU, and its answer names that GPU by its UUID as ever."""
    node.form = IdForm.SHORT
    async with registered_plugin(node) as kubelet:
        assert sorted(kubelet.devices) == [f"g{index}-{number:03d}" for index in range(2) for number in range(128)]
        (container,) = await kubelet.admit(pod("a"), [Ask("main", 32)])
        assert sorted(container.ids) == [f"g0-{number:03d}" for number in range(32)]
        assert container.answer.envs["NVIDIA_VISIBLE_DEVICES"] == uuid_of(0)
        await kubelet.start_container(container)


@pytest.mark.parametrize(("before", "after"), [(IdForm.UUID, IdForm.SHORT), (IdForm.SHORT, IdForm.UUID)])
async def test_change_of_the_form_hands_nothing_out_twice(node: NodeWithIds, before: IdForm, after: IdForm) -> None:
    """Groups that a pod holds are listed once, by the text that kubelet knows; the pod goes on, and so do restarts."""
    async with node.kubelet() as kubelet:
        async with plugin_again(node, kubelet, before):
            (held,) = await kubelet.admit(pod("a"), [Ask("main", 96)])
        node.remember("uid-a", held.ids)
        async with plugin_again(node, kubelet, after):
            assert len(kubelet.devices) == 256
            assert set(held.ids) < set(kubelet.devices)
            await kubelet.start_container(held)
            (rest,) = await kubelet.admit(pod("b"), [Ask("main", 32)])
            (other,) = await kubelet.admit(pod("c"), [Ask("main", 128)])
            assert len({*held.ids, *rest.ids, *other.ids}) == 256
            assert rest.answer.envs["CTA_GROUP_GPU_UUID"] == held.answer.envs["CTA_GROUP_GPU_UUID"]
            assert other.answer.envs["CTA_GROUP_GPU_UUID"] != held.answer.envs["CTA_GROUP_GPU_UUID"]
            with pytest.raises(AdmissionRefused):
                await kubelet.admit(pod("d"), [Ask("main", 8)])


async def test_groups_get_the_new_form_once_nobody_holds_them(node: NodeWithIds) -> None:
    """All that kubelet knows keeps its text at first; what is free follows at once, the rest when its pod has gone."""
    async with node.kubelet() as kubelet:
        async with plugin_again(node, kubelet, IdForm.UUID):
            (held,) = await kubelet.admit(pod("a"), [Ask("main", 32)])
        node.remember("uid-a", held.ids)
        node.registered = frozenset({*held.ids, f"{uuid_of(1)}::5"})
        async with plugin_again(node, kubelet, IdForm.SHORT):
            await kubelet.until(lambda kubelet: f"{uuid_of(1)}::5" not in kubelet.devices)
            assert {text for text in kubelet.devices if text.startswith("GPU-")} == set(held.ids)
            kubelet.delete(pod("a"))
            node.record = ()
            await kubelet.until(lambda kubelet: {text[:3] for text in kubelet.devices} == {"g0-", "g1-"})
            (after,) = await kubelet.admit(pod("b"), [Ask("main", 32)])
            assert not set(after.ids) & set(held.ids)


async def test_id_of_an_earlier_list_is_taken_only_while_its_group_is_free(node: NodeWithIds) -> None:
    """Kubelet may ask for it while the list with the new text is under way; then that text is taken back."""
    node.form = IdForm.SHORT
    async with registered_plugin(node) as kubelet:
        earlier = [f"{uuid_of(0)}::{number}" for number in range(8)]
        asked = api.ContainerPreferredAllocationRequest(available_deviceIDs=earlier, allocation_size=8)
        request = api.PreferredAllocationRequest(container_requests=[asked])
        preferred = await kubelet.plugin.GetPreferredAllocation(request)
        assert list(preferred.container_responses[0].deviceIDs) == earlier
        await kubelet.plugin.Allocate(allocation_of(earlier))
        await kubelet.until(lambda kubelet: set(earlier) < set(kubelet.devices))
        assert len(kubelet.devices) == 256
        with pytest.raises(grpc.aio.AioRpcError, match=r"g0-00. is held by another container"):
            await kubelet.plugin.Allocate(allocation_of([f"g0-{number:03d}" for number in range(8)]))


def allocation_of(ids: Iterable[str]) -> api.AllocateRequest:
    """Return kubelet's question for one container."""
    return api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=ids)])


async def test_ids_of_a_gpu_that_vanished_mean_no_other_gpu(node: NodeWithIds) -> None:
    """After a reboot GPU 0 is gone and the other one has its index: what pods hold of number 1 is still of that GPU."""
    async with node.kubelet() as kubelet:
        async with plugin_again(node, kubelet, IdForm.SHORT):
            await kubelet.admit(pod("a"), [Ask("main", 128)])
            (second,) = await kubelet.admit(pod("b"), [Ask("main", 96)])
        node.remember("uid-b", second.ids)
        node.gpus.shown = inventory(replace(gpu(1), index=0))
        async with plugin_again(node, kubelet, IdForm.SHORT):
            assert {text[:3] for text in kubelet.devices} == {"g1-"}
            kubelet.delete(pod("a"))
            (third,) = await kubelet.admit(pod("c"), [Ask("main", 32)])
            assert not set(third.ids) & set(second.ids)
            assert third.answer.envs["CTA_GROUP_GPU_UUID"] == second.answer.envs["CTA_GROUP_GPU_UUID"] == uuid_of(1)


async def test_numa_nodes_are_told_when_the_setting_says_so(node: NodeWithIds) -> None:
    """Each device is on the NUMA node of its GPU; a GPU whose node is not known says nothing."""
    node.gpus.shown = inventory(replace(gpu(0), numa_node=1), gpu(1))
    async with registered_plugin(node, topology=Topology.NUMA) as kubelet:
        assert kubelet.endpoint
        assert kubelet.endpoint.numa_nodes == {f"{uuid_of(0)}::{number}": [1] for number in range(128)}


async def test_nothing_is_told_of_numa_nodes_otherwise(node: NodeWithIds) -> None:
    """So that kubelet asks for all of a request at once."""
    node.gpus.shown = inventory(replace(gpu(0), numa_node=1))
    async with registered_plugin(node) as kubelet:
        assert kubelet.endpoint
        assert (len(kubelet.devices), kubelet.endpoint.numa_nodes) == (128, {})


@pytest.mark.parametrize(
    "text",
    [
        *["[]", "{", '{"GPU-1": "a"}', '{"GPU-1": 1, "GPU-2": 1}', '{"nonsense": 1}', '{"GPU-1": true}'],
        *['{"GPU-1": 10000}', '{"GPU-1": -1}', "[" * 100_000, "\x00"],
    ],
    ids=lambda text: text[:20],
)
def test_file_of_numbers_that_makes_no_sense_is_named(tmp_path: Path, text: str) -> None:
    """The numbers are found elsewhere then; the log says which file it was."""
    (tmp_path / NUMBERS).write_text(text)
    with pytest.raises(StateUnavailable, match=NUMBERS):
        StateFolder(tmp_path).load_numbers()


def test_file_of_numbers_reads_back(tmp_path: Path) -> None:
    """What one process keeps, the next one finds."""
    StateFolder(tmp_path).save_numbers({uuid_of(0): 3, uuid_of(1): 0})
    assert StateFolder(tmp_path).load_numbers() == {uuid_of(0): 3, uuid_of(1): 0}
