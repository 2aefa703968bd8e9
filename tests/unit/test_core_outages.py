"""GPUs that take nobody now are named with their reason to those who wait for room."""

from typing import Any

import pytest

from cta_group_core.nodes import GpuHealth, GpuStatus
from cta_group_core.outages import describe_outages


def a_gpu(index: int, **changes: Any) -> GpuStatus:
    """Return an H100."""
    facts = {"sm_count": 132, "capacity": 128, "minimum": 8, "step": 8, "free": 128}
    return GpuStatus(uuid=f"GPU-{index}", index=index, product="H100", compute_capability="9.0", **{**facts, **changes})


SICK = {"health": GpuHealth.UNHEALTHY, "health_reason": "XID 79: it has fallen off the bus"}
NO_MPS = {"health": GpuHealth.MPS_NOT_READY, "health_reason": "it ended 3 times in a minute"}
OUT = {"capacity": 0, "free": 0, "withheld": "MIG is on"}


@pytest.mark.parametrize(
    ("gpus", "words"),
    [
        ([a_gpu(0)], ""),
        ([a_gpu(1, **SICK), a_gpu(0)], "GPU 1 is Unhealthy (XID 79: it has fallen off the bus)"),
        ([a_gpu(0, **NO_MPS)], "GPU 0 waits for its MPS daemon (it ended 3 times in a minute)"),
        ([a_gpu(0, **OUT)], "GPU 0 offers no groups (MIG is on)"),
        ([a_gpu(0, health=GpuHealth.SUSPECT)], "GPU 0 is Suspect"),
        (
            [a_gpu(3, **SICK), a_gpu(2, **OUT), a_gpu(1, **NO_MPS), a_gpu(0, **OUT)],
            (
                "GPU 0 offers no groups (MIG is on); GPU 1 waits for its MPS daemon (it ended 3 times in a minute) "
                "and 2 more GPUs"
            ),
        ),
    ],
)
def test_words_about_gpus_that_are_out(gpus: list[GpuStatus], words: str) -> None:
    """The first two are named, the others counted."""
    assert describe_outages(gpus) == words


def test_long_reasons_are_cut() -> None:
    """A reason of a page does not push everything else out of the sentence."""
    told = describe_outages([a_gpu(0, health=GpuHealth.SUSPECT, health_reason="x" * 500)])
    assert len(told) < 200
    assert told.endswith("…)")
