"""The health of a node's GPUs as text, so that a new process does not take a broken GPU for a healthy one.

Read without a library for it: the node's process keeps this record, and pydantic would be a fifth of its memory.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

from cta_group_core.errors import InvalidText
from cta_group_core.health.evidence import Epoch
from cta_group_core.health.state import GpuState
from cta_group_core.health.strict_json import Mismatch, read_as
from cta_group_core.ids import GpuUuid, parse_gpu_uuid


@dataclass(frozen=True, slots=True)
class HealthRecord:
    """What is known of every GPU, and the marks of the time in which it was learnt."""

    epoch: Epoch
    """Compared with the marks of now it gives the evidence of repairs in between."""
    gpus: Mapping[GpuUuid, GpuState]


@dataclass(frozen=True, slots=True)
class _Document:
    format: int
    epoch: Epoch
    gpus: Mapping[str, GpuState]


_FORMAT: Final = 1


def dump_record(record: HealthRecord) -> str:
    """Return the record as one line of JSON."""
    gpus = {str(uuid): state for uuid, state in record.gpus.items()}
    return json.dumps(asdict(_Document(_FORMAT, record.epoch, gpus)), ensure_ascii=False)


def load_record(text: str) -> HealthRecord:
    """Read what :func:`dump_record` wrote; raise :class:`InvalidText` for anything else, also of another release."""
    try:
        document = read_as(_Document, json.loads(text))
    except Mismatch as wrong:
        raise InvalidText(f"health record: {wrong.place or 'the text'}: {wrong.problem}") from wrong
    except (ValueError, RecursionError) as wrong:
        raise InvalidText(f"health record: the text: not JSON ({wrong})") from wrong
    if document.format != _FORMAT:
        raise InvalidText(f"health record: format {document.format}; this release reads {_FORMAT}")
    return HealthRecord(document.epoch, {parse_gpu_uuid(uuid): state for uuid, state in document.gpus.items()})
