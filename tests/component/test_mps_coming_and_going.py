"""Daemons that another supervisor started, that nobody wants any more, and that are left when a supervisor stops."""

from mps_supervising import ONE, TWO, Supervising, share
from simulated_mps import SimulatedNode, eventually


async def test_a_daemon_of_an_earlier_supervisor_is_adopted(mps_node: SimulatedNode, supervisors: Supervising) -> None:
    """The next supervisor finds the daemon that runs, keeps it for its clients, and raises its ceiling."""
    with_client = await supervisors.start()
    await with_client.sync([share(ONE)])
    pid = mps_node.pid(ONE)
    with mps_node.client(ONE) as client:
        await with_client.stop()
        assert mps_node.pid(ONE) == pid, "a daemon with a client is left running"
        state = (await (await supervisors.start()).sync([share(ONE, sm_percent=50)]))[ONE]
        assert (state.ready, state.sm_percent) == (True, 50)
        assert mps_node.pid(ONE) == pid
        assert not client.is_dead()


async def test_a_daemon_nobody_wants_ends_only_without_clients(
    mps_node: SimulatedNode, supervisors: Supervising
) -> None:
    """A GPU that is not demanded any more keeps its daemon while a client lives, and loses it then."""
    supervisor = await supervisors.start()
    await supervisor.sync([share(ONE)])
    with mps_node.client(ONE) as client:
        assert await supervisor.sync([]) == {}
        await supervisor.sync([share(TWO)])
        assert mps_node.pid(ONE) is not None
        assert not client.is_dead()
    await eventually(lambda: mps_node.pid(ONE) is None, "the daemon has ended")
    assert mps_node.pid(TWO) is not None


async def test_stopping_ends_the_daemons_without_clients(mps_node: SimulatedNode, supervisors: Supervising) -> None:
    """A supervisor that stops leaves exactly the daemons that have clients."""
    supervisor = await supervisors.start()
    await supervisor.sync([share(ONE), share(TWO)])
    with mps_node.client(TWO):
        await supervisor.stop()
        assert mps_node.pid(ONE) is None
        assert mps_node.pid(TWO) is not None


async def test_a_gpu_that_nobody_uses_is_forgotten(mps_node: SimulatedNode, supervisors: Supervising) -> None:
    """When its daemon has ended nobody looks at it any more, and the series that describe it end."""
    supervisor = await supervisors.start()
    await supervisor.sync([share(ONE)])

    async def forgotten() -> bool:
        await supervisor.sync([])
        return supervisors.count("mps_daemon_ready") is None

    await eventually(forgotten, "GPU-1 is forgotten")
    assert mps_node.pid(ONE) is None
    assert supervisors.count("mps_daemon_starts_total") == 1


async def test_demands_of_a_plugin_that_another_has_followed_change_nothing(
    mps_node: SimulatedNode, supervisors: Supervising
) -> None:
    """The limits stay what the plugin wants that kubelet took last; the older one is told the states all the same."""
    supervisor = await supervisors.start()
    await supervisor.sync([share(ONE, sm_percent=25)], generation=1)
    await supervisor.sync([share(ONE, sm_percent=50)], generation=2)
    for older in ([share(ONE, sm_percent=25)], []):
        await supervisor.sync(older, generation=1)
        assert (await supervisor.sync([share(ONE, sm_percent=50)], generation=2))[ONE].sm_percent == 50
    states = await supervisor.sync([share(ONE, sm_percent=25), share(TWO)], generation=1)
    assert (states[ONE].ready, states[ONE].sm_percent) == (True, 50)
    assert (states[TWO].ready, "another plugin has registered later" in states[TWO].reason) == (False, True)
    assert mps_node.pid(TWO) is None
    assert (await supervisor.sync([share(ONE, sm_percent=25)], generation=3))[ONE].sm_percent == 25
