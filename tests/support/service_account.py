"""A pod of a service account as the API server sees it: calls with its token, and nothing that only kubectl needs."""

import http.client
import json
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from cluster_harness.control_plane import ControlPlane
from cluster_harness.errors import ApiError

_TIMEOUT_SECONDS = 90.0


class ServiceAccount:
    """Calls in the name of one service account, with a token made for it now."""

    def __init__(self, control_plane: ControlPlane, namespace: str, name: str) -> None:
        self._server = urlsplit(control_plane.server)
        self._tls = ssl.create_default_context(cafile=str(control_plane.certificate_authority))
        self._token = token_of(control_plane, namespace, name)

    def merge_patch(self, path: str, content: Any) -> dict[str, Any]:
        """Merge into the object at the path; ApiError when that is refused."""
        return self._call("PATCH", path, json.dumps(content))

    def delete(self, path: str) -> dict[str, Any]:
        """Begin to remove the object at the path; ApiError when that is refused."""
        return self._call("DELETE", path)

    def _call(self, method: str, path: str, body: str | None = None) -> dict[str, Any]:
        address = (self._server.hostname or "", self._server.port)
        connection = http.client.HTTPSConnection(*address, context=self._tls, timeout=_TIMEOUT_SECONDS)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/merge-patch+json"}
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status >= http.HTTPStatus.BAD_REQUEST:
            raise ApiError(f"{method} {path}", answer.status, text)
        stored: dict[str, Any] = json.loads(text)
        return stored


def token_of(control_plane: ControlPlane, namespace: str, name: str) -> str:
    """Return a token made for the account now."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    return str(control_plane.api.create(path, {"spec": {"audiences": []}})["status"]["token"])


def kubeconfig_of(control_plane: ControlPlane, namespace: str, name: str, folder: Path) -> Path:
    """Write how a program of the account reaches the API server, and return the file."""
    cluster = {"server": control_plane.server, "certificate-authority": str(control_plane.certificate_authority)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token_of(control_plane, namespace, name)}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": name}}],
        "current-context": "c",
    }
    file = folder / f"{name}.kubeconfig"
    file.write_text(yaml.safe_dump(content))
    return file
