"""Metrics of the admission endpoint. They count in every replica, since every replica answers."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from cta_group_core.names import METRIC_PREFIX
from cta_group_core.vllm.flags import Flag

PATHS: Final = ("mutate", "validate")
ERRORS: Final = ("bad_review", "internal")
_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 2.0)


class AdmissionMetrics:
    """What the endpoint counts, at zero from the start."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            f"{METRIC_PREFIX}admission_seconds",
            "Time to answer one question of the API server",
            ["path"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._changes = Counter(
            f"{METRIC_PREFIX}alignment_changes",
            "Flags of vLLM that were changed in a pod at its admission",
            ["flag"],
            registry=registry,
        )
        self._errors = Counter(
            f"{METRIC_PREFIX}admission_errors",
            "Questions not answered: internal (the pod came in unchanged) or bad_review (no question)",
            ["reason"],
            registry=registry,
        )
        self._expiry = Gauge(
            f"{METRIC_PREFIX}webhook_certificate_expiry_timestamp_seconds",
            "When the certificate in use ends, in seconds of the Unix epoch; 0 while there is none",
            registry=registry,
        )
        for path in PATHS:
            self._seconds.labels(path=path)
        for reason in ERRORS:
            self._errors.labels(reason=reason)
        self._changes.labels(flag=Flag.GPU_MEMORY_UTILIZATION.value)

    def observe_answer(self, path: str, seconds: float) -> None:
        """Count a question and how long its answer took."""
        self._seconds.labels(path=path).observe(seconds)

    def observe_change(self, flag: str) -> None:
        """Count a flag that was changed."""
        self._changes.labels(flag=flag).inc()

    def observe_error(self, reason: str) -> None:
        """Count one of :data:`ERRORS`."""
        self._errors.labels(reason=reason).inc()

    def observe_certificate(self, expiry_timestamp_seconds: float) -> None:
        """Say until when the certificate in use is good."""
        self._expiry.set(expiry_timestamp_seconds)
