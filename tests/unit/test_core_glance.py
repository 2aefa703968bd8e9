"""A glance at a node says what the rule of placement would do there."""

from hypothesis import example, given
from hypothesis import strategies as st

from cta_group_core.errors import RequestRefused
from cta_group_core.glance import Glance
from cta_group_core.placement import choose_gpus
from cta_group_core.rooms import GpuRoom
from gpu_strategies import H200, nodes, requests_on, room


def left_by_the_rule(rooms: list[GpuRoom], groups: int) -> int | None:
    """Return what is left on the GPUs that the rule chooses."""
    try:
        return sum(gpu.free for gpu in choose_gpus(rooms, groups)) - groups
    except RequestRefused:
        return None


@given(st.data())
def test_it_agrees_with_the_rule(data: st.DataObject) -> None:
    """Any kinds of GPUs on one node, shared by policy or not, and any request."""
    rooms = data.draw(nodes())
    groups = data.draw(requests_on(rooms))
    shares = data.draw(st.sampled_from([None, frozenset(), frozenset({8}), frozenset({groups})]))
    mixed = [GpuRoom(one.uuid, one.index, one.units, one.free, shares if one.index % 2 else None) for one in rooms]
    glance = Glance.of(mixed)
    assert glance.left_over(groups) == left_by_the_rule(mixed, groups)
    assert glance.free == sum(one.free for one in mixed)


@given(st.integers(0, 128), st.integers(0, 128))
@example(128, 128)
def test_two_gpus_of_one_kind(first: int, second: int) -> None:
    """Fractions go to the fuller GPU with room, and two whole ones only to two that are free."""
    rooms = [room(0, first, H200), room(1, second, H200)]
    fitting = [free for free in (first, second) if free >= 32]
    assert Glance.of(rooms).left_over(32) == (min(fitting) - 32 if fitting else None)
    assert Glance.of(rooms).left_over(256) == (0 if first == second == 128 else None)
