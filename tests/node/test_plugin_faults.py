"""Programs and files of a real node fail around pods that hold groups: nothing is lost and nothing handed out twice."""

import signal

from cluster_harness.waiting import wait_for
from plain_node import MPS_ROOT, PLUGIN, PlainNode
from plain_pods import FLAGS, Json

_FOR_EVER = "trap exit TERM; while :; do sleep 1; done"
_GROUPS = 128


def test_container_that_starts_while_mps_is_down_waits_and_then_runs(plain: PlainNode) -> None:
    """Before: no supervisor. During: the pod waits and says why, and no pod fails. After: it runs by itself."""
    plain.start_plugin("--start-patience-seconds=1")
    plain.make_deployment("server", _FOR_EVER, groups=32)
    (name,) = wait_for(lambda: [pod["metadata"]["name"] for pod in plain.pods()], "a pod")
    plain.wait_waiting(name, "the MPS supervisor")
    assert plain.failed() == []
    plain.start_supervisor()
    plain.wait_running(name)
    assert [pod["metadata"]["name"] for pod in plain.pods()] == [name]


def test_daemon_that_is_silent_keeps_nobody_from_another_gpu(plain: PlainNode) -> None:
    """One container waits for its GPU's daemon; another GPU's starts meanwhile, and the first once it is answered."""
    plain.silence_daemon(1)
    plain.start_supervisor()
    plain.start_plugin("--start-patience-seconds=1")
    plain.start_pod("first", 64, _FOR_EVER)
    plain.wait_running("first")
    plain.start_pod("second", 96, _FOR_EVER)
    plain.wait_waiting("second", plain.uuid(1))
    plain.start_pod("third", 64, _FOR_EVER)
    plain.wait_running("third")
    assert "running" not in plain.status("second")["state"]
    plain.mend_daemon(1)
    plain.wait_running("second")
    assert plain.failed() == []


def test_daemon_that_was_killed_is_back_for_the_next_container(plain: PlainNode) -> None:
    """The pod that runs is left alone, and the next one on its GPU starts behind another daemon with both limits."""
    plain.start_supervisor()
    plain.start_plugin(count=1)
    plain.start_pod("before", 32, _FOR_EVER)
    plain.wait_running("before")
    killed = plain.kill_daemon(0)
    whole = f"env > {FLAGS}/half-written && mv {FLAGS}/half-written {FLAGS}/environment"
    plain.start_pod("after", 64, f"{whole}; {_FOR_EVER}")
    plain.wait_running("after")
    daemon = plain.daemon(0)
    assert daemon["pid"] != killed
    given = wait_for(lambda: plain.flag("environment"), "the container to tell its environment")
    assert f"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE={daemon['default_sm_percent']:g}\n" in given
    assert f"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT={plain.uuid(0)}={daemon['default_memory_mib']}M\n" in given
    status = plain.status("before")
    assert ("running" in status["state"], status["restartCount"]) == (True, 0)
    assert plain.failed() == []


def test_kubelet_and_plugin_restarted_in_both_orders(plain: PlainNode) -> None:
    """Whichever ends or comes first: the running pod lives on in its container, and new pods get other groups."""
    plain.start_supervisor()
    plain.start_plugin(count=1)
    plain.start_pod("steady", 32, _FOR_EVER)
    plain.wait_running("steady")
    before = plain.status("steady")["containerID"]
    for number, kubelet_first in enumerate((True, False)):
        _stop_both(plain, kubelet_first=kubelet_first)
        registered = len(plain.events("registered"))
        if kubelet_first:
            plain.cluster.start_kubelet()
            plain.spawn_plugin(count=1)
        else:
            plain.spawn_plugin(count=1)
            plain.cluster.start_kubelet()
        plain.wait_registered(more_than=registered)
        plain.start_pod(f"next-{number}", 32, _FOR_EVER)
        plain.wait_running("steady", f"next-{number}")
        assert plain.is_disjoint()
    assert (plain.status("steady")["containerID"], plain.status("steady")["restartCount"]) == (before, 0)
    assert plain.failed() == []


def test_plugin_killed_while_pods_get_their_groups(plain: PlainNode) -> None:
    """Twelve pods come at once and the plugin is killed among them: all run in the end, on disjoint groups.

    A pod that kubelet admits while nobody answers fails for good, and its controller makes another.
    """
    plain.start_supervisor()
    plain.start_plugin()
    plain.make_deployment("burst", _FOR_EVER, groups=16, replicas=12)
    wait_for(lambda: len(plain.held()) >= 2, "the first pods to have groups")
    plain.stop(PLUGIN, signal.SIGKILL)
    plain.start_plugin()
    wait_for(lambda: len(_running(plain)) == 12, "twelve pods to run")
    assert plain.is_disjoint()
    held = plain.held()
    running = [held[pod["metadata"]["uid"]] for pod in _running(plain)]
    assert all(len({each.partition("::")[0] for each in ids}) == 1 for ids in running)
    assert [len(ids) for ids in running] == [16] * 12


