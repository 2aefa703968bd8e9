"""The admission endpoint beside a real API server: in a thread of its own, and registered for one namespace."""

import asyncio
import base64
import selectors
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from admission_pods import H100
from admission_running import Conversation, local_endpoint
from conditions import until
from cta_group_operator.admission.settings import PodRules

Json = dict[str, Any]


class EndpointThread:
    """The endpoint with an event loop of its own; it can go away."""

    def __init__(self, folder: Path, rules: PodRules | None = None) -> None:
        self._rules = rules
        self._folder = folder
        self._selector = selectors.DefaultSelector()
        self._loop = asyncio.SelectorEventLoop(self._selector)
        self._started: Future[Conversation] = Future()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=[self._serve()])
        self._thread.start()
        self.conversation = self._started.result(timeout=60)

    async def _serve(self) -> None:
        try:
            async with local_endpoint(self._folder, H100, self._rules) as conversation:
                self._started.set_result(conversation)
                await self._stop.wait()
            # TLS connections say good-bye; only the loop's own pipe is left then.
            await until(lambda: len(self._selector.get_map()) <= 1)
        except BaseException as failed:
            if not self._started.done():
                self._started.set_exception(failed)
            raise

    def close(self) -> None:
        """Go away, connections and all; safe to call twice."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=60)
        if not self._loop.is_closed():
            self._loop.close()


def webhook_configuration(name: str, conversation: Conversation, namespace: str) -> Json:
    """Return a configuration like the chart's for an endpoint of :class:`EndpointThread`."""
    return webhook_of(name, f"https://127.0.0.1:{conversation.server.port}/mutate", conversation.bundle, namespace)


def webhook_of(name: str, url: str, bundle: bytes, namespace: str) -> Json:
    """Return a configuration like the chart's, by URL and for one namespace.

    It is more patient: on a slow machine the API server would go on without the endpoint, as it should in a cluster.
    """
    webhook = {
        "name": "pods.ctagroup.dev",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "timeoutSeconds": 30,
        "reinvocationPolicy": "IfNeeded",
        "clientConfig": {"url": url, "caBundle": base64.b64encode(bundle).decode()},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    }
    return {"metadata": {"name": name}, "webhooks": [webhook]}
