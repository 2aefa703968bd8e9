"""What an explanation is made of: how far each pod of a workload has come, and what keeps others from being made."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from cta_group_core.denials import Denial
from cta_group_core.ending_pods import EndingPod
from cta_group_core.explain_growth import Ceiling, GrowthFacts
from cta_group_core.explain_quota import QuotaFacts
from cta_group_core.rollout import Rollout


class Stage(IntEnum):
    """How far a pod has come. A smaller one is told first."""

    HELD = 0
    """Gated; a node was chosen, and the API server does not let its gate be taken off."""
    NO_ROOM = 1
    """Gated; no node has room for it."""
    WAITING = 2
    """Gated; not decided yet."""
    FAILED = 3
    """Ended without success; its controller makes another one."""
    UNSCHEDULED = 4
    """Released, but the scheduler finds no node."""
    STARTING = 5
    """Bound to a node, not running yet."""
    CRASHING = 6
    """On its node, where a container of it ends and is started again."""
    RUNNING = 7
    DONE = 8
    """Ended with success."""


WAITING_STAGES = (Stage.HELD, Stage.NO_ROOM, Stage.WAITING, Stage.UNSCHEDULED)
"""Of pods that are on no node yet."""
_ENDED = (Stage.FAILED, Stage.DONE)


@dataclass(frozen=True, slots=True)
class PodFacts:
    """One pod of a workload."""

    name: str
    stage: Stage
    words: str = ""
    """What the scheduler, kubelet or the placement says about it."""


@dataclass(frozen=True, slots=True)
class CreateFailure:
    """A pod that its controller could not create."""

    text: str
    """What the API server said."""
    denial: Denial | None = None
    """The numbers, when it was a quota."""


@dataclass(frozen=True, slots=True)
class WorkloadFacts:
    """Everything the sentence is made of."""

    wanted: int
    groups_per_pod: int
    pods: Sequence[PodFacts] = ()
    failure: CreateFailure | None = None
    quota: QuotaFacts | None = None
    resting: str = ""
    """Why its controller makes no pods now, by its own word; empty when it does."""
    ending: Sequence[EndingPod] = ()
    """Its pods that are being deleted; they are none of ``pods``."""
    lost: str = ""
    """Which of its pods run on nodes that Kubernetes does not hear of; empty for none."""
    slipped: int = 0
    """Pods that were admitted without the webhook."""
    without_clusters: str = ""
    """What is to be said of pods on GPUs that lack the clusters which they need; empty: nothing."""
    rollout: Rollout | None = None
    ceiling: Ceiling | None = None
    largest_fit: int | None = None
    """The largest request that some GPU has room for now; None where nobody knows."""

    @property
    def growth(self) -> GrowthFacts:
        """What it may need beside its pods of now."""
        return GrowthFacts(
            groups_per_pod=self.groups_per_pod,
            wanted=self.wanted,
            living=self.living,
            rollout=self.rollout,
            ceiling=self.ceiling,
            quota=self.quota,
            largest_fit=self.largest_fit,
            pods_wait=any(pod.stage in WAITING_STAGES for pod in self.pods),
        )

    @property
    def running(self) -> int:
        """How many pods run."""
        return sum(pod.stage is Stage.RUNNING for pod in self.pods)

    @property
    def living(self) -> int:
        """How many pods exist and have not ended; more than wanted during a rollout."""
        return sum(pod.stage not in _ENDED for pod in self.pods)

    @property
    def missing(self) -> int:
        """How many pods are wanted and do not exist."""
        return max(0, self.wanted - self.living)
