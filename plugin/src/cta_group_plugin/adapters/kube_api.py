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
                connection.request(method, path, None if body is None else json.dumps(body), headers)
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
    """Implements :class:`cta_group_plugin.ports.NodeApi`; each request runs in a thread and ends in seconds.

    The object belongs to the Node: Kubernetes' garbage collector takes it away when the Node is gone, and its status
    says of which Node it speaks, since another machine may come back under the same name.
    """

    def __init__(self, server: ApiServer, node_name: str) -> None:
        self._server = server
        self._node_name = node_name
        self._path = f"/apis/{API_GROUP_VERSION}/ctanodes/{quote(node_name)}"
        self._node_uid = ""
        """Of the Node that the object was made for; empty until it was."""

    async def apply(self, status: NodeReport) -> str:
        """Create the object when absent and apply the status. Raises ApiUnavailable naming the object."""
        return await asyncio.to_thread(self._apply, status)

    async def close(self) -> None:
        """Nothing is kept open."""

    def _apply(self, status: NodeReport) -> str:
        if not self._node_uid:
            self._take_over()
        try:
            applied = self._write(status)
        except _ObjectGone:
            self._take_over()
            applied = self._write(status)
        return _annotation(applied, ANNOTATION_REPAIRED)

    def _take_over(self) -> None:
        """Make the object for the Node as it is now. One of an earlier Node of this name goes, with all it says."""
        self._node_uid = ""
        node_uid = self._read_node_uid()
        found = self._make(node_uid)
        if (before := _told(found, "status", "nodeUID")) and before != node_uid:
            self._delete(_told(found, "metadata", "uid"))
            self._make(node_uid)
        self._node_uid = node_uid

    def _read_node_uid(self) -> str:
        code, answer = self._request("GET", f"/api/v1/nodes/{quote(self._node_name)}", None, "application/json")
        if code == HTTPStatus.NOT_FOUND:
            raise ApiUnavailable(f"CTANode {self._node_name}: the cluster has no Node of this name")
        self._check(code, answer, "its Node")
        return _told(answer, "metadata", "uid")

    def _make(self, node_uid: str) -> bytes:
        owner = {"apiVersion": "v1", "kind": "Node", "name": self._node_name, "uid": node_uid}
        return self._patch(self._path, {"ownerReferences": [owner]}, {})

    def _delete(self, uid: str) -> None:
        body = {"preconditions": {"uid": uid}}
        code, answer = self._request("DELETE", self._path, body, "application/json")
        if code not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):  # somebody else was quicker
            self._check(code, answer, "the deletion of an earlier Node's")

    def _write(self, status: NodeReport) -> bytes:
        return self._patch(f"{self._path}/status", {}, {"status": {**as_api(status), "nodeUID": self._node_uid}})

    def _patch(self, path: str, metadata: Mapping[str, object], fields: Mapping[str, object]) -> bytes:
        body = {
            "apiVersion": API_GROUP_VERSION,
            "kind": "CTANode",
            "metadata": {"name": self._node_name, **metadata},
            **fields,
        }
        code, answer = self._request("PATCH", f"{path}?fieldManager={FIELD_MANAGER_PLUGIN}&force=true", body, _APPLY)
        if code == HTTPStatus.NOT_FOUND:
            raise _ObjectGone(f"CTANode {self._node_name}: not found; are the CRDs of cta-group installed?")
        self._check(code, answer, "")
        return answer

    def _request(self, method: str, path: str, body: object, content_type: str) -> tuple[int, bytes]:
        try:
            return self._server.request(method, path, body, content_type)
        except ApiUnavailable as error:
            raise ApiUnavailable(f"CTANode {self._node_name}: {error}") from error

    def _check(self, code: int, answer: bytes, what: str) -> None:
        if code >= HTTPStatus.BAD_REQUEST:
            asked = f" for {what}" if what else ""
            raise ApiUnavailable(f"CTANode {self._node_name}: the API answered {code}{asked}: {message_of(answer)}")


class _ObjectGone(ApiUnavailable):
    """The object, or the kind itself, is not there."""


def message_of(answer: bytes) -> str:
    """Return the sentence of a Kubernetes error, or the beginning of whatever came."""
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return answer[:_LONGEST_ANSWER].decode(errors="replace")


def _told(answer: bytes, part: str, name: str) -> str:
    """Return a field of a part of the object that the API answered with; empty when it has none."""
    try:
        return str(json.loads(answer)[part][name])
    except (ValueError, KeyError, TypeError):
        return ""


def _annotation(answer: bytes, name: str) -> str:
    """Return an annotation of the object that the API answered with; empty when it has none."""
    try:
        return str(json.loads(answer)["metadata"]["annotations"][name])
    except (ValueError, KeyError, TypeError):
        return ""
