"""A pod that is only rehearsed: whether admission gates it now."""

import json

from cluster_harness.tools import Tools
from cluster_harness.waiting import wait_for
from cta_group_core.names import GATE_PLACEMENT
from team import RESOURCE

_PATIENCE_SECONDS = 60.0


def wait_gated(tools: Tools, namespace: str, timeout_seconds: float = _PATIENCE_SECONDS) -> None:
    """Wait until pods are gated and aligned: the API server learns of a webhook, or finds it again, by and by."""
    wait_for(lambda: _is_gated(tools, namespace), "the webhook to be asked about pods", timeout_seconds)


def _is_gated(tools: Tools, namespace: str) -> bool:
    container = {"name": "main", "image": "localhost/none:1", "resources": {"limits": {RESOURCE: 32}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "rehearsal"}, "spec": {"containers": [container]}}
    words = ("create", "--dry-run=server", "-o", "json", "-n", namespace, "-f", "-")
    made = json.loads(tools.kubectl(*words, stdin=json.dumps(pod)))
    return {"name": GATE_PLACEMENT} in made["spec"].get("schedulingGates", [])
