"""What admission does about vLLM's arguments: a setting of the operator, and the annotation of one workload."""

from enum import StrEnum

from cta_group_core.choice import read_choice
from cta_group_core.names import ANNOTATION_ALIGN


class AlignMode(StrEnum):
    """The annotation ``ctagroup.dev/align`` of the pod template decides for one workload."""

    ON = "on"
    """Change them so that they fit the slice, and say so on the pod."""
    REPORT = "report"
    """Only say what would be changed."""
    OFF = "off"


def parse_align_mode(text: str) -> AlignMode:
    """Read the annotation; raises InvalidText that names what is allowed."""
    return read_choice(AlignMode, ANNOTATION_ALIGN, text)
