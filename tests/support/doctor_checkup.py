"""What ``kubectl cta doctor`` finds in a cluster of a test."""

from typing import Any

from cta_group_cli.doctor.gather import gather
from cta_group_cli.doctor.show import Told, examine
from cta_group_cli.ports import Node
from fake_doctor_reader import FakeDoctorReader, machine, status

WELL = FakeDoctorReader()
"""Nothing is wrong with it."""


def found(reader: FakeDoctorReader, name: str | None = None) -> list[Told]:
    """Return what the doctor finds."""
    return list(examine(gather(reader, name)))


def only(reader: FakeDoctorReader, name: str | None = None) -> Told:
    """Return the one thing that is found."""
    (told,) = found(reader, name)
    assert told.finding.remedy
    return told


def on_node(*gpus: Any, **more: Any) -> FakeDoctorReader:
    """Return the cluster whose node publishes this, and whose kubelet agrees with it."""
    published = status(*gpus, **more)
    agreed = machine("gpu-1", {"nvidia.com/cta-group": str(published.allocatable)})
    return WELL.but(all_nodes=[Node("gpu-1", published)], all_machines=[agreed])
