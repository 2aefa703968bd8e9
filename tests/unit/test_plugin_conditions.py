"""What the plugin says of kubelet's account, as a condition of its node."""

from cta_group_plugin.conditions import HOLDERS_KNOWN, conditions_of
from cta_group_plugin.settings import EnforcementSettings
from cta_group_plugin.state import NodeState
from plugin_values import account


def condition(state: NodeState) -> tuple[str, str, str]:
    """Return status, reason and message."""
    found = next(one for one in conditions_of(state.view, EnforcementSettings()) if one.type == HOLDERS_KNOWN)
    return found.status, found.reason, found.message


async def test_an_account_that_kubelet_does_not_give_is_a_condition() -> None:
    """The path that was looked for and the value to set are in it; it goes when kubelet answers."""
    state = NodeState()
    assert condition(state)[:2] == ("Unknown", "NotAsked")
    state.learn_account_problem("/var/lib/kubelet/pod-resources/kubelet.sock: List failed: UNAVAILABLE")
    truth, _, told = condition(state)
    assert truth == "False"
    assert "/var/lib/kubelet/pod-resources/kubelet.sock" in told
    assert "kubelet.rootDir" in told
    state.learn_account(account({}), asked_at=0.0)
    assert condition(state)[0] == "True"
