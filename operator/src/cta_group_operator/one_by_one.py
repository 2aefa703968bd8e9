"""Several objects in one round, each with its turn: what the API server says of one does not end those of the others.

One object that a policy, a webhook or another writer guards may fail for as long as it exists. A loop that such an
error leaves would never come to what stands behind it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from cta_group_operator.errors import ApiError, Conflict
from cta_group_operator.logs import EventLog

_log = EventLog(__name__)


class OneByOne:
    """Keeps what went wrong until everyone had a turn. A lost lease is no such error: it ends all turns at once."""

    def __init__(self) -> None:
        self.failed: list[ApiError] = []

    @contextmanager
    def one(self, what: object) -> Iterator[None]:
        """Give ``what`` its turn, whose ApiError is kept for the end."""
        try:
            yield
        except ApiError as failed:
            self.failed.append(failed)
            tell = _log.debug if isinstance(failed, Conflict) else _log.warning
            tell("one_failed", object=what, cause=failed)

    def end(self) -> None:
        """Raise the first error that was kept, one that is no Conflict before those that are: the round is repeated."""
        for failed in sorted(self.failed, key=lambda one: isinstance(one, Conflict)):
            raise failed
