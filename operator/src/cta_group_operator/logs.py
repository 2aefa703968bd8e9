"""The log of the control plane side, on standard error; core has the form of a line, but writes none itself."""

import logging
import sys

from cta_group_core.log_lines import EVENT_FIELDS, LogFormat, log_formatter


class EventLog:
    """Writes events under one name of the logging tree: ``log.info("registered", socket=name)``."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, event: str, /, **fields: object) -> None:
        """Say what only a developer wants to know."""
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, /, **fields: object) -> None:
        """Say what happened as it should."""
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, /, **fields: object) -> None:
        """Say what went wrong and is dealt with."""
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, /, *, cause: BaseException | None = None, **fields: object) -> None:
        """Say what went wrong and needs a person; ``cause`` adds its traceback."""
        self._write(logging.ERROR, event, fields, cause)

    def _write(self, level: int, event: str, fields: dict[str, object], cause: BaseException | None = None) -> None:
        self._logger.log(level, event, extra={EVENT_FIELDS: fields}, exc_info=cause)


def set_up_logs(level: str, log_format: LogFormat) -> None:
    """Send every log of this process to standard error in the chosen form. Call it once, at the start."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(log_formatter(log_format))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
