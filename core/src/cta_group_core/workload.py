"""CTAWorkload: one object per workload whose pods ask for groups. The schema is ``crds/``; these are its types.

The operator writes it and people read it; its sentences are made in :mod:`cta_group_core.explain`.
"""

import hashlib

from cta_group_core.nodes import ApiModel, Condition

CONDITION_ADMISSIBLE = "Admissible"
"""False while a pod of the workload can not be created."""
CONDITION_PLACED = "Placed"
"""False while a pod of the workload waits for a node."""
CONDITION_WITHOUT_WEBHOOK = "WithoutWebhook"
"""True while a pod of the workload was admitted without the webhook; absent otherwise."""

_LONGEST_NAME = 253


class WorkloadOwner(ApiModel):
    """The top owner of the pods: a Deployment, a StatefulSet, a Job, a pod of its own, or any other controller."""

    api_version: str
    kind: str
    name: str


class WorkloadStatus(ApiModel):
    """What the operator observes."""

    owner: WorkloadOwner
    message: str
    """One sentence that answers why the workload is not running, or says that it is."""
    groups_per_pod: int = 0
    replicas_wanted: int = 0
    replicas_running: int = 0
    conditions: tuple[Condition, ...] = ()


def object_name(kind: str, name: str) -> str:
    """Return the name of the CTAWorkload that explains a workload, in the workload's namespace: ``deployment-web``."""
    full = f"{kind.lower()}-{name}"
    if len(full) <= _LONGEST_NAME:
        return full
    digest = hashlib.sha256(full.encode()).hexdigest()[:10]
    return f"{full[: _LONGEST_NAME - len(digest) - 1].rstrip('-.')}-{digest}"
