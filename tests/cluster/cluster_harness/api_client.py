"""The Kubernetes API as plain JSON: what the harness waits on, and what tests make and look at.

Paths are those of the API (``/api/v1/namespaces/default/pods/web``); objects are dictionaries as in YAML.
"""

import http.client
import json
import ssl
from pathlib import Path
from typing import Any

from cluster_harness.certs import KeyPair
from cluster_harness.connections import KeptConnections
from cluster_harness.errors import ApiError

_TIMEOUT_SECONDS = 90.0  # more than an API server waits for a webhook at most, which is 30 s
_MERGE_PATCH = "application/merge-patch+json"
_APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML
_FIELD_MANAGER = "tests"

Json = dict[str, Any]


class ApiClient:
    """A user of one API server, known by a client certificate; its connections are kept for the next call.

    A refusal is an ApiError with the status code and the server's sentence; an API server that is away is an OSError.
    """

    def __init__(self, host: str, port: int, authority: Path, user: KeyPair) -> None:
        tls = ssl.create_default_context(cafile=str(authority))
        tls.load_cert_chain(user.certificate, user.key)
        self._connections = KeptConnections(
            lambda: http.client.HTTPSConnection(host, port, context=tls, timeout=_TIMEOUT_SECONDS)
        )

    def close(self) -> None:
        """End the connections that wait for a call; the next call makes another one."""
        self._connections.close()

    def ready(self) -> bool:
        """Return whether the API server is there and every check of its /readyz passes."""
        try:
            return self._request("GET", "/readyz") == b"ok"
        except (OSError, http.client.HTTPException, ApiError):
            return False

    def get(self, path: str) -> Json:
        """Return the object, or the list, at the path."""
        return self._json("GET", path)

    def find(self, path: str) -> Json | None:
        """Return the object at the path, None where there is none."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.code == http.HTTPStatus.NOT_FOUND:
                return None
            raise

    def items(self, path: str) -> list[Json]:
        """Return the members of the list at the path."""
        found: list[Json] = self.get(path)["items"]
        return found

    def create(self, path: str, content: Json) -> Json:
        """Make an object in the list at the path and return it as stored; kind and apiVersion may be left out."""
        return self._json("POST", path, content)

    def apply(self, path: str, content: Json) -> Json:
        """Make the object at the path, or change it, as ``kubectl apply --server-side`` does; return it as stored."""
        return self._json("PATCH", f"{path}?fieldManager={_FIELD_MANAGER}", content, _APPLY_PATCH)

    def patch(self, path: str, content: Json) -> Json:
        """Merge ``content`` into the object at the path and return it as stored."""
        return self._json("PATCH", path, content, _MERGE_PATCH)

    def replace(self, path: str, content: Json) -> Json:
        """Put ``content`` in the place of the object at the path and return it as stored."""
        return self._json("PUT", path, content)

    def delete(self, path: str) -> Json:
        """Begin to remove the object at the path and return what the API server says."""
        return self._json("DELETE", path)

    def discard(self, path: str) -> None:
        """Begin to remove the object at the path, if it is there: a collector or a test may have been faster."""
        try:
            self.delete(path)
        except ApiError as error:
            # A namespace that is ending already is a conflict.
            if error.code not in {http.HTTPStatus.NOT_FOUND, http.HTTPStatus.CONFLICT}:
                raise

    def _json(self, method: str, path: str, content: Json | None = None, kind: str = "application/json") -> Json:
        body = None if content is None else json.dumps(content).encode()
        answer: Json = json.loads(self._request(method, path, body, kind))
        return answer

    def _request(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> bytes:
        status, text = self._connections.ask(method, path, body, {"Content-Type": kind})
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise ApiError(f"{method} {path}", status, text.decode(errors="replace"))
        return text
