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
_END_OF_TIME: Final = 253402300800.0
"""Beginning of the year 10000: nobody can write a later moment as a date."""


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
    for uuid, state in document.gpus.items():
        _check_times(uuid, state)
    return HealthRecord(document.epoch, {parse_gpu_uuid(uuid): state for uuid, state in document.gpus.items()})


def _check_times(uuid: str, state: GpuState) -> None:
    """Refuse what is no moment, such as NaN, which JSON lets through: every account of the node would fail by it."""
    told = [time for fault in state.faults for time in (fault.since, fault.latest)]
    told += [time for time in (state.healed_at, state.mps.since if state.mps else None) if time is not None]
    for time in told:
        if not 0 <= time < _END_OF_TIME:
            raise InvalidText(
                f"health record: gpus.{uuid}: {time} is no time: seconds since 1970, before the year 10000"
            )
