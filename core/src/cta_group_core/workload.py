"""CTAWorkload: one object per workload whose pods ask for groups. The schema is ``crds/``; these are its types.

The operator writes it and people read it; its sentences are made in :mod:`cta_group_core.explain`.
"""

import hashlib
from typing import Final

from cta_group_core.bounded import Count, Text
from cta_group_core.nodes import ApiModel, Condition

CONDITION_ADMISSIBLE = "Admissible"
"""False while a pod of the workload can not be created."""
CONDITION_PLACED = "Placed"
"""False while a pod of the workload waits for a node."""
CONDITION_WITHOUT_WEBHOOK = "WithoutWebhook"
"""True while a pod of the workload was admitted without the webhook; absent otherwise."""
CONDITION_ARGS_ALIGNED = "ArgsAligned"
"""False while the arguments of its vLLM server do not fit the slice and were not changed."""
CONDITION_ROLLOUT_SAFE = "RolloutSafe"
"""False while the next rollout could not make its first new pod, and ends none before it has."""
CONDITION_SCALE_SAFE = "ScaleSafe"
"""False while its autoscaler may ask for more than its quota can ever hold."""
CONDITION_CLUSTERS = "ClustersAvailable"
"""False while pods that need thread-block clusters are on GPUs without them; absent otherwise."""
OBSTACLES = (CONDITION_ADMISSIBLE, CONDITION_PLACED)
"""Conditions that keep pods from running while they are False. The others tell what may go wrong, or serve worse."""
CONDITION_WITHIN_BUDGET = "WithinBudget"
"""Whether the workload's servers keep its latency budget; only there when it has one. Never in the way of a pod."""

_LONGEST_NAME = 253


class WorkloadOwner(ApiModel):
    """The top owner of the pods: a Deployment, a StatefulSet, a Job, a pod of its own, or any other controller."""

    api_version: str
    kind: str
    name: str


class CeilingStatus(ApiModel):
    """The most that an autoscaler may ask for."""

    replicas: Count
    groups: Count
    set_by: str
    """Kind and name of the autoscaler."""


class RolloutStatus(ApiModel):
    """What a rollout may need beside the pods that run."""

    surge_replicas: Count
    surge_groups: Count
    unavailable_replicas: Count
    """Pods that may be missing meanwhile."""


class MemoryPlan(ApiModel):
    """What vLLM's memory comes to in the slice that a pod has on one product. MiB."""

    product: str
    slice_mib: Count
    context_mib: Count
    """Of the CUDA context."""
    reserve_mib: Count
    """Left for CUDA graphs and warm-up, which vLLM does not count."""
    utilization: str
    """The largest ``--gpu-memory-utilization`` that starts there, four decimals at most."""
    weights_mib: Count | None = None
    """None: the model's size is not known."""
    cache_mib: Count | None = None
    """What is left for the KV cache with that share."""


class ServerStatus(ApiModel):
    """The inference server that was found in the pod template."""

    engine: str
    container: str
    version: str | None = None
    arguments_form: str
    """How they are written: list, shell, script, env, unknown."""
    arguments: tuple[str, ...] = ()
    """Those that decide whether it fits, as they are written."""
    memory: tuple[MemoryPlan, ...] = ()


class BudgetMeasured(ApiModel):
    """One objective of a budget and what its servers did."""

    name: str
    """Measure and quantile, such as ``ttft-p95``."""
    limit_microseconds: int
    observed_microseconds: int | None = None
    """None while there are too few observations."""
    observations: int = 0


class BudgetStatus(ApiModel):
    """A latency budget, what was measured, and advice. Nobody acts on it but people."""

    wanted: str
    """The budget with every quantile written out; as it was written where it is none."""
    measured: tuple[BudgetMeasured, ...] = ()
    recommended_groups: Count | None = None
    """Groups that a pod should ask for; None where groups are not the answer, or it is not known."""
    advice: Text = ""


class WorkloadStatus(ApiModel):
    """What the operator observes."""

    owner: WorkloadOwner
    message: Text
    """One sentence that answers why the workload is not running, or says that it is."""
    groups_per_pod: Count = 0
    replicas_wanted: Count = 0
    replicas_running: Count = 0
    ceiling: CeilingStatus | None = None
    rollout: RolloutStatus | None = None
    server: ServerStatus | None = None
    budget: BudgetStatus | None = None
    """None without the annotation ``ctagroup.dev/budget``."""
    conditions: tuple[Condition, ...] = ()


_KUBERNETES_GROUPS: Final = {
    "Pod": "",
    "Deployment": "apps",
    "ReplicaSet": "apps",
    "StatefulSet": "apps",
    "DaemonSet": "apps",
    "Job": "batch",
    "CronJob": "batch",
}
"""Kinds of Kubernetes' own whose names others use for kinds of theirs (Volcano has a Job too), with their groups."""


def kind_word(kind: str, api_version: str = "") -> str:
    """Return how a kind is written: ``job``, and ``job.batch.volcano.sh`` for somebody else's kind of that name.

    ``api_version``: empty where only the kind is known; it is taken for Kubernetes' own then.
    """
    group = api_version.rpartition("/")[0]
    is_others = bool(api_version) and _KUBERNETES_GROUPS.get(kind, group) != group
    return f"{kind.lower()}.{group}" if is_others else kind.lower()


def object_name(kind: str, name: str, api_version: str = "") -> str:
    """Return the name of the CTAWorkload that explains a workload, in the workload's namespace: ``deployment-web``."""
    full = f"{kind_word(kind, api_version)}-{name}"
    if len(full) <= _LONGEST_NAME:
        return full
    digest = hashlib.sha256(full.encode()).hexdigest()[:10]
    return f"{full[: _LONGEST_NAME - len(digest) - 1].rstrip('-.')}-{digest}"
