"""How a command ends, for scripts. The same three numbers hold for every command of the project."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit status of a command."""

    FINE = 0
    FINDINGS = 1
    """The command worked and tells of something that needs a person."""
    BAD_INPUT = 2
    """The command could not answer: wrong words, nothing of that name, no cluster."""
