"""Init containers of before this process started, and the limits that they need."""

from collections.abc import Iterable

from background import in_background, until_view
from cta_group_core.ids import GroupId
from cta_group_plugin.accounts import AccountKeeper
from cta_group_plugin.ceilings import demands_of
from cta_group_plugin.ports import MpsDemand, PodDevices, whole_demand
from cta_group_plugin.settings import EnforcementSettings
from cta_group_plugin.state import NodeState
from cta_group_plugin.testing import FakePodResources
from cta_group_plugin.unlisted import UnlistedHolders
from plugin_values import account, groups, node_of, offer, uuid_of


def held(uid: str, container: str, ids: Iterable[GroupId]) -> PodDevices:
    """Return a container of kubelet's record."""
    return PodDevices(uid, container, frozenset(map(str, ids)))


async def test_limit_stays_as_high_as_a_running_init_container_needs() -> None:
    """The plugin restarts while an init container runs with 64 groups: kubelet lists only the 8 of what comes after."""
    state, resources = NodeState(), FakePodResources()
    state.learn_devices(node_of(1), offer(1), {})
    resources.told = account({"a": groups(0, range(8))})
    record = held("uid-a", "main", groups(0, range(8))), held("uid-a", "warm-up", groups(0, range(64)))
    async with in_background(AccountKeeper(state, resources, record=lambda: record).run):
        await until_view(state, lambda view: view.holders_are_known)
    assert demands_of(state.view, EnforcementSettings()) == (MpsDemand(uuid_of(0), 49, 39992),)


async def test_init_container_with_a_whole_gpu_keeps_daemons_off() -> None:
    """Its pod's main container has nothing, so kubelet lists nobody."""
    state, resources = NodeState(), FakePodResources()
    state.learn_devices(node_of(1), offer(1), {})
    record = (held("uid-a", "warm-up", groups(0, range(128))),)
    async with in_background(AccountKeeper(state, resources, record=lambda: record).run):
        await until_view(state, lambda view: view.holders_are_known)
    assert demands_of(state.view, EnforcementSettings()) == (whole_demand(uuid_of(0)),)


LISTED = account({"a": groups(0, range(8))})
MAIN = held("uid-a", "main", groups(0, range(8)))
INIT = held("uid-a", "init", groups(0, range(64)))
ENDED = held("uid-z", "main", groups(0, range(96, 128)))


def found(*record: PodDevices, sees_all_grants: bool, holders: UnlistedHolders | None = None) -> list[int]:
    """Return the sizes that are found beside what is listed."""
    entries = [(one, frozenset(map(GroupId.parse, one.ids))) for one in record]
    found_now = (holders or UnlistedHolders()).after(entries, LISTED, sees_all_grants=sees_all_grants)
    return [len(one.ids) for one in found_now]


def test_init_container_of_a_living_pod_is_found_at_any_time() -> None:
    """Another container of its pod is listed, so the pod lives."""
    assert found(MAIN, INIT, sees_all_grants=True) == [64]


def test_container_of_an_unknown_pod_counts_if_it_is_from_before() -> None:
    """Later ones this process has seen itself, so an entry of one of those is of a pod that ended."""
    assert found(MAIN, ENDED, sees_all_grants=False) == [32]
    assert found(MAIN, ENDED, sees_all_grants=True) == []


def test_container_from_before_counts_until_kubelet_forgets_it() -> None:
    """Also when this process sees all grants by then; once gone from the record it does not come back."""
    holders = UnlistedHolders()
    assert found(MAIN, ENDED, sees_all_grants=False, holders=holders) == [32]
    assert found(MAIN, ENDED, sees_all_grants=True, holders=holders) == [32]
    assert found(MAIN, sees_all_grants=True, holders=holders) == []
    assert found(MAIN, ENDED, sees_all_grants=True, holders=holders) == []


def test_entry_whose_groups_somebody_else_has_is_of_a_pod_that_ended() -> None:
    """Its groups were given to another pod, and kubelet has not written that down yet."""
    assert found(MAIN, held("uid-z", "main", groups(0, range(4, 36))), sees_all_grants=False) == []


async def test_ids_of_other_plugins_hold_nothing() -> None:
    """They were given out under our name before this plugin came."""
    state = NodeState()
    state.learn_devices(node_of(1), offer(1), {})
    record = (PodDevices("uid-b", "main", frozenset({"nvidia0"})),)
    async with in_background(AccountKeeper(state, FakePodResources(), record=lambda: record).run):
        await until_view(state, lambda view: view.holders_are_known)
    assert state.view.unlisted == ()
