"""A pod that is only rehearsed: whether admission gates it now, and fits its arguments."""

from cluster_harness.tools import Tools
from cluster_harness.waiting import wait_for
from cta_group_core.names import ANNOTATION_ALIGNMENT, GATE_PLACEMENT
from team import RESOURCE


def wait_gated(tools: Tools, namespace: str) -> None:
    """Wait until pods are gated and aligned.

    The API server learns of a webhook, or finds it again, by and by, and a new operator learns of the GPUs.
    """
    wait_for(lambda: _is_gated(tools, namespace), "the webhook to gate and align pods")


def _is_gated(tools: Tools, namespace: str) -> bool:
    limits = {"limits": {RESOURCE: 32}}
    container = {"name": "vllm", "image": "vllm/vllm-openai:v0.27.1", "args": ["m"], "resources": limits}
    pod = {"metadata": {"name": "rehearsal"}, "spec": {"containers": [container]}}
    made = tools.api.create(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)
    is_aligned = ANNOTATION_ALIGNMENT in made["metadata"].get("annotations", {})
    return is_aligned and {"name": GATE_PLACEMENT} in made["spec"].get("schedulingGates", [])
