"""The health of a node's GPUs as text, so that a new process does not take a broken GPU for a healthy one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from cta_group_core.errors import InvalidText
from cta_group_core.health.evidence import Epoch
from cta_group_core.health.state import GpuState
from cta_group_core.ids import GpuUuid, parse_gpu_uuid


@dataclass(frozen=True, slots=True)
class HealthRecord:
    """What is known of every GPU, and the marks of the time in which it was learnt."""

    epoch: Epoch
    """Compared with the marks of now it gives the evidence of repairs in between."""
    gpus: Mapping[GpuUuid, GpuState]


@checked(frozen=True, config=ConfigDict(extra="forbid"))
class _Document:
    format: int
    epoch: Epoch
    gpus: dict[GpuUuid, GpuState]


_FORMAT: Final = 1
_TEXT: Final = TypeAdapter(_Document)


def dump_record(record: HealthRecord) -> str:
    """Return the record as one line of JSON."""
    return _TEXT.dump_json(_Document(_FORMAT, record.epoch, dict(record.gpus))).decode()


def load_record(text: str) -> HealthRecord:
    """Read what :func:`dump_record` wrote; raise :class:`InvalidText` for anything else, also of another release."""
    try:
        document = _TEXT.validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the text"
        raise InvalidText(f"health record: {place}: {first['msg']}") from error
    if document.format != _FORMAT:
        raise InvalidText(f"health record: format {document.format}; this release reads {_FORMAT}")
    return HealthRecord(document.epoch, {parse_gpu_uuid(uuid): state for uuid, state in document.gpus.items()})
