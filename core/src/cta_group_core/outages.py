"""GPUs of a node that take no new groups at the moment, in words for those who wait for room."""

from collections.abc import Iterable

from cta_group_core.bounded import shortened
from cta_group_core.nodes import GpuHealth, GpuStatus

_GPUS_TOLD = 2
_LONGEST_REASON = 160


def describe_outages(gpus: Iterable[GpuStatus]) -> str:
    """Say which GPUs are out and why, the first two; empty when none is."""
    told = [_words(gpu) for gpu in sorted(gpus, key=lambda gpu: gpu.index) if not gpu.is_placeable]
    more = f" and {len(told) - _GPUS_TOLD} more GPUs" if len(told) > _GPUS_TOLD else ""
    return "; ".join(told[:_GPUS_TOLD]) + more


def _words(gpu: GpuStatus) -> str:
    if gpu.withheld is not None or gpu.capacity == 0:
        return f"GPU {gpu.index} offers no groups{_because(gpu.withheld)}"
    if gpu.health is GpuHealth.MPS_NOT_READY:
        return f"GPU {gpu.index} waits for its MPS daemon{_because(gpu.health_reason)}"
    return f"GPU {gpu.index} is {gpu.health}{_because(gpu.health_reason)}"


def _because(reason: str | None) -> str:
    return f" ({shortened(reason, _LONGEST_REASON)})" if reason else ""
