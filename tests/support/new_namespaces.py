"""Namespaces in which pods can be created at once."""

from collections.abc import Mapping

from cluster_harness.api_client import ApiClient, Json
from cluster_harness.waiting import wait_for


def new_namespace(api: ApiClient, prefix: str, labels: Mapping[str, str] | None = None) -> str:
    """Make a namespace whose name begins with ``prefix`` and return its name.

    Its default service account is there: without it the API server refuses every pod, and the controller manager makes
    it a moment after the namespace, which is long on a busy machine.
    """
    return _make(api, {"generateName": f"{prefix}-", "labels": dict(labels or {})})


def make_namespaces(api: ApiClient, *names: str) -> None:
    """Make namespaces of these names; pods can be created in each of them then."""
    for name in names:
        _make(api, {"name": name})


def _make(api: ApiClient, metadata: Json) -> str:
    name: str = api.create("/api/v1/namespaces", {"metadata": metadata})["metadata"]["name"]
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    wait_for(lambda: api.find(account), f"the default service account of {name}")
    return name
