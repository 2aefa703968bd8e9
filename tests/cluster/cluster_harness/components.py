"""A program that the supervisor runs: what it is called, how it is started and where its log goes."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

LOG_FOLDER = "logs"
_TAIL_LINES = 30


@dataclass(frozen=True, slots=True)
class Component:
    """One program of a cluster. ``environment`` is added to that of the supervisor."""

    name: str
    argv: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)

    def log_file(self, folder: Path) -> Path:
        """Return where its standard output and error go; a restart appends."""
        return log_file(folder, self.name)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON can carry them."""
        return asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        """Return what ``to_json`` was made from."""
        return cls(fields["name"], tuple(fields["argv"]), fields["environment"])


def flags(**values: object) -> tuple[str, ...]:
    """Return ``--a-name=value`` for each ``a_name=value``."""
    return tuple(f"--{name.replace('_', '-')}={value}" for name, value in values.items())


def log_file(folder: Path, component: str) -> Path:
    """Return the log file of the component in the state folder ``folder``."""
    return folder / LOG_FOLDER / f"{component}.log"


def log_tail(folder: Path, component: str) -> str:
    """Return the last lines of the component's log, for an error message."""
    path = log_file(folder, component)
    if not path.exists():
        return f"({component} has no log)"
    return "\n".join(path.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
