"""The Kubernetes API over the standard library's HTTP client, and CTANode in it by server-side apply.

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

from cta_group_core.names import ANNOTATION_REPAIRED, API_GROUP_VERSION, FIELD_MANAGER_PLUGIN
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

    def request(self, method: str, path: str, body: object, content_type: str) -> tuple[int, bytes]:
        """Make one request on a connection of its own; return status and answer. Blocks. Raises ApiUnavailable."""
        headers = {"Content-Type": content_type, **self._authorization()}
        try:
            connection = self._connection()
            try:
                connection.request(method, path, json.dumps(body), headers)
                answer = connection.getresponse()
                return answer.status, answer.read()
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            raise ApiUnavailable(f"{self.url}: {error!r}") from error

    def _connection(self) -> http.client.HTTPConnection:
        url = urlsplit(self.url)
        if url.scheme == "http":
            return http.client.HTTPConnection(url.hostname or "", url.port, timeout=_TIMEOUT_SECONDS)
        tls = ssl.create_default_context(cafile=str(self.service_account_dir / "ca.crt"))
        return http.client.HTTPSConnection(url.hostname or "", url.port, timeout=_TIMEOUT_SECONDS, context=tls)

    def _authorization(self) -> dict[str, str]:
        if self.url.startswith("http:"):
            return {}
        try:
            token = (self.service_account_dir / "token").read_text().strip()
        except OSError as error:
            raise ApiUnavailable(f"{self.url}: {error!r}") from error
        return {"Authorization": f"Bearer {token}"}


class KubeNodeApi:
    """Implements :class:`cta_group_plugin.ports.NodeApi`; each request runs in a thread and ends in seconds."""

    def __init__(self, server: ApiServer, node_name: str) -> None:
        self._server = server
        self._node_name = node_name
        self._path = f"/apis/{API_GROUP_VERSION}/ctanodes/{quote(node_name)}"
        self._exists = False

    async def apply(self, status: NodeReport) -> str:
        """Create the object when absent and apply the status. Raises ApiUnavailable naming the object."""
        return await asyncio.to_thread(self._apply, status)

    async def close(self) -> None:
        """Nothing is kept open."""

    def _apply(self, status: NodeReport) -> str:
        if not self._exists:
            self._patch(self._path, {})
            self._exists = True
        try:
            applied = self._patch(f"{self._path}/status", {"status": as_api(status)})
        except _ObjectGone:
            self._patch(self._path, {})
            applied = self._patch(f"{self._path}/status", {"status": as_api(status)})
        return _annotation(applied, ANNOTATION_REPAIRED)

    def _patch(self, path: str, fields: Mapping[str, object]) -> bytes:
        body = {
            "apiVersion": API_GROUP_VERSION,
            "kind": "CTANode",
            "metadata": {"name": self._node_name},
            **fields,
        }
        try:
            code, answer = self._server.request(
                "PATCH", f"{path}?fieldManager={FIELD_MANAGER_PLUGIN}&force=true", body, _APPLY
            )
        except ApiUnavailable as error:
            raise ApiUnavailable(f"CTANode {self._node_name}: {error}") from error
        if code == HTTPStatus.NOT_FOUND:
            raise _ObjectGone(f"CTANode {self._node_name}: not found; are the CRDs of cta-group installed?")
        if code >= HTTPStatus.BAD_REQUEST:
            raise ApiUnavailable(f"CTANode {self._node_name}: the API answered {code}: {message_of(answer)}")
        return answer


class _ObjectGone(ApiUnavailable):
    """The object, or the kind itself, is not there."""


def message_of(answer: bytes) -> str:
    """Return the sentence of a Kubernetes error, or the beginning of whatever came."""
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return answer[:_LONGEST_ANSWER].decode(errors="replace")


def _annotation(answer: bytes, name: str) -> str:
    """Return an annotation of the object that the API answered with; empty when it has none."""
    try:
        return str(json.loads(answer)["metadata"]["annotations"][name])
    except (ValueError, KeyError, TypeError):
        return ""
