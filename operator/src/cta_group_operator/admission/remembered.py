"""Decisions about pods that are alike in everything that admission reads: most often those of one template.

A Deployment that grows asks the same of each of its pods. Reading a server's arguments takes more than all the rest of
an answer, and the pod's creation waits for it.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec

from cta_group_core.vllm.gpu import GpuKind
from cta_group_operator.admission.decision import Mutation
from cta_group_operator.admission.gpu_kinds import SliceFacts
from cta_group_operator.admission.pod import Pod, Spec

_MOST: Final = 256
"""Templates whose pods are created at the same time; the one that was asked about longest ago goes first."""
_PODS: Final = msgspec.json.Decoder(Pod)


@dataclass(frozen=True, slots=True)
class _Known:
    """Kinds of GPU that were looked up."""

    found: frozenset[GpuKind]

    def kinds(self, spec: Spec) -> Collection[GpuKind]:
        """Return them, whatever is asked."""
        del spec
        return self.found


class Remembered:
    """Asks ``decide`` once for pods that are alike, as long as the kinds of GPU that they can land on are the same.

    ``decide`` must depend on nothing else. What it raises is not remembered.
    """

    def __init__(self, decide: Callable[[Pod, SliceFacts], Mutation], facts: SliceFacts) -> None:
        self._facts = facts
        self._decided = lru_cache(maxsize=_MOST)(
            lambda text, kinds: decide(_PODS.decode(text), _Known(kinds))  # a fresh pod: deciding may change it
        )

    def __call__(self, pod: Pod) -> Mutation:
        """Return the decision about a pod."""
        return self._decided(msgspec.json.encode(pod), frozenset(self._facts.kinds(pod.spec)))
