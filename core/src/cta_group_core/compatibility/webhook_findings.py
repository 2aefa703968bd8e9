"""What a pod that was only rehearsed tells about the webhook: for ``kubectl cta doctor`` and the chart's own test."""

from collections.abc import Mapping
from typing import Final

from cta_group_core.compatibility.findings import Finding, Severity
from cta_group_core.names import LABEL_REQUESTS

PATH_REMEDY: Final = (
    "let the API server reach the operator's pods on webhook.port: a private cluster often allows 10250 only "
    "(webhook.port: 10250, or operator.hostNetwork: true where pods cannot be reached); then make those pods again"
)


def unseen_finding(subject: str, labels: Mapping[str, str], seconds: float) -> Finding | None:
    """Return what is wrong when a rehearsed pod with these ``labels`` was admitted without the webhook, else None.

    ``seconds``: how long the API server took; about the webhook's own limit means that it waited in vain.
    """
    if LABEL_REQUESTS in labels:
        return None
    return Finding(
        Severity.ERROR,
        subject,
        f"a pod of the resource was rehearsed and the API server admitted it in {seconds:.1f} s without the webhook",
        PATH_REMEDY,
    )
