"""CTANode in the Kubernetes API, by server-side apply over the standard library's HTTP client.

One small request now and then from every node of a cluster: a Kubernetes client library costs tens of MiB on each of
them. Token and certificate authority are read for each request, because kubelet rotates them under a running process.
"""

import asyncio
import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from cta_group_core.names import API_GROUP_VERSION, FIELD_MANAGER_PLUGIN
from cta_group_plugin.errors import ApiUnavailable
from cta_group_plugin.report import NodeReport, as_api

_TIMEOUT_SECONDS: Final = 5.0
"""A process that is asked to end waits for a request on its way."""
_APPLY: Final = "application/apply-patch+yaml"
_LONGEST_ANSWER: Final = 300


@dataclass(frozen=True, slots=True)
class ApiServer:
    """Where the API is and who we are there."""

    url: str
    """``https://host:port``; plain ``http://`` goes without a token and is for tests."""
    service_account_dir: Path
    """Folder with ``token`` and ``ca.crt``, as kubelet mounts it into a pod."""


class KubeNodeApi:
    """Implements :class:`cta_group_plugin.ports.NodeApi`; each request runs in a thread and ends in seconds."""

    def __init__(self, server: ApiServer, node_name: str) -> None:
        self._server = server
        self._node_name = node_name
        self._path = f"/apis/{API_GROUP_VERSION}/ctanodes/{quote(node_name)}"
        self._exists = False

    async def apply(self, status: NodeReport) -> None:
        """Create the object when absent and apply the status. Raises ApiUnavailable naming the object."""
        await asyncio.to_thread(self._apply, status)

    async def close(self) -> None:
        """Nothing is kept open."""

    def _apply(self, status: NodeReport) -> None:
        if not self._exists:
            self._patch(self._path, {})
            self._exists = True
        try:
            self._patch(f"{self._path}/status", {"status": as_api(status)})
        except _ObjectGone:
            self._patch(self._path, {})
            self._patch(f"{self._path}/status", {"status": as_api(status)})

    def _patch(self, path: str, fields: Mapping[str, object]) -> None:
        body = {
            "apiVersion": API_GROUP_VERSION,
            "kind": "CTANode",
            "metadata": {"name": self._node_name},
            **fields,
        }
        code, answer = self._request(f"{path}?fieldManager={FIELD_MANAGER_PLUGIN}&force=true", json.dumps(body))
        if code == HTTPStatus.NOT_FOUND:
            raise _ObjectGone(f"CTANode {self._node_name}: not found; are the CRDs of cta-group installed?")
        if code >= HTTPStatus.BAD_REQUEST:
            raise ApiUnavailable(f"CTANode {self._node_name}: the API answered {code}: {_message(answer)}")

    def _request(self, path: str, body: str) -> tuple[int, bytes]:
        try:
            connection = self._connection()
            try:
                connection.request("PATCH", path, body, {"Content-Type": _APPLY, **self._authorization()})
                answer = connection.getresponse()
                return answer.status, answer.read()
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            raise ApiUnavailable(f"CTANode {self._node_name}: {self._server.url}: {error!r}") from error

    def _connection(self) -> http.client.HTTPConnection:
        url = urlsplit(self._server.url)
        if url.scheme == "http":
            return http.client.HTTPConnection(url.hostname or "", url.port, timeout=_TIMEOUT_SECONDS)
        tls = ssl.create_default_context(cafile=str(self._server.service_account_dir / "ca.crt"))
        return http.client.HTTPSConnection(url.hostname or "", url.port, timeout=_TIMEOUT_SECONDS, context=tls)

    def _authorization(self) -> dict[str, str]:
        if self._server.url.startswith("http:"):
            return {}
        token = (self._server.service_account_dir / "token").read_text().strip()
        return {"Authorization": f"Bearer {token}"}


class _ObjectGone(ApiUnavailable):
    """The object, or the kind itself, is not there."""


def _message(answer: bytes) -> str:
    """Return the sentence of a Kubernetes error, or the beginning of whatever came."""
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return answer[:_LONGEST_ANSWER].decode(errors="replace")
