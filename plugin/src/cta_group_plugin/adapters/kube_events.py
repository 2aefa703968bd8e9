"""Events on pods in the Kubernetes API, where ``kubectl describe pod`` shows them."""

import asyncio
import time
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from cta_group_core.moments import rfc3339
from cta_group_core.names import FIELD_MANAGER_PLUGIN
from cta_group_plugin.adapters.api_server import ApiServer, is_success
from cta_group_plugin.adapters.kube_api import message_of
from cta_group_plugin.errors import ApiRefused, ApiUnavailable
from cta_group_plugin.pod_events import PodEvent

_MOST_BYTES: Final = 1000
"""The API server takes 1024."""
_MOST_OF_A_NAME: Final = 200


class KubeEvents:
    """Implements :class:`cta_group_plugin.pod_events.EventApi`; each request runs in a thread and ends in seconds."""

    def __init__(self, server: ApiServer, node_name: str) -> None:
        self._server = server
        self._node_name = node_name

    async def write(self, event: PodEvent) -> None:
        """Create the event; one with the same key for the same pod that is there already is enough."""
        await asyncio.to_thread(self._write, event)

    def _write(self, event: PodEvent) -> None:
        path = f"/api/v1/namespaces/{quote(event.pod.namespace)}/events"
        code, answer = self._server.request("POST", path, self._body(event), "application/json")
        told = f"event {event.reason} on pod {event.pod.namespace}/{event.pod.name}: {code}: {message_of(answer)}"
        if code == HTTPStatus.CONFLICT or is_success(code):
            return
        is_refusal = HTTPStatus.BAD_REQUEST <= code < HTTPStatus.INTERNAL_SERVER_ERROR
        if is_refusal and code not in {HTTPStatus.UNAUTHORIZED, HTTPStatus.TOO_MANY_REQUESTS}:
            raise ApiRefused(told)
        raise ApiUnavailable(told)  # whatever answers so instead of the API, it may be the API again

    def _body(self, event: PodEvent) -> dict[str, object]:
        import hashlib  # noqa: PLC0415 - most nodes never tell anything, and it is as large as all adapters together

        digest = hashlib.sha256(f"{event.uid}/{event.reason}/{event.key}".encode()).hexdigest()[:16]
        now = rfc3339(time.time())
        pod = {"apiVersion": "v1", "kind": "Pod", "namespace": event.pod.namespace, "name": event.pod.name}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            # The name is made from the cause, so that no restart of ours tells it again.
            "metadata": {
                # A part of a name must not end with a dash or a dot, wherever a long one is cut.
                "name": f"{event.pod.name[:_MOST_OF_A_NAME].rstrip('-.')}.{digest}",
                "namespace": event.pod.namespace,
            },
            "involvedObject": {**pod, "uid": event.uid} if event.uid else pod,
            "reason": event.reason,
            "message": event.message.encode()[:_MOST_BYTES].decode(errors="ignore"),
            "type": "Warning",
            "source": {"component": FIELD_MANAGER_PLUGIN, "host": self._node_name},
            "reportingComponent": FIELD_MANAGER_PLUGIN,
            "reportingInstance": self._node_name,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
