"""Pods live through restarts of kubelet in every state in which it fails them when their devices are back too late.

kubelet admits its pods again 0.9 s after its registration server is there. What is not registered by then costs pods
that crash, wait or initialise their lives, and a running pod whose finished init container asked for groups too.
"""

import pytest

from cluster_harness.waiting import wait_for
from plain_node import PlainNode
from plain_pods import FLAGS, Json, container

RESTARTS = 20
_FOR_EVER = "trap exit TERM; while :; do sleep 1; done"
_UNTIL_FLAG = f"until [ -e {FLAGS}/go ]; do sleep 0.2; done"


@pytest.fixture
def inhabited(plain: PlainNode) -> PlainNode:
    """Return a node with a pod in each state; the one that waits does so because its CDI device cannot be described."""
    plain.obstruct_specification(1)
    plain.start_supervisor()
    plain.start_plugin("--device-list=cdi", count=8)
    plain.start_pod("running", 32, _FOR_EVER)
    plain.start_pod("crashing", 32, "exit 1")
    initial = [container("load", "exit 0", 8)]
    plain.create_pod("initialised", {"initContainers": initial, "containers": [container("main", _FOR_EVER, 8)]})
    initial = [container("load", _UNTIL_FLAG)]
    plain.create_pod("initialising", {"initContainers": initial, "containers": [container("main", _FOR_EVER, 8)]})
    plain.wait_running("running", "initialised")
    # GPU 0 has 48 groups left, so this one goes to GPU 1; and what it leaves there is too little for a probe.
    plain.start_pod("waiting", 120, _FOR_EVER)
    plain.wait_waiting("waiting", plain.uuid(1))
    wait_for(lambda: plain.status("crashing").get("restartCount", 0) > 0, "a crash")
    wait_for(lambda: "running" in _state(plain, "initialising", "load"), "initialising")
    return plain


def _state(plain: PlainNode, pod: str, container_name: str) -> Json:
    """Return the state of a container, empty before kubelet told one."""
    state: Json = plain.status(pod, container_name).get("state", {})
    return state


def test_no_pod_fails_over_twenty_restarts_in_a_row(inhabited: PlainNode) -> None:
    """Before: five pods, each in its state. During: kubelet restarts, and a pod comes each time at the worst moment.

    After: none failed, what ran still runs in the same container, ids are as before, and each pod that could not go on
    does so once its reason is gone.
    """
    plain = inhabited
    before, containers = plain.held(), {name: plain.status(name)["containerID"] for name in ("running", "initialised")}
    for number in range(RESTARTS):
        plain.restart_kubelet()
        restart_is_over(plain, f"late-{number}")
        assert plain.failed() == []
        assert before.items() <= plain.held().items()
    assert {name: plain.status(name)["containerID"] for name in containers} == containers
    assert len(plain.events("registered")) == RESTARTS + 1
    let_all_go_on(plain)
    assert plain.failed() == []


def restart_is_over(plain: PlainNode, probe: str) -> None:
    """Run a new pod: kubelet admits one after the other, so when it runs the older ones were admitted before it.

    A kubelet that restarts remembers the groups of probes that are gone until something else is allocated, so each of
    them needs others.
    """
    plain.start_pod(probe, 16, _FOR_EVER)
    plain.wait_running(probe)
    assert plain.is_disjoint()
    plain.delete_pod(probe)


def let_all_go_on(plain: PlainNode) -> None:
    """Take every reason to wait away and see each pod run."""
    plain.free_specification(1)
    plain.raise_flag("go")
    plain.wait_running("waiting", "initialising")
    crashes = plain.status("crashing")["restartCount"]
    assert crashes > 0
