"""``cta-group-plugin doctor`` as a person calls it on a cluster: in the plugin's pod of a node."""

import json
from typing import Any

from cluster_harness import release
from cluster_harness.tools import Tools

_DOCTOR = "cta-group-plugin doctor -o json || true"
"""The exit status tells of findings, and kubectl passes it on as its own."""


def findings_in_pod(tools: Tools) -> list[dict[str, Any]]:
    """Return what is found on the node of the plugin's pod, with the settings of the plugin that runs there."""
    output = tools.kubectl("-n", release.NAMESPACE, "exec", "ds/cta-group-plugin", "--", "sh", "-c", _DOCTOR)
    found: list[dict[str, Any]] = json.loads(output)["findings"]
    return found
