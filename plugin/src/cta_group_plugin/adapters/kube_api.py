"""CTANode in the Kubernetes API, by server-side apply."""

import asyncio
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from cta_group_core.names import ANNOTATION_REPAIRED, API_GROUP_VERSION, FIELD_MANAGER_PLUGIN
from cta_group_plugin.adapters.api_server import ApiServer, is_success
from cta_group_plugin.errors import ApiUnavailable
from cta_group_plugin.report import NodeReport, as_api

_APPLY: Final = "application/apply-patch+yaml"
_LONGEST_ANSWER: Final = 300
_LONGEST_MESSAGE: Final = 2000
"""Letters of either that a log and a condition show."""


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
        return _field(applied, "metadata", "annotations", ANNOTATION_REPAIRED)

    def _take_over(self) -> None:
        """Make the object for the Node as it is now. One of an earlier Node of this name goes, with all it says."""
        self._node_uid = ""
        node_uid = self._read_node_uid()
        found = self._make(node_uid)
        if (before := _field(found, "status", "nodeUID")) and before != node_uid:
            self._delete(_field(found, "metadata", "uid"))
            self._make(node_uid)
        self._node_uid = node_uid

    def _read_node_uid(self) -> str:
        code, answer = self._request("GET", f"/api/v1/nodes/{quote(self._node_name)}", None, "application/json")
        if code == HTTPStatus.NOT_FOUND:
            raise ApiUnavailable(f"CTANode {self._node_name}: the cluster has no Node of this name")
        self._check(code, answer, "its Node")
        if uid := _field(answer, "metadata", "uid"):
            return uid
        raise ApiUnavailable(f"CTANode {self._node_name}: the API's answer for its Node names no UID: {_begin(answer)}")

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
        if not is_success(code):
            asked = f" for {what}" if what else ""
            raise ApiUnavailable(f"CTANode {self._node_name}: the API answered {code}{asked}: {message_of(answer)}")


class _ObjectGone(ApiUnavailable):
    """The object, or the kind itself, is not there."""


def message_of(answer: bytes) -> str:
    """Return the sentence of a Kubernetes error, or the beginning of whatever came."""
    return _field(answer, "message")[:_LONGEST_MESSAGE] or _begin(answer)


def _begin(answer: bytes) -> str:
    return answer[:_LONGEST_ANSWER].decode(errors="replace")


def _field(answer: bytes, *path: str) -> str:
    """Return what is at a place of the answer, as text; empty when there is nothing, or no JSON at all."""
    try:
        found = json.loads(answer)
        for name in path:
            found = found[name]
        return str(found)
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
