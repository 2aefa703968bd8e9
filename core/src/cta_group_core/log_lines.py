"""How a process's log is written: an event name and key/value fields a line, as text for people or JSON for collectors.

Nothing here logs: a record becomes a line. The processes share it, so that a collector reads all of them alike.
"""

import json
import logging
from datetime import UTC, datetime
from typing import Final, Literal

LogFormat = Literal["text", "json"]
LOG_FORMATS: Final[tuple[LogFormat, ...]] = ("text", "json")
LOG_LEVELS: Final = ("debug", "info", "warning", "error")

EVENT_FIELDS: Final = "event_fields"
"""Attribute of a record that holds the fields of its event, a dict; other libraries' records have none."""


def log_formatter(log_format: LogFormat) -> logging.Formatter:
    """Return what writes the lines of a format."""
    return _JsonFormatter() if log_format == "json" else _TextFormatter()


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={_text(value)}" for name, value in _fields_of(record).items())
        line = f"{_time_of(record)} {record.levelname.lower():7} {record.getMessage()}{fields}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time_of(record),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "logger": record.name,
            **_fields_of(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


def _fields_of(record: logging.LogRecord) -> dict[str, object]:
    fields = getattr(record, EVENT_FIELDS, {})
    return dict(fields) if isinstance(fields, dict) else {}


def _time_of(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text(value: object) -> str:
    text = str(value)
    is_plain = text.isprintable()
    if text and is_plain and not set(text) & set(' "='):
        return text
    # Whatever is not printable is escaped: it could end the line, or speak to the terminal of whoever reads it.
    return json.dumps(text, ensure_ascii=not is_plain)
