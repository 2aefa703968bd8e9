"""Fragmentation has a name: the one pod whose move to another GPU would make room."""

from collections.abc import Sequence

import pytest

from cta_group_core.ids import GpuUuid, NodeName
from cta_group_core.moves import HeldGpu, Tenant, helpful_move, tenants_by_gpu
from cta_group_core.rooms import GpuRoom
from cta_group_core.units import GpuUnits

H100 = GpuUnits(132, 128, 8, 8)
A100 = GpuUnits(108, 108, 4, 2)


def gpu(
    index: int, *groups: int, units: GpuUnits = H100, strict: bool = False, node: str = "n", spans: Sequence[int] = ()
) -> HeldGpu:
    """Return a GPU with one pod of each size; ``spans``: groups of pods that are gone for good, such as whole GPUs."""
    free = units.capacity - sum(groups) - sum(spans)
    room = GpuRoom(GpuUuid(f"GPU-{node}-{index}"), index, units, free, frozenset(groups) if strict else None)
    return HeldGpu(NodeName(node), room, tuple(Tenant(size, "team", f"p{index}-{size}") for size in groups))


def told(groups: int, *gpus: HeldGpu) -> str | None:
    """Return the words for a request."""
    move = helpful_move(groups, gpus)
    return None if move is None else str(move)


def test_the_smallest_pod_that_makes_room_is_named() -> None:
    """Of several that would do, the one that is moved most easily."""
    assert told(96, gpu(0, 64), gpu(1, 40, 24), gpu(2, 64)) == (
        "moving pod p1-40 of namespace team (40 groups) from GPU 1 of n to another GPU would make room"
    )


@pytest.mark.parametrize(
    ("groups", "gpus"),
    [
        (96, [gpu(0, 64)]),  # nowhere to move it to
        (96, [gpu(0, 64), gpu(1, 96)]),  # no room for it there
        (128, [gpu(0, 24, 24), gpu(1, 24, 24)]),  # one is not enough
        (64, [gpu(0, spans=(128,)), gpu(1, spans=(128,))]),  # nobody that is known
        (12, [gpu(0, 120), gpu(1, 120)]),  # no size that is allowed there
        (256, [gpu(0, 64), gpu(1)]),  # several GPUs
    ],
)
def test_no_pod_is_named_where_no_move_helps(groups: int, gpus: list[HeldGpu]) -> None:
    """Advice that would not work is not given."""
    assert helpful_move(groups, gpus) is None


def test_shares_of_one_size() -> None:
    """Where a GPU serves one size only, another size needs it empty, and a place for who goes."""
    assert told(64, gpu(0, 32, strict=True), gpu(1, 32, strict=True)) == (
        "moving pod p0-32 of namespace team (32 groups) from GPU 0 of n to another GPU would make room"
    )
    assert told(64, gpu(0, 32, 16, strict=True), gpu(1, 32, strict=True)) is None


def test_a_whole_gpu() -> None:
    """A request of a whole GPU is helped by the only pod on one."""
    assert told(128, gpu(0, 8), gpu(1, 64)) == (
        "moving pod p0-8 of namespace team (8 groups) from GPU 0 of n to another GPU would make room"
    )


def test_kinds_of_gpu_differ() -> None:
    """A pod is only sent to where its size is allowed."""
    assert told(96, gpu(0, 40), gpu(1, units=A100, node="a"))
    assert told(96, gpu(0, 56), gpu(1, 66, units=A100, node="a")) is None


def test_containers_of_a_pod_are_one_share() -> None:
    """What its containers hold of one GPU goes together."""
    one, two = GpuUuid("GPU-1"), GpuUuid("GPU-2")
    held = [(one, "team", "p", 8), (one, "team", "p", 16), (one, "other", "p", 8), (two, "team", "p", 32)]
    assert tenants_by_gpu(held) == {
        one: (Tenant(24, "team", "p"), Tenant(8, "other", "p")),
        two: (Tenant(32, "team", "p"),),
    }
