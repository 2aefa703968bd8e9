"""Errors of the command line; each text is one sentence for the person who typed, and each ends the program with 2.

::

    CommandError
    ├── BadInput             what was typed cannot be meant
    ├── NotFound             what was named does not exist
    └── ClusterUnavailable   the cluster does not answer, or refuses, or is not set up
        ├── AccessDenied     whoever asks may not read this
        └── KindMissing      it does not know a kind
"""


class CommandError(Exception):
    """Root of what the command line raises on purpose."""


class BadInput(CommandError):
    """What was typed cannot be meant; says what is allowed."""


class NotFound(CommandError):
    """What was named does not exist; names it and the place that was looked at."""


class ClusterUnavailable(CommandError):
    """The cluster does not answer or refuses; names what was asked of it."""


class AccessDenied(ClusterUnavailable):
    """Whoever asks may not do this; names what was asked."""


class KindMissing(ClusterUnavailable):
    """The cluster does not know a kind; names it."""
