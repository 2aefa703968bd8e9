"""How a Deployment replaces its pods, and what that needs beside the pods that run.

Source of the arithmetic: Kubernetes, deployment controller, ``ResolveFenceposts``. A share of the surge is rounded up,
one of what may be missing down; when both come to nothing, one pod may be missing.
"""

import re
from dataclasses import dataclass

_SHARE = re.compile(r"\d{1,4}%", re.ASCII)
_DEFAULT = "25%"
Amount = int | str | None
"""A number of pods, a share of the replicas such as ``25%``, or nothing."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """What a workload's rollout does. Numbers of pods."""

    surge: int = 0
    """Most pods that it makes above those that are wanted."""
    unavailable: int = 1
    """Pods that may be missing meanwhile. 0: nothing is ended before a new pod is ready."""
    surge_words: str = ""
    """maxSurge as it is written."""

    @property
    def needs_room_first(self) -> bool:
        """Tell whether it cannot go on before one more pod runs."""
        return self.surge > 0 and self.unavailable == 0


def rolling(replicas: int, max_surge: Amount, max_unavailable: Amount) -> Rollout:
    """Return what a rolling update of that many replicas does. What cannot be read counts as Kubernetes' default."""
    surge_words = _written(max_surge)
    surge = _pods(surge_words, replicas, up=True)
    unavailable = _pods(_written(max_unavailable), replicas, up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Rollout(surge, min(unavailable, replicas), surge_words)


def _written(amount: Amount) -> str:
    text = _DEFAULT if amount is None else str(amount)
    return text if text.isdecimal() or _SHARE.fullmatch(text) else _DEFAULT


def _pods(text: str, replicas: int, *, up: bool) -> int:
    if not text.endswith("%"):
        return int(text)
    part = int(text[:-1]) * replicas
    return -(-part // 100) if up else part // 100
