"""Pods that nobody may change: a policy of somebody else on a real API server."""

from typing import Any, Final

from cluster_harness.api_client import ApiClient
from cluster_harness.errors import ApiError
from cluster_harness.waiting import wait_for

GUARDED: Final = {"guarded": "yes"}
"""The labels of such a pod."""
WORDS: Final = "this pod is guarded"
_GROUP: Final = "/apis/admissionregistration.k8s.io/v1"
_NAME: Final = "guards-pods"


def guard_pods(api: ApiClient, namespace: str, pod_spec: dict[str, Any]) -> None:
    """Keep everybody from changing pods with those labels; return when it is in force.

    ``pod_spec``: of a pod that is made in ``namespace`` to find out.
    """
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"]}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule], "objectSelector": {"matchLabels": GUARDED}},
        "validations": [{"expression": "false", "message": WORDS}],
    }
    api.create(f"{_GROUP}/validatingadmissionpolicies", {"metadata": {"name": _NAME}, "spec": spec})
    binding = {"policyName": _NAME, "validationActions": ["Deny"]}
    api.create(f"{_GROUP}/validatingadmissionpolicybindings", {"metadata": {"name": _NAME}, "spec": binding})
    pods = f"/api/v1/namespaces/{namespace}/pods"
    api.create(pods, {"metadata": {"name": "probe", "labels": GUARDED}, "spec": pod_spec})

    def refuses() -> bool:
        try:
            api.patch(f"{pods}/probe?dryRun=All", {"metadata": {"annotations": {"a": "b"}}})
        except ApiError as refused:
            return WORDS in str(refused)
        return False

    wait_for(refuses, "the policy to be in force")
