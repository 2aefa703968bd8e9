"""``cta-group-plugin doctor`` as a person calls it on a cluster: in the plugin's pod of a node."""

import json
from typing import Any

from cluster_harness import release
from cluster_harness.tools import Tools
from cluster_harness.waiting import wait_for

_PODS = f"/api/v1/namespaces/{release.NAMESPACE}/pods?labelSelector=app.kubernetes.io%2Fcomponent%3Dplugin"
_DOCTOR = "cta-group-plugin doctor -o json || true"
"""The exit status tells of findings, and kubectl passes it on as its own."""


def findings_in_pod(tools: Tools) -> list[dict[str, Any]]:
    """Return what is found on the only node, with the settings of the plugin there, once a single one is left."""
    name = wait_for(lambda: _only_plugin(tools), "one plugin on the node")
    output = tools.kubectl("-n", release.NAMESPACE, "exec", name, "--", "sh", "-c", _DOCTOR)
    found: list[dict[str, Any]] = json.loads(output)["findings"]
    return found


def _only_plugin(tools: Tools) -> str | None:
    """Return the plugin's pod; None while a rolling update has two, or the one has not begun."""
    pods = tools.api.items(_PODS)
    names = [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Running"]
    return str(names[0]) if len(pods) == len(names) == 1 else None
