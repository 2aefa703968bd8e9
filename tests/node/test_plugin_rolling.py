"""One plugin takes over from another on a real node while pods come all the time, as in a rolling update that surges.

kubelet 1.37 and newer keep the devices of a resource while one of its plugins is left (kubernetes#135437).
"""

from collections.abc import Sequence
from itertools import count

from cluster_harness.waiting import wait_for
from cta_group_core.ids import GpuUuid, GroupId, IdTexts
from cta_group_plugin.adapters.checkpoint import KubeletCheckpoint
from meanwhile import meanwhile
from plain_node import PLUGIN, SUCCESSOR, PlainNode
from plain_pods import RESOURCE

_ALL = 256
_FOR_EVER = "trap exit TERM; while :; do sleep 1; done"
_LOOK_SECONDS = 0.05


class Arrivals:
    """Pods that come one after the other, each for a moment."""

    def __init__(self, plain: PlainNode) -> None:
        self._plain = plain
        self._numbers = count()

    def next(self) -> int:
        """Let one more come; the one before last has gone by then, so that groups change hands all the time."""
        number = next(self._numbers)
        if number > 1:
            self._plain.delete_pod(f"passing-{number - 2}")
        self._plain.start_pod(f"passing-{number}", 16, _FOR_EVER)
        self._plain.wait_running(f"passing-{number}")
        return number


def groups_held(plain: PlainNode) -> list[GroupId]:
    """Return every group that kubelet has given to a living pod, whatever it is called there.

    What kubelet keeps with the ids says of which GPU they are: by that a plugin understands ids whose numbers it lost.
    """
    texts = IdTexts(numbers={GpuUuid(plain.uuid(index)): index for index in range(2)})
    folder = plain.cluster.node.kubelet_folder / "device-plugins"
    record = KubeletCheckpoint(folder, RESOURCE, texts.parse).pod_devices() or ()
    living = {pod["metadata"]["uid"] for pod in plain.pods()}
    held: list[GroupId] = []
    for container in (one for one in record if one.pod_uid in living):
        groups = [texts.parse(text) for text in container.ids]
        assert {group.gpu for group in groups} == set(container.gpus)
        held += groups
    return held


def roll(plain: PlainNode, old: str, new: str, arguments: Sequence[str], arrived: Sequence[object]) -> None:
    """Start ``new``, let kubelet know it, and end ``old``; pods come before, between and after."""
    told = len(registrations(plain, new))
    plain.spawn_plugin(*arguments, program=new)
    wait_for(lambda: len(registrations(plain, new)) > told, f"{new} to register")
    wait_for_more(arrived)
    plain.stop(old)
    wait_for_more(arrived)


def wait_for_more(arrived: Sequence[object]) -> None:
    """Wait until two more pods have come: one at least came from its beginning to its end meanwhile."""
    enough = len(arrived) + 2
    wait_for(lambda: len(arrived) >= enough, "more pods")


def registrations(plain: PlainNode, program: str) -> list[str]:
    """Return the log lines by which a plugin says that kubelet knows it."""
    log = plain.cluster.log(program) if plain.cluster.has_component(program) else ""
    return [line for line in log.splitlines() if '"event": "registered"' in line or '"event":"registered"' in line]


def test_takeover_is_seen_by_nobody(plain: PlainNode) -> None:
    """Rolled forth and back, with ids in another form in between: no group is missing, and no pod fails."""
    plain.start_supervisor()
    plain.start_plugin()
    plain.start_pod("steady", 32, _FOR_EVER)
    plain.wait_running("steady")
    before = plain.status("steady")["containerID"]
    wait_for(lambda: plain.allocatable() == _ALL, "the node to offer two GPUs")
    with meanwhile(plain.allocatable, pause_seconds=_LOOK_SECONDS) as seen, meanwhile(Arrivals(plain).next) as arrived:
        roll(plain, PLUGIN, SUCCESSOR, (), arrived)
        roll(plain, SUCCESSOR, PLUGIN, ("--device-ids=short",), arrived)
        roll(plain, PLUGIN, SUCCESSOR, ("--device-ids=uuid",), arrived)
    assert set(seen) == {_ALL}
    assert plain.failed() == []
    held = groups_held(plain)
    assert len(set(held)) == len(held) >= 32 + 16
    assert (plain.status("steady")["containerID"], plain.status("steady")["restartCount"]) == (before, 0)
