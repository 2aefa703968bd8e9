"""What hypothesis draws GPUs, and nodes full of them, from; and GPUs that examples name."""

from collections.abc import Sequence

from hypothesis import strategies as st

from cta_group_core.ids import GpuUuid, GroupId, parse_gpu_uuid
from cta_group_core.profiles import PROFILES
from cta_group_core.rooms import GpuRoom
from cta_group_core.units import ComputeCapability, GpuUnits, granularity_of, units_of

KNOWN_CAPABILITIES = tuple(
    ComputeCapability.parse(text)
    for text in "7.0 7.2 7.5 8.0 8.6 8.7 8.9 9.0 10.0 10.1 10.3 11.0 12.0 12.1".split()  # noqa: SIM905 - a table
)
H200 = PROFILES["h200"].units
T400 = units_of(6, granularity_of(ComputeCapability(7, 5)))
"""A display card: 384 cores of compute capability 7.5, so a capacity of 6."""

capabilities = st.sampled_from(KNOWN_CAPABILITIES)
profiles = st.sampled_from(list(PROFILES.values()))
unit_kinds = st.sampled_from([H200, T400, PROFILES["a100-80"].units, PROFILES["rtx-4060-laptop"].units])


def uuid_of(index: int) -> GpuUuid:
    """Return the UUID that the GPU of this index has in tests."""
    return parse_gpu_uuid(f"GPU-00000000-0000-4000-8000-{index:012d}")


def room(index: int, free: int, units: GpuUnits = H200) -> GpuRoom:
    """Return one GPU with ``free`` groups."""
    return GpuRoom(uuid=uuid_of(index), index=index, units=units, free=free)


def ids_of(index: int, numbers: Sequence[int]) -> list[GroupId]:
    """Return groups of the GPU of this index."""
    return [GroupId(gpu=uuid_of(index), number=number) for number in numbers]


def indexed(rooms: Sequence[GpuRoom]) -> dict[GpuUuid, tuple[int, GpuUnits]]:
    """Return the GPUs as ``choose_ids`` wants them."""
    return {gpu.uuid: (gpu.index, gpu.units) for gpu in rooms}


def units_only(rooms: Sequence[GpuRoom]) -> dict[GpuUuid, GpuUnits]:
    """Return the GPUs as ``check_ids`` wants them."""
    return {gpu.uuid: gpu.units for gpu in rooms}


def sizes_on_one(units: GpuUnits) -> list[int]:
    """Return every request that one such GPU may serve, told apart from the rule by counting them up."""
    return sorted({*range(units.minimum, units.capacity, units.step), units.capacity})


@st.composite
def nodes(draw: st.DrawFn, *, max_gpus: int = 8) -> list[GpuRoom]:
    """Draw the GPUs of one node, of one or several kinds, each with some groups free."""
    kinds = draw(st.lists(unit_kinds, min_size=1, max_size=max_gpus))
    return [room(index, draw(free_groups(units)), units) for index, units in enumerate(kinds)]


def free_groups(units: GpuUnits) -> st.SearchStrategy[int]:
    """Draw how many groups are free; entirely free and full are drawn often, since they are special."""
    return st.one_of(st.just(units.capacity), st.just(0), st.integers(0, units.capacity))


def requests_on(rooms: Sequence[GpuRoom]) -> st.SearchStrategy[int]:
    """Draw requests of every sort: nonsense, fractions, whole GPUs and several of them."""
    capacities = sorted({room.units.capacity for room in rooms})
    whole = st.builds(lambda capacity, count: capacity * count, st.sampled_from(capacities), st.integers(1, len(rooms)))
    fraction = st.sampled_from(sorted({size for room in rooms for size in sizes_on_one(room.units)}))
    return st.one_of(fraction, whole, st.integers(-1, 1100))