def test_wiped_socket_folder(plain: PlainNode) -> None:
    """Every socket in kubelet's folder goes, kubelet's own as well: what runs and what comes is served all the same."""
    plain.start_supervisor()
    plain.start_plugin(count=1)
    plain.start_pod("steady", 32, _FOR_EVER)
    plain.wait_running("steady")
    folder = plain.cluster.node.kubelet_folder / "device-plugins"
    registered = len(plain.events("registered"))
    (folder / plain.events("registered")[-1]["socket"]).unlink()
    plain.wait_registered(more_than=registered)
    plain.start_pod("after-our-socket", 32, _FOR_EVER)
    plain.wait_running("after-our-socket")
    (folder / "kubelet.sock").unlink()
    plain.start_pod("after-kubelets-socket", 32, _FOR_EVER)
    plain.wait_running("after-kubelets-socket")
    plain.restart_kubelet()
    assert plain.failed() == []
    assert plain.is_disjoint()


def test_gpu_that_is_gone_after_a_reboot_while_kubelet_remembers_its_groups(plain: PlainNode) -> None:
    """The pod of the other GPU lives on, the lost GPU's pod waits and says why, and runs when its GPU is back."""
    plain.start_supervisor()
    plain.start_plugin(count=3)
    plain.start_pod("here", 96, _FOR_EVER)
    plain.start_pod("between", 128, _FOR_EVER)
    plain.wait_running("here", "between")
    # Ends once when it is told to, and runs on after its restart.
    plain.start_pod("lost", 96, f"[ -e {FLAGS}/go ] || {_until_flag('go')}; {_FOR_EVER}")
    plain.wait_running("lost")
    plain.delete_pod("between")
    _stop_both(plain, kubelet_first=True)
    registered = len(plain.events("registered"))
    plain.spawn_plugin("--start-patience-seconds=1", count=2)
    plain.cluster.start_kubelet()
    plain.wait_registered(more_than=registered)
    wait_for(lambda: plain.groups_for_new_pods() == 2 * _GROUPS, "kubelet to know two GPUs")
    plain.raise_flag("go")
    plain.wait_waiting("lost", f"GPU {plain.uuid(2)} is not served by this node now")
    plain.start_pod("new", 32, _FOR_EVER)
    plain.wait_running("here", "new")
    assert plain.is_disjoint()
    plain.stop(PLUGIN)
    plain.start_plugin(count=3)
    plain.wait_running("lost")
    assert plain.failed() == []


def test_api_server_away_delays_nothing_on_the_node(plain: PlainNode) -> None:
    """While the API server is away the plugin is killed and comes back: kubelet knows it, a container restarts.

    How the plugin's writers bear a long absence shows ``tests/unit/test_plugin_long_absence.py``.
    """
    plain.start_supervisor()
    plain.start_plugin(count=1)
    # Ends once when it is told to, and runs on after its restart.
    plain.start_pod("restarting", 32, f"echo >> {FLAGS}/starts; [ -e {FLAGS}/go ] || {_until_flag('go')}; {_FOR_EVER}")
    plain.wait_running("restarting")
    plain.cluster.stop_component("kube-apiserver", signal.SIGKILL)  # a polite end takes it twenty seconds
    try:
        registered = plain.registrations()
        plain.stop(PLUGIN, signal.SIGKILL)
        plain.spawn_plugin(count=1)
        plain.wait_registered(more_than=registered)
        plain.raise_flag("go")
        wait_for(lambda: plain.flag("starts").count("\n") == 2, "the container to start again")
    finally:
        plain.cluster.start_component("kube-apiserver")
    wait_for(lambda: plain.status("restarting")["restartCount"] == 1, "kubelet to tell of it")
    plain.wait_running("restarting")
    assert plain.failed() == []


def test_full_disk_where_cdi_devices_are_described(plain: PlainNode) -> None:
    """The plugin registers, a container waits with the file's name, and runs once there is room; nobody fails."""
    full = MPS_ROOT.parent / "cdi"
    plain.cluster.exec_in_node(["mkdir", "-p", str(full)])
    plain.cluster.exec_in_node(["mount", "-t", "tmpfs", "-o", "size=4k", "full", str(full)])
    try:
        plain.start_supervisor()
        plain.start_plugin("--device-list=cdi", f"--cdi-dir={full}", "--start-patience-seconds=1", count=1)
        plain.start_pod("patient", 128, _FOR_EVER)
        plain.wait_waiting("patient", "No space left on device")
        plain.cluster.exec_in_node(["mount", "-o", "remount,size=1m", str(full)])
        # The runtime does not read this folder, so the start goes one step further and says that.
        plain.wait_waiting("patient", "unresolvable CDI devices")
        assert plain.failed() == []
    finally:
        plain.stop(PLUGIN)
        plain.delete_pod("patient")
        plain.cluster.exec_in_node(["umount", str(full)])


def _until_flag(name: str) -> str:
    """Return a command that ends its shell when the flag is there."""
    return f"{{ until [ -e {FLAGS}/{name} ]; do sleep 0.1; done; exit; }}"


def _stop_both(plain: PlainNode, *, kubelet_first: bool) -> None:
    if kubelet_first:
        plain.cluster.stop_kubelet()
        plain.stop(PLUGIN)
    else:
        plain.stop(PLUGIN)
        plain.cluster.stop_kubelet()


def _running(plain: PlainNode) -> list[Json]:
    return [pod for pod in plain.pods() if pod["status"].get("phase") == "Running"]
