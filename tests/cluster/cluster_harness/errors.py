"""What can go wrong while a cluster is built, started or used.

HarnessError
├── BuildError     a program could not be built
├── StartError     a component ended, or did not become ready in time; ends with the tail of its log
├── DeadlineError  a condition did not come true in time
├── CommandError   a command inside the node failed; ends with what it printed
├── QueryError     Prometheus refused a query; ends with its sentence
└── ApiError       the API server refused a request; has its status code and its sentence
"""

import json


class HarnessError(Exception):
    """Base of all errors of this package."""


class BuildError(HarnessError):
    """A program could not be built; the message says which one, and ends with what the compiler said."""


class StartError(HarnessError):
    """A component did not come up; the message names it and ends with the tail of its log."""


class DeadlineError(HarnessError):
    """A condition did not come true in time; the message says which, and what was last seen."""


class CommandError(HarnessError):
    """A command failed; the message has the command, its exit status and its output."""


class QueryError(HarnessError):
    """Prometheus refused a query; the message has the query and what Prometheus said."""

    def __init__(self, query: str, sentence: str) -> None:
        super().__init__(f"{query}: {sentence}")


class ApiError(HarnessError):
    """The API server refused a request: ``code`` is the HTTP status, ``sentence`` what it said."""

    def __init__(self, request: str, code: int, body: str) -> None:
        self.code = code
        self.sentence = _message(body)
        super().__init__(f"{request}: {code} {self.sentence}")


def _message(body: str) -> str:
    """Return the message of a Status object, or the text itself where it is none."""
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body
