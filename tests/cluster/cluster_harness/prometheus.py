"""A running Prometheus as tests and the demo ask it: its HTTP API, with the standard library alone."""

import http.client
import json
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cluster_harness.errors import QueryError
from cluster_harness.probes import LOOPBACK, healthy

_TIMEOUT_SECONDS = 90.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One element of an instant vector; a scalar is one without labels."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Series:
    """One element of a range: the values with their times, in seconds since 1970."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class ScrapeTarget:
    """What Prometheus scrapes: ``error`` is empty when the last scrape went well."""

    job: str
    address: str
    health: str
    error: str


class Prometheus:
    """The Prometheus that listens on ``port`` of 127.0.0.1.

    A query that it refuses is a QueryError with its sentence; one that is away is an OSError.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://{LOOPBACK}:{port}"

    def is_ready(self) -> bool:
        """Return whether it is there and has read its configuration."""
        return healthy("http", LOOPBACK, self.port, "/-/ready")

    def query(self, expression: str, at_seconds: float | None = None) -> list[Sample]:
        """Return what the expression is now, or was at a time in seconds since 1970."""
        at = {} if at_seconds is None else {"time": str(at_seconds)}
        answer = self._get("/api/v1/query", {"query": expression, **at}, expression)
        if answer["resultType"] in ("scalar", "string"):
            return [Sample({}, float(answer["result"][1]))]
        return [Sample(it["metric"], float(it["value"][1])) for it in answer["result"]]

    def query_range(self, expression: str, start: float, end: float, step_seconds: float) -> list[Series]:
        """Return what the expression was from ``start`` to ``end``, in seconds since 1970."""
        parameters = {"query": expression, "start": str(start), "end": str(end), "step": str(step_seconds)}
        answer = self._get("/api/v1/query_range", parameters, expression)
        return [Series(it["metric"], _points(it["values"])) for it in answer["result"]]

    def label_values(self, selector: str, label: str) -> list[str]:
        """Return the values that a label has in the series of a selector; an empty selector selects all series."""
        parameters = {"match[]": selector} if selector else {}
        values: list[str] = self._get(f"/api/v1/label/{urllib.parse.quote(label)}/values", parameters, selector)
        return values

    def metric_names(self) -> set[str]:
        """Return the names of all metrics that were ever scraped."""
        return set(self.label_values("", "__name__"))

    def targets(self) -> list[ScrapeTarget]:
        """Return what is scraped at the moment."""
        found = self._get("/api/v1/targets", {"state": "active"}, "the targets")["activeTargets"]
        return [
            ScrapeTarget(it["labels"]["job"], it["discoveredLabels"]["__address__"], it["health"], it["lastError"])
            for it in found
        ]

    def _get(self, path: str, parameters: Mapping[str, str], what: str) -> Any:
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=_TIMEOUT_SECONDS)
        try:
            connection.request("GET", f"{path}?{urllib.parse.urlencode(parameters)}")
            text = connection.getresponse().read()
        finally:
            connection.close()
        try:
            answer = json.loads(text)
        except ValueError as error:
            raise QueryError(what, text.decode(errors="replace")) from error
        if answer["status"] != "success":
            raise QueryError(what, answer["error"])
        return answer["data"]


def _points(values: list[tuple[float, str]]) -> tuple[tuple[float, float], ...]:
    return tuple((float(at), float(value)) for at, value in values)
