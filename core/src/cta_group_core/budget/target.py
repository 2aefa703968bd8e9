"""Where a vLLM server tells its metrics: the port that it serves at, and whether it does so by TLS."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cta_group_core.errors import InvalidText
from cta_group_core.names import ANNOTATION_CONTAINER, ANNOTATION_METRICS_PORT
from cta_group_core.vllm.detect import ContainerFacts, Detected, detect
from cta_group_core.vllm.flags import Flag

DEFAULT_PORT: Final = 8000
"""vLLM's own."""
_PROMETHEUS_PORT: Final = "prometheus.io/port"
_PROMETHEUS_SCHEME: Final = "prometheus.io/scheme"
_LARGEST_PORT: Final = 65535


@dataclass(frozen=True, slots=True)
class MetricsTarget:
    """Where the metrics of a pod are, beside its address."""

    port: int
    https: bool = False


@dataclass(frozen=True, slots=True)
class Served:
    """What a pod's template says about its server."""

    target: MetricsTarget | None
    problem: str = ""
    """Why no target is known."""
    detected: Detected | None = None
    """The vLLM container, where one is found."""


def served_by(
    containers: Sequence[ContainerFacts], labels: Mapping[str, str], annotations: Mapping[str, str]
) -> Served:
    """Find where the metrics are, by the first of these that is there.

    The project's annotation, vLLM's ``--port``, Prometheus' annotation, the only port of its container, its default.
    """
    detection = detect(containers, labels, named=annotations.get(ANNOTATION_CONTAINER))
    said = annotations.get(ANNOTATION_METRICS_PORT)
    if said is not None:
        try:
            target = _target(metrics_port(said), detection.found, annotations)
        except InvalidText as wrong:
            return Served(None, str(wrong), detection.found)
        return Served(target, "", detection.found)
    if detection.found is None:
        told = detection.reason or f"no container looks like vLLM; name it in {ANNOTATION_CONTAINER}"
        return Served(None, f"{told}, or its port in {ANNOTATION_METRICS_PORT}")
    if any(other.name == "--uds" for other in detection.found.arguments.others):
        return Served(None, "vLLM serves at a Unix socket (--uds), which only its own pod reaches", detection.found)
    return Served(_target(_port_of(detection.found, annotations), detection.found, annotations), "", detection.found)


def metrics_port(text: str) -> int:
    """Read the annotation about the port; raises InvalidText unless it is one."""
    port = _port(text)
    if not port:
        raise InvalidText(f"annotation {ANNOTATION_METRICS_PORT}: {text[:20]!r} is no port (1 to {_LARGEST_PORT})")
    return port


def _port_of(found: Detected, annotations: Mapping[str, str]) -> int:
    given = found.arguments.whole_number(Flag.PORT).value or 0
    if 0 < given <= _LARGEST_PORT:
        return given
    ports = set(found.container.ports)
    only = ports.pop() if len(ports) == 1 else 0
    return _port(annotations.get(_PROMETHEUS_PORT, "")) or only or DEFAULT_PORT


def _port(text: str) -> int:
    """Return a port; 0 for what is none."""
    digits = len(text) <= len(str(_LARGEST_PORT)) and text.isascii() and text.isdecimal()
    return int(text) if digits and int(text) <= _LARGEST_PORT else 0


def _target(port: int, found: Detected | None, annotations: Mapping[str, str]) -> MetricsTarget:
    by_flag = found is not None and any(other.name == "--ssl-certfile" for other in found.arguments.others)
    return MetricsTarget(port, https=by_flag or annotations.get(_PROMETHEUS_SCHEME) == "https")
