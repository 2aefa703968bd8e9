"""What doctor says about one GPU, with the numbers and the way to mend it; a good GPU has no findings."""

import pytest

from cta_group_core.compatibility.findings import Severity
from cta_group_core.compatibility.gpu_findings import ForeignProcess, gpu_findings
from cta_group_core.nodes import PcieLink
from gpu_strategies import uuid_of
from measured_node import gpu, held, only


@pytest.mark.parametrize(
    ("facts", "severity", "words"),
    [
        ({"compute_mode": "Prohibited"}, Severity.ERROR, "no program can use it"),
        ({"compute_mode": "ExclusiveProcess", **held(128)}, Severity.WARNING, "a second process of that container"),
        ({"compute_mode": "Default", **held(32)}, Severity.WARNING, "without any limit"),
        ({"mig_mode": "Enabled"}, Severity.WARNING, "MIG is on"),
        (
            {"link": PcieLink(width=4, width_max=16, generation=5, generation_max=5)},
            Severity.WARNING,
            "4 of 16 lanes",
        ),
        (
            {"link": PcieLink(width=16, width_max=16, generation=1, generation_max=5)},
            Severity.INFO,
            "generation 1 of 5",
        ),
        ({"foreign_memory_mib": 600}, Severity.INFO, "use 600 MiB of its memory; the 1024 MiB that are never"),
        ({"foreign_memory_mib": 3000}, Severity.WARNING, "so 1976 MiB of the slices are not there"),
        ({"persistence_mode": False}, Severity.WARNING, "persistence mode is off"),
    ],
)
def test_gpus_with_findings(facts: dict[str, object], severity: Severity, words: str) -> None:
    """What is wrong with a GPU is told with its numbers, and mended by a command that names the GPU."""
    finding = only(gpu_findings(gpu(**facts)))
    assert finding.severity is severity
    assert words in finding.sentence
    assert finding.subject == f"GPU 0 ({uuid_of(0)})"
    assert "nvidia-smi -i" not in finding.remedy or uuid_of(0) in finding.remedy


@pytest.mark.parametrize(
    "facts",
    [
        {},
        held(128),
        {"compute_mode": "ExclusiveProcess", **held(32)},
        {"compute_mode": "ExclusiveProcess"},
        {"compute_mode": None, "mig_mode": None, "link": None, "persistence_mode": None, "foreign_memory_mib": None},
        {"link": PcieLink(width=0, width_max=16, generation=0, generation_max=5), **held(128)},
    ],
)
def test_gpus_without_findings(facts: dict[str, object]) -> None:
    """A mode that fits the tenants is right, and what a GPU does not tell is not held against it."""
    assert gpu_findings(gpu(**facts)) == ()


def test_compute_mode_is_left_alone_where_the_node_says_so() -> None:
    """With the setting off a shared GPU in the default mode is what was asked for."""
    assert gpu_findings(gpu(**held(32)), exclusive_mode=False) == ()


@pytest.mark.parametrize(
    ("mode", "pending", "words"),
    [("Disabled", "Enabled", "MIG changes to Enabled"), ("Enabled", "Disabled", "MIG changes to Disabled")],
)
def test_mig_that_will_change(mode: str, pending: str, words: str) -> None:
    """A MIG mode of the next reset that is another one is told before it happens."""
    *_, finding = gpu_findings(gpu(mig_mode=mode), mig_pending=pending)
    assert words in finding.sentence
    assert gpu_findings(gpu(mig_mode="Disabled"), mig_pending="Disabled") == ()


def test_foreign_processes_are_named() -> None:
    """Where it is known who takes the memory, they are named with what they take."""
    processes = [ForeignProcess(812, "Xorg", 200), ForeignProcess(4211, "firefox", 1500)]
    finding = only(gpu_findings(gpu(foreign_memory_mib=None), processes=processes))
    assert "use 1700 MiB of its memory: Xorg (pid 812, 200 MiB), firefox (pid 4211, 1500 MiB)" in finding.sentence
