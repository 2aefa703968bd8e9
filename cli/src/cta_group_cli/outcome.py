"""How a command ends, whatever happens: only findings end it with the status of findings."""

import os
import sys
import traceback
from collections.abc import Callable
from typing import Final

from cta_group_cli.errors import CommandError
from cta_group_cli.exits import Exit
from cta_group_cli.terminal import accept_every_character, say

INTERRUPTED: Final = 130
"""Exit status after Ctrl-C, as shells count it: 128 and the number of the signal."""


def outcome_of(command: str, run: Callable[[], Exit]) -> int:
    """Run a command and return its exit status. What went wrong is told on standard error."""
    accept_every_character()
    try:
        status = run()
        if sys.stdout is not None:  # it is None when the caller closed it
            sys.stdout.flush()
    except CommandError as refused:
        say(f"{command}: {refused}", to=sys.stderr)
    except BrokenPipeError:  # the reader of a pipe has seen enough
        _discard_output()
        return Exit.FINE
    except KeyboardInterrupt:
        _discard_output()
        return INTERRUPTED
    except OSError as unwritten:
        _discard_output()
        say(f"{command}: the answer could not be written: {unwritten}", to=sys.stderr)
    except Exception:  # noqa: BLE001 - the outermost edge: Python would end with 1, which says that there are findings
        traceback.print_exc()
    else:
        return status
    return Exit.BAD_INPUT


def _discard_output() -> None:
    """Let nothing be left to write when Python ends, which would fail again."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
