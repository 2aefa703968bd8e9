"""One plugin takes over from another on a real node while pods come all the time, as in a rolling update that surges.

kubelet 1.37 and newer keep the devices of a resource while one of its plugins is left (kubernetes#135437).
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count

from cluster_harness.cluster import Cluster
from cluster_harness.tools import Tools
from cluster_harness.waiting import wait_for
from cta_group_core.ids import GpuUuid, GroupId, IdTexts
from cta_group_core.names import CONDITION_REGISTERED
from cta_group_plugin.adapters.checkpoint import KubeletCheckpoint
from plain_node import PLUGIN, SUCCESSOR, PlainNode
from plain_pods import PATIENCE_SECONDS, RESOURCE
from team import CTA_NODES, EIGHT_H100, Team, allocatable

_ALL = 256
_FOR_EVER = "trap exit TERM; while :; do sleep 1; done"
_LOOK_SECONDS = 0.05


class Looks:
    """What somebody saw, each time that they looked."""

    def __init__(self) -> None:
        self.seen: set[object] = set()
        self.failed: list[BaseException] = []


@contextmanager
def looking_at(read: Callable[[], object]) -> Iterator[Looks]:
    """Read something many times a second until the block ends."""
    looks, over = Looks(), threading.Event()

    def look() -> None:
        try:
            while not over.wait(_LOOK_SECONDS):
                looks.seen.add(read())
        except BaseException as error:  # noqa: BLE001 - the end of a thread: the test raises it
            looks.failed.append(error)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield looks
    finally:
        over.set()
        thread.join()
    assert looks.failed == []


class Arrivals:
    """Pods that come one after the other, each for a moment."""

    def __init__(self, plain: PlainNode) -> None:
        self._plain = plain
        self._numbers = count()

    def some(self, how_many: int = 1) -> None:
        """Let pods come; the one before last has gone by then, so that groups change hands all the time."""
        for _ in range(how_many):
            number = next(self._numbers)
            if number > 1:
                self._plain.delete_pod(f"passing-{number - 2}")
            self._plain.start_pod(f"passing-{number}", 16, _FOR_EVER)
            self._plain.wait_running(f"passing-{number}")


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


def roll(plain: PlainNode, old: str, new: str, arguments: Sequence[str], pods: Arrivals) -> None:
    """Start ``new``, let kubelet know it, and end ``old``, with pods coming before, between and after."""
    pods.some()
    told = len(registrations(plain, new))
    plain.spawn_plugin(*arguments, program=new)
    wait_for(lambda: len(registrations(plain, new)) > told, f"{new} to register", PATIENCE_SECONDS)
    pods.some(2)
    plain.stop(old)
    pods.some(2)


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
    wait_for(lambda: plain.allocatable() == _ALL, "the node to offer two GPUs", PATIENCE_SECONDS)
    pods = Arrivals(plain)
    with looking_at(plain.allocatable) as looks:
        roll(plain, PLUGIN, SUCCESSOR, (), pods)
        roll(plain, SUCCESSOR, PLUGIN, ("--device-ids=short",), pods)
        roll(plain, PLUGIN, SUCCESSOR, ("--device-ids=uuid",), pods)
    assert looks.seen == {_ALL}
    assert plain.failed() == []
    held = groups_held(plain)
    assert len(set(held)) == len(held) >= 32 + 16
    assert (plain.status("steady")["containerID"], plain.status("steady")["restartCount"]) == (before, 0)


def test_upgrade_of_the_release_leaves_no_gap(tools: Tools, team: Team, cluster: Cluster) -> None:
    """Both pods of the plugin run for a moment: the node never offers less, and is never said not to be registered."""

    def look() -> tuple[int, str]:
        conditions = cluster.api.get(f"{CTA_NODES}/{cluster.node.name}")["status"]["conditions"]
        (registered,) = [one["status"] for one in conditions if one["type"] == CONDITION_REGISTERED]
        return allocatable(tools), registered

    plugin = ("-n", "cta-group", "daemonset/cta-group-plugin")
    team.start_pod("steady", 32)
    team.wait_running("steady")
    with looking_at(look) as looks:
        tools.kubectl("rollout", "restart", *plugin)
        for number in range(4):
            team.start_pod(f"passing-{number}", 32)
            team.wait_running(f"passing-{number}")
        tools.kubectl("rollout", "status", "--timeout=90s", *plugin)
        team.start_pod("after", 32)
        team.wait_running("after")
    assert looks.seen == {(EIGHT_H100, "True")}
