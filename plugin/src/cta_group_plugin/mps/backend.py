"""How the limits of slices are enforced on a GPU, as an interface.

``percentage`` is the one implementation. Static partitions (drivers from R590) and namespaces of protocol 3 (from R615)
would be others: they would set something else on the same daemon, and nothing beside them would change.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cta_group_plugin.mps.control import MpsControlClient
from cta_group_plugin.ports import MpsDemand


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What new clients get at most, as the daemon said."""

    sm_percent: int
    memory_mib: int
    """0: not limited."""


class LimitBackend(Protocol):
    """A way to limit the clients of one GPU's daemon."""

    name: str
    """As CTANode tells it in ``enforcement.backend``."""

    async def apply(self, control: MpsControlClient, demand: MpsDemand, servers: Sequence[int]) -> Ceiling:
        """Make the limits of a daemon that answers, and of its servers, the demanded ones; return what is true then.

        Raises MpsUnavailable when a limit does not take: nothing may start on the GPU then.
        """
