"""One API server as the official client reaches it: kubeconfig, credentials and TLS are its business, JSON is ours."""

import json
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, TypeVar

import urllib3
from kubernetes import client
from pydantic import Field, ValidationError

from cta_group_cli.adapters.connection import Connection, Json, configured
from cta_group_cli.errors import AccessDenied, ClusterUnavailable, KindMissing
from cta_group_core.nodes import ApiModel

_PAGE = 500
"""Objects in one answer: kubectl's own page size."""
_DENIED = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})

_SHOWN_BYTES = 60

Model = TypeVar("Model", bound=ApiModel)


class _Name(ApiModel):
    name: str


class _Named(ApiModel):
    metadata: _Name


class _PageMetadata(ApiModel):
    more: str | None = Field(default=None, alias="continue")


class _Page(ApiModel):
    metadata: _PageMetadata
    items: tuple[dict[str, Any], ...] | None


class Rest:
    """Single questions. Each raises ClusterUnavailable when the cluster does not answer, AccessDenied when it may not.

    ``path`` is without its first slash.
    """

    def __init__(self, connection: Connection) -> None:
        settings, self.namespace = configured(connection)
        self._client = client.ApiClient(settings)
        self._timeout_seconds = connection.timeout_seconds

    def get(self, path: str, **query: str) -> Json | None:
        """Return what the API server has at ``path``; None for nothing."""
        status, body = self._ask("GET", path, query)
        if status == HTTPStatus.NOT_FOUND:
            return None
        _raise_unless_fine("GET", path, status, body)
        return self._object(path, body)

    def items(self, path: str, what: str, **query: str) -> Iterator[Json]:
        """Yield the members of a list, page by page, in the order of names."""
        pages = {"limit": str(_PAGE), **query}
        while True:
            page = self.get(path, **pages)
            if page is None:
                raise KindMissing(
                    f"this cluster knows no {what}: is the chart installed, with its kinds (crds.enabled, or crds/)?"
                )
            read = parsed(_Page, page, path)
            for item in read.items or ():
                parsed(_Named, item, path)
                yield item
            if not read.metadata.more:
                return
            pages["continue"] = read.metadata.more

    def rehearse(self, path: str, content: Json) -> Json:
        """Return what would be stored if ``content`` were created; admission sees it, and nothing is stored."""
        status, body = self._ask("POST", path, {"dryRun": "All"}, content)
        _raise_unless_fine("POST", path, status, body)
        return self._object(path, body)

    def _object(self, path: str, body: bytes) -> Json:
        try:
            found = json.loads(body)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            server = self._client.configuration.host
            shown = body[:_SHOWN_BYTES].decode(errors="replace")
            raise ClusterUnavailable(f"what answers at {server}/{path} is no Kubernetes API: {shown!r}")
        return found

    def _ask(self, method: str, path: str, query: dict[str, str], content: Json | None = None) -> tuple[int, bytes]:
        sent = {"Accept": "application/json", **({"Content-Type": "application/json"} if content is not None else {})}
        method, url, headers, body, *_ = self._client.param_serialize(
            method=method,
            resource_path=f"/{path}",
            query_params=list(query.items()),
            header_params=sent,
            body=content,
            auth_settings=["BearerToken"],
        )
        try:
            answer = self._client.call_api(method, url, headers, body, _request_timeout=self._timeout_seconds)
            return answer.status, answer.read()
        except (urllib3.exceptions.HTTPError, client.ApiException, OSError) as away:
            server = self._client.configuration.host
            raise ClusterUnavailable(f"the cluster at {server} does not answer: {away}") from away


def parsed(model: type[Model], content: Json, path: str) -> Model:
    """Return an object that was read at ``path``. Raises ClusterUnavailable when it has another form."""
    try:
        return model.model_validate(content)
    except ValidationError as other_form:
        raise ClusterUnavailable(f"what is at /{path} cannot be read here: {first_problem(other_form)}") from other_form


def first_problem(other_form: ValidationError) -> str:
    """Return the field and what is wrong with it."""
    first = other_form.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'value'}: {first['msg']}"


def _raise_unless_fine(method: str, path: str, status: int, body: bytes) -> None:
    if status >= HTTPStatus.BAD_REQUEST:
        kind = AccessDenied if status in _DENIED else ClusterUnavailable
        raise kind(f"the cluster refuses {method} /{path}: {status} {_said(body)}")


def _said(body: bytes) -> str:
    """Return the API server's sentence."""
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")
