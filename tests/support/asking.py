"""Questions that are put to a webhook all along, while a test disturbs what is around it."""

import base64
import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby

from cluster_harness.api_client import ApiClient, Json
from cluster_harness.errors import ApiError
from cta_group_core.names import LABEL_REQUESTS
from meanwhile import meanwhile

_PAUSE_SECONDS = 0.2
_TIMEOUT_SECONDS = 90.0


@dataclass
class Asker:
    """Asks about one pod: the webhook itself, and the API server by dry runs in a namespace."""

    port: int
    trust: ssl.SSLContext
    api: ApiClient
    namespace: str
    pod: Json
    outcomes: list[str] = field(default_factory=list)
    """Of each question: empty where it was answered, else what came instead."""
    rehearsed: int = 0
    """Dry runs that the API server answered."""

    def gaps(self) -> list[str]:
        """Return what came instead of answers, once for all questions in a row that had none."""
        return [next(run) for missed, run in groupby(self.outcomes, bool) if missed]

    def is_asked(self) -> bool:
        """Tell whether the webhook answers, and the API server asks it."""
        return self._directly() == "" == self._by_the_api_server()

    def ask(self) -> None:
        """Ask both once."""
        self.outcomes.append(self._directly())
        if (came := self._by_the_api_server()) is not None:
            self.rehearsed += 1
            self.outcomes.append(came)

    def _directly(self) -> str:
        request = {
            "uid": "asked",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "operation": "CREATE",
            "namespace": self.namespace,
            "dryRun": True,
            "object": self.pod,
        }
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.trust, timeout=_TIMEOUT_SECONDS)
        try:
            connection.request("POST", "/mutate", json.dumps(review), {"Content-Type": "application/json"})
            answer = json.loads(connection.getresponse().read())["response"]
        except (OSError, http.client.HTTPException, ValueError) as failed:
            return f"asked itself: {failed!r}"
        finally:
            connection.close()
        is_labelled = LABEL_REQUESTS.replace("/", "~1") in base64.b64decode(answer.get("patch", "")).decode()
        return "" if is_labelled else f"asked itself: {answer}"

    def _by_the_api_server(self) -> str | None:
        """Return what became of a dry run; None where the API server does not answer."""
        try:
            made = self.api.create(f"/api/v1/namespaces/{self.namespace}/pods?dryRun=All", self.pod)
        except (OSError, http.client.HTTPException, ApiError):
            return None
        return "" if LABEL_REQUESTS in made["metadata"].get("labels", {}) else "a dry run came in unchanged"


@contextmanager
def asking(asker: Asker) -> Iterator[Asker]:
    """Ask until the block ends."""
    with meanwhile(asker.ask, pause_seconds=_PAUSE_SECONDS):
        yield asker
