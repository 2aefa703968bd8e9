"""Logs of the control plane side: an event name and key/value fields a line, text for people or JSON for collectors."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final, Literal

LogFormat = Literal["text", "json"]
LOG_FORMATS: Final[tuple[LogFormat, ...]] = ("text", "json")
LOG_LEVELS: Final = ("debug", "info", "warning", "error")

_FIELDS = "event_fields"


class EventLog:
    """Writes events under one name of the logging tree: ``log.info("registered", socket=name)``."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, event: str, **fields: object) -> None:
        """Say what only a developer wants to know."""
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        """Say what happened as it should."""
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        """Say what went wrong and is dealt with."""
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, *, cause: BaseException | None = None, **fields: object) -> None:
        """Say what went wrong and needs a person; ``cause`` adds its traceback."""
        self._write(logging.ERROR, event, fields, cause)

    def _write(self, level: int, event: str, fields: dict[str, object], cause: BaseException | None = None) -> None:
        self._logger.log(level, event, extra={_FIELDS: fields}, exc_info=cause)


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
    fields = getattr(record, _FIELDS, {})
    return dict(fields) if isinstance(fields, dict) else {}


def _time_of(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text(value: object) -> str:
    text = str(value)
    return text if text and not set(text) & set(' "=\n') else json.dumps(text, ensure_ascii=False)


def set_up_logs(level: str, log_format: LogFormat) -> None:
    """Send every log of this process to standard error in the chosen form. Call it once, at the start."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if log_format == "json" else _TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
