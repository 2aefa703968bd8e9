"""Errors of the control plane side, one tree.

::

    OperatorError
    ├── BadSetting             a setting or a kubeconfig is wrong: exit, a person must act
    ├── LeadershipLost         another replica may lead now: stop writing
    ├── MetricsUnreadable      a vLLM server did not tell its metrics: ask again later
    ├── TaskEnded              a task that runs for ever ended: exit, so that a fresh process starts
    └── ApiError               one call to the Kubernetes API did not do what it was for
        ├── ApiUnavailable     no answer, or an answer that says "later": try again
        ├── Gone               the resourceVersion to watch from is too old: list again
        ├── NotFound           the object, or its kind, does not exist
        ├── Conflict           the object is newer than what was decided upon, or exists already
        ├── Rejected           the API server refuses the content, a failed JSON patch test too
        └── Forbidden          RBAC, or an admission policy
"""


class OperatorError(Exception):
    """Root of what the operator raises on purpose."""


class BadSetting(OperatorError, ValueError):
    """A setting is wrong; names it, what was given and what is allowed."""


class LeadershipLost(OperatorError):
    """The lease was not renewed in time."""


class MetricsUnreadable(OperatorError):
    """A vLLM server did not answer, or what it answered are no metrics of vLLM."""


class TaskEnded(OperatorError):
    """A task that runs for ever ended without saying why."""


class ApiError(OperatorError):
    """A call to the Kubernetes API failed. The message names method, path and the server's words."""


class ApiUnavailable(ApiError):
    """The API server did not answer, or is too busy."""


class Gone(ApiError):
    """The watch cannot go on from where it was."""


class NotFound(ApiError):
    """There is no such object."""


class Conflict(ApiError):
    """The object changed, or exists already."""


class Rejected(ApiError):
    """The content is not accepted."""


class Forbidden(ApiError):
    """The operator may not do this."""
