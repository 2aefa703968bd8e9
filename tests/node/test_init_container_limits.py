"""The limits of an init container hold over a restart of the plugin, though kubelet never lists it."""

import asyncio

from cluster_harness.waiting import wait_for
from cta_group_core.ids import GpuUuid
from cta_group_plugin.adapters.supervisor_look import look_at_supervisor
from plain_node import MPS_ROOT, PLUGIN, PlainNode
from plain_pods import FLAGS, container

_FOR_EVER = "trap exit TERM; while :; do sleep 1; done"
_UNTIL_FLAG = f"until [ -e {FLAGS}/go ]; do sleep 0.2; done"


def test_init_container_keeps_its_limits_when_the_plugin_restarts(plain: PlainNode) -> None:
    """It runs with 64 groups, and what kubelet lists of its pod are the 8 of the main container, which waits for it.

    The pod that starts after the restart shows that the new plugin has told the supervisor what it knows.
    """
    plain.start_supervisor()
    plain.start_plugin(count=1)
    initial = [container("load", _UNTIL_FLAG, 64)]
    plain.create_pod("loading", {"initContainers": initial, "containers": [container("main", _FOR_EVER, 8)]})
    wait_for(lambda: "running" in plain.status("loading", "load").get("state", {}), "initialising")
    assert percent(plain) == 49
    plain.stop(PLUGIN)
    plain.start_plugin(count=1)
    plain.start_pod("after", 8, _FOR_EVER)
    plain.wait_running("after")
    assert percent(plain) == 49
    plain.raise_flag("go")
    plain.wait_running("loading")
    assert plain.failed() == []


def percent(plain: PlainNode) -> int:
    """Return what the MPS daemon of the only GPU allows to new clients, percent of its SMs."""
    states = asyncio.run(look_at_supervisor(plain.path(MPS_ROOT) / "supervisor.sock"))
    return states[GpuUuid(plain.uuid(0))].sm_percent
