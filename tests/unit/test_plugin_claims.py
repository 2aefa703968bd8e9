"""Which GPUs another plugin serves too, however it names them, and for how long that is remembered."""

from dataclasses import replace

import pytest

from background import in_background
from cta_group_plugin.claims import ClaimKeeper, claims_of
from cta_group_plugin.errors import KubeletUnavailable
from cta_group_plugin.state import NodeState
from cta_group_plugin.testing import FakePodResources
from plugin_values import gpu, uuid_of

GPUS = (replace(gpu(0), minor=4), replace(gpu(1), minor=5))


@pytest.mark.parametrize(
    ("resource", "device"),
    [
        ("nvidia.com/gpu", uuid_of(1)),
        ("nvidia.com/gpu", f"{uuid_of(1)}::3"),
        ("nvidia.com/gpu.shared", f"{uuid_of(1)}::0"),
        ("nvidia.com/gpu", f"{uuid_of(1)}-7"),
        ("example.com/vgpu", f"vgpu-{uuid_of(1)}-2"),
        ("nvidia.com/gpu", "1"),
        ("nvidia.com/gpu", "1::2"),
        ("nvidia.com/gpu", "nvidia5"),
        ("nvidia.com/gpu", "nvidia5/vgpu2"),
    ],
)
def test_gpu_is_known_by_the_names_that_plugins_give(resource: str, device: str) -> None:
    """UUID with whatever is around it, index, device file."""
    assert claims_of({resource: {device}}, GPUS) == {uuid_of(1): {resource}}


@pytest.mark.parametrize(
    ("resource", "device"),
    [
        ("example.com/fpga", "1"),
        ("example.com/nic", "nvidia5"),
        ("nvidia.com/gpu", uuid_of(7)),
        ("nvidia.com/gpu", "7"),
        ("nvidia.com/mig-1g.10gb", "MIG-0a1b2c3d-0000-0000-0000-000000000000"),
    ],
)
def test_devices_that_are_no_gpu_of_ours(resource: str, device: str) -> None:
    """Numbers of other resources are not indexes of GPUs."""
    assert claims_of({resource: {device}}, GPUS) == {}


def test_all_resources_that_name_a_gpu_are_told() -> None:
    """Each with its name."""
    devices: dict[str, set[str]] = {"nvidia.com/gpu": {uuid_of(0), uuid_of(1)}, "example.com/vgpu": {f"{uuid_of(0)}-1"}}
    assert claims_of(devices, GPUS) == {
        uuid_of(0): {"nvidia.com/gpu", "example.com/vgpu"},
        uuid_of(1): {"nvidia.com/gpu"},
    }


class Devices(FakePodResources):
    """A kubelet that can also fail to tell."""

    def __init__(self) -> None:
        super().__init__()
        self.problem: KubeletUnavailable | None = None
        self.times = 0

    async def other_devices(self) -> dict[str, frozenset[str]]:
        """Return what was set, or fail."""
        self.times += 1
        if self.problem:
            raise self.problem
        return dict(self.others)


async def asked(keeper: ClaimKeeper) -> None:
    """Let the keeper ask once."""
    await keeper._ask()


async def test_plugin_that_restarts_is_not_gone() -> None:
    """Its claim is remembered for five minutes after its devices were seen last."""
    now, changes = [0.0], [0]
    state, kubelet = NodeState(clock=lambda: now[0]), Devices()

    def count() -> None:
        changes[0] += 1

    keeper = ClaimKeeper(state, kubelet, count)
    kubelet.others = {"nvidia.com/gpu": frozenset({uuid_of(0)})}
    await asked(keeper)
    assert state.view.other_devices == kubelet.others
    assert changes == [1]
    kubelet.others = {"nvidia.com/gpu": frozenset()}
    for now[0] in (10.0, 299.0):
        await asked(keeper)
    assert state.view.other_devices == {"nvidia.com/gpu": {uuid_of(0)}}
    assert changes == [1]
    now[0] = 300.0
    await asked(keeper)
    assert state.view.other_devices == {}
    assert changes == [2]


async def test_kubelet_that_does_not_tell_claims_nothing_and_keeps_what_was_claimed() -> None:
    """An old kubelet, or one that is away."""
    state, kubelet = NodeState(clock=lambda: 0.0), Devices()
    kubelet.problem = KubeletUnavailable("no such method")
    keeper = ClaimKeeper(state, kubelet, lambda: None)
    await asked(keeper)
    assert state.view.other_devices == {}
    kubelet.problem, kubelet.others = None, {"nvidia.com/gpu": frozenset({uuid_of(0)})}
    await asked(keeper)
    kubelet.problem = KubeletUnavailable("away")
    await asked(keeper)
    assert state.view.other_devices == {"nvidia.com/gpu": {uuid_of(0)}}


async def test_kubelet_is_asked_again_and_again() -> None:
    """Plugins come and go."""
    state, kubelet = NodeState(), Devices()
    async with in_background(ClaimKeeper(state, kubelet, lambda: None, period_seconds=0.001).run):
        view = state.view
        while kubelet.times < 3:
            kubelet.others = {f"nvidia.com/{kubelet.times}": frozenset({"x"})}
            view = await state.change_after(view)
