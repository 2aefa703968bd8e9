"""Pods that a kubelet refused because of the groups they ask for: which those are, and how long their like must wait.

kubelet fails such a pod for good, and its controller makes the next one at once: 4.6 a second were seen, for ever
(Kubernetes 1.37). So each refusal in a row lets the controller's next pod wait longer.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from cta_group_core.backoff import wait_seconds

REFUSED: Final = "UnexpectedAdmissionError"
"""kubelet's reason when a device could not be allocated (Kubernetes, pkg/kubelet/lifecycle)."""
FIRST_WAIT_SECONDS: Final = 5.0
LONGEST_WAIT_SECONDS: Final = 600.0
_GROWTH: Final = 4
"""With 5 s before the second attempt and four times as long each time: four refusals in the first five minutes."""
_TOGETHER_SECONDS: Final = 1.0
"""Pods that are refused so closely after one another are one attempt of their controller."""
_SHORTEST_MEMORY_SECONDS: Final = 60.0


class Cause(StrEnum):
    """Why a node did not give a pod its groups: the label of a metric."""

    ROOM = "room"
    """No GPU has room."""
    SIZE = "size"
    """No GPU there ever serves such a request."""
    PLUGIN = "plugin"
    """The plugin was away, its GPUs are not healthy, or it could not hold what kubelet chose."""


_CAUSES: Final = {"ResourceExhausted": Cause.ROOM, "FailedPrecondition": Cause.SIZE}
"""By the gRPC code that the plugin answers with; kubelet repeats it."""
_CODE: Final = re.compile(r"\bcode = (\w+)")
_RPC: Final = ("rpc error", "device plugin")


def cause_of(reason: str, message: str, resource_name: str, others: Collection[str] = ()) -> Cause | None:
    """Return why a node refused a pod its groups; None when it failed for anything else, or that is not certain.

    ``others``: further extended resources that the pod asks for. kubelet does not name the resource when a plugin
    itself refuses, so with others beside ours it could have been theirs.
    """
    if reason != REFUSED:
        return None
    names_ours = re.search(rf"(?<![\w./-]){re.escape(resource_name)}(?![\w./-])", message) is not None
    is_plugins_word = any(sign in message for sign in _RPC)
    if not names_ours and (others or not is_plugins_word):
        return None
    code = _CODE.search(message)
    return _CAUSES.get(code[1], Cause.PLUGIN) if code else Cause.PLUGIN


def does_not_honour_gates(scheduler: str) -> str:
    """Return what is to be known of a pod of a scheduler that binds pods whatever gates they have."""
    return f"scheduler {scheduler} does not honour gates: no GPU is chosen for its pods"


@dataclass(frozen=True, slots=True)
class Streak:
    """Refusals of one controller's pods in a row. Times in seconds of any one clock."""

    count: int
    last: float
    words: str = ""
    """kubelet's, of the newest."""

    @property
    def wait_seconds(self) -> float:
        """How long the controller's next pod waits after the last refusal."""
        return wait_seconds(self.count, FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS, growth=_GROWTH)

    def left_seconds(self, now: float) -> float:
        """How long the next pod waits still."""
        return max(0.0, self.last + self.wait_seconds - now)

    def is_over(self, now: float) -> bool:
        """Tell whether so long nothing was refused that the next refusal begins a new row."""
        return now >= self.last + max(_SHORTEST_MEMORY_SECONDS, 2 * self.wait_seconds)


def refused_again(before: Streak | None, now: float, words: str) -> Streak:
    """Return the row with one more refusal."""
    if before is None or before.is_over(now):
        return Streak(1, now, words)
    if now - before.last < _TOGETHER_SECONDS:
        return Streak(before.count, before.last, words)
    return Streak(before.count + 1, now, words)
