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


@contextmanager
def meanwhile(step: Callable[[], object], *, pause_seconds: float = 0.0) -> Iterator[list[object]]:
    """Do something again and again until the block ends, and yield what came of it; its errors are the test's."""
    results: list[object] = []
    failed: list[BaseException] = []
    over = threading.Event()

    def do() -> None:
        try:
            while not over.wait(pause_seconds):
                results.append(step())
        except BaseException as error:  # noqa: BLE001 - the end of a thread: the test raises it
            failed.append(error)

    thread = threading.Thread(target=do)
    thread.start()
    try:
        yield results
    finally:
        over.set()
        thread.join()
        if failed:
            raise failed[0]


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
    wait_for(lambda: len(registrations(plain, new)) > told, f"{new} to register", PATIENCE_SECONDS)
    wait_for_more(arrived)
    plain.stop(old)
    wait_for_more(arrived)


def wait_for_more(arrived: Sequence[object]) -> None:
    """Wait until two more pods have come: one at least came from its beginning to its end meanwhile."""
    enough = len(arrived) + 2
    wait_for(lambda: len(arrived) >= enough, "more pods", PATIENCE_SECONDS)


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
    with meanwhile(plain.allocatable, pause_seconds=_LOOK_SECONDS) as seen, meanwhile(Arrivals(plain).next) as arrived:
        roll(plain, PLUGIN, SUCCESSOR, (), arrived)
        roll(plain, SUCCESSOR, PLUGIN, ("--device-ids=short",), arrived)
        roll(plain, PLUGIN, SUCCESSOR, ("--device-ids=uuid",), arrived)
    assert set(seen) == {_ALL}
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
    with meanwhile(look, pause_seconds=_LOOK_SECONDS) as seen:
        tools.kubectl("rollout", "restart", *plugin)
        for number in range(4):
            team.start_pod(f"passing-{number}", 32)
            team.wait_running(f"passing-{number}")
        tools.kubectl("rollout", "status", "--timeout=90s", *plugin)
        team.start_pod("after", 32)
        team.wait_running("after")
    assert set(seen) == {(EIGHT_H100, "True")}
