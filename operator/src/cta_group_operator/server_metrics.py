"""What the operator needs of vLLM servers, and where they tell it: like :mod:`.ports`, beside it."""

from dataclasses import dataclass
from typing import Protocol

from cta_group_core.budget.target import MetricsTarget, Served
from cta_group_core.budget.window import Reading


class ServerMetrics(Protocol):
    """The metrics of vLLM servers."""

    async def read(self, address: str, target: MetricsTarget) -> Reading:
        """Return what the server at an IP address tells now; raises MetricsUnreadable within seconds."""


@dataclass(frozen=True, slots=True)
class BudgetView:
    """A latency budget as it is written, and where the servers that it is for tell their latencies."""

    text: str
    served: Served
