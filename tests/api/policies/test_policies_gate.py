"""Only the operator takes the gate of placement off a pod, and none has it that the operator does not follow."""

import pytest

from cluster_harness.api_client import ApiClient
from cluster_harness.control_plane import ControlPlane
from cluster_harness.errors import ApiError
from cta_group_core.names import GATE_PLACEMENT
from group_pods import container, pod
from service_account import ServiceAccount

_UNGATED = {"spec": {"schedulingGates": None}}


@pytest.fixture
def gated(api: ApiClient, tenants: str) -> str:
    """Make a pod with the gate and one of somebody else; return its path."""
    made = pod(container(groups=32), gates=[GATE_PLACEMENT, "example.com/other"])
    api.create(f"/api/v1/namespaces/{tenants}/pods", made)
    return f"/api/v1/namespaces/{tenants}/pods/tenant"


def test_whoever_may_change_a_pod_may_not_take_the_gate_off(api: ApiClient, gated: str) -> None:
    """Even an administrator is told that the operator does it, and where to read what the pod waits for."""
    with pytest.raises(ApiError) as refused:
        api.patch(gated, _UNGATED)
    assert refused.value.sentence == (
        "pods \"tenant\" is forbidden: ValidatingAdmissionPolicy 'cta-group-gate' with binding 'cta-group-gate' denied "
        "request: only the operator of cta-group takes the gate ctagroup.dev/placement off a pod, once a GPU has room "
        "for it; kubectl cta explain pod/NAME says what it waits for"
    )


def test_gates_of_others_and_other_changes_are_free(api: ApiClient, gated: str) -> None:
    """The policy looks at one gate only."""
    stored = api.patch(gated, {"spec": {"schedulingGates": [{"name": GATE_PLACEMENT}]}})
    assert stored["spec"]["schedulingGates"] == [{"name": GATE_PLACEMENT}]
    api.patch(gated, {"metadata": {"labels": {"team": "a"}}})
    api.delete(gated)


def test_the_operator_takes_it_off_with_its_own_account(
    control_plane: ControlPlane, api: ApiClient, gated: str
) -> None:
    """The account of the chart's operator has the right to patch the pod, and the policy lets it."""
    ServiceAccount(control_plane, "cta-group", "cta-group-operator").merge_patch(gated, _UNGATED)
    assert "schedulingGates" not in api.get(gated)["spec"]


def test_a_pod_that_asks_for_nothing_may_not_have_it(api: ApiClient, tenants: str) -> None:
    """The operator follows no such pod, so the gate, copied from another pod, would stay for ever."""
    with pytest.raises(ApiError) as refused:
        api.create(f"/api/v1/namespaces/{tenants}/pods", pod(container(), gates=[GATE_PLACEMENT]))
    assert refused.value.sentence == (
        "pods \"tenant\" is forbidden: ValidatingAdmissionPolicy 'cta-group-gate' with binding 'cta-group-gate' denied "
        "request: the gate ctagroup.dev/placement is for pods that ask for nvidia.com/cta-group, and this one does "
        "not: take it out of spec.schedulingGates"
    )
    api.create(f"/api/v1/namespaces/{tenants}/pods?dryRun=All", pod(container(), gates=["example.com/other"]))
