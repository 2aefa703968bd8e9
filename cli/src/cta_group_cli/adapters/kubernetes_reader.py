"""A cluster as the official client reaches it: kubeconfig, credentials and TLS are its business, JSON is ours."""

import json
from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus
from typing import TypeVar

import urllib3
from kubernetes import client
from pydantic import ValidationError

from cta_group_cli.adapters.connection import Connection, Json, configured
from cta_group_cli.errors import ClusterUnavailable
from cta_group_cli.kinds import POD, REPLICA_SET, Kind
from cta_group_cli.objects import Controller, Event, Pod
from cta_group_cli.ports import Node, Quota, Unreadable
from cta_group_core.names import API_GROUP_VERSION
from cta_group_core.nodes import ApiModel, NodeStatus
from cta_group_core.quota import QuotaSpec, QuotaStatus
from cta_group_core.workload import WorkloadStatus

_PAGE = 500
"""Objects in one answer: kubectl's own page size."""

Model = TypeVar("Model", bound=ApiModel)
Member = TypeVar("Member", Node, Quota)


class KubernetesReader:
    """Reads a cluster; see :class:`cta_group_cli.ports.ClusterReader`."""

    def __init__(self, connection: Connection) -> None:
        settings, self._namespace = configured(connection)
        self._client = client.ApiClient(settings)
        self._timeout_seconds = connection.timeout_seconds

    @property
    def namespace(self) -> str:
        """See the interface."""
        return self._namespace

    def nodes(self) -> Sequence[Node | Unreadable]:
        """See the interface."""
        return [
            _ours(item, _node)
            for item in self._items(f"apis/{API_GROUP_VERSION}/ctanodes", "CTANodes")
            if item.get("status")
        ]

    def quotas(self) -> Sequence[Quota | Unreadable]:
        """See the interface."""
        items = self._items(f"apis/{API_GROUP_VERSION}/ctaquotas", "CTAQuotas")
        return [_ours(item, _quota) for item in items]

    def workload(self, namespace: str, name: str) -> WorkloadStatus | None:
        """See the interface."""
        path = f"apis/{API_GROUP_VERSION}/namespaces/{namespace}/ctaworkloads/{name}"
        found = self._get(path)
        status = (found or {}).get("status")
        return _parsed(WorkloadStatus, status, path) if status else None

    def pod(self, namespace: str, name: str) -> Pod | None:
        """See the interface."""
        return self._object(Pod, POD, namespace, name)

    def pods(self, namespace: str) -> Sequence[Pod]:
        """See the interface."""
        path = f"api/v1/namespaces/{namespace}/pods"
        return [_parsed(Pod, item, path) for item in self._items(path, "pods")]

    def controller(self, kind: Kind, namespace: str, name: str) -> Controller | None:
        """See the interface."""
        return self._object(Controller, kind, namespace, name)

    def replica_sets(self, namespace: str) -> Sequence[Controller]:
        """See the interface."""
        path = f"{REPLICA_SET.path}/namespaces/{namespace}/{REPLICA_SET.plural}"
        return [_parsed(Controller, item, path) for item in self._items(path, "ReplicaSets")]

    def creation_failures(self, namespace: str) -> Sequence[Event]:
        """See the interface."""
        path = f"api/v1/namespaces/{namespace}/events"
        failed = self._items(path, "events", fieldSelector="reason=FailedCreate")
        return [_parsed(Event, item, path) for item in failed]

    def _object(self, model: type[Model], kind: Kind, namespace: str, name: str) -> Model | None:
        if kind.path is None:
            return None
        path = f"{kind.path}/namespaces/{namespace}/{kind.plural}/{name}"
        found = self._get(path)
        return _parsed(model, found, path) if found else None

    def _items(self, path: str, what: str, **query: str) -> Iterator[Json]:
        """Yield the members of a list, page by page, in the order of names."""
        pages = {"limit": str(_PAGE), **query}
        while True:
            page = self._get(path, **pages)
            if page is None:
                raise ClusterUnavailable(f"this cluster knows no {what}: is the chart installed?")
            yield from page["items"]
            if not (more := page["metadata"].get("continue")):
                return
            pages["continue"] = more

    def _get(self, path: str, **query: str) -> Json | None:
        """Return what the API server has at ``path``; None for nothing."""
        method, url, headers, *_ = self._client.param_serialize(
            method="GET",
            resource_path=f"/{path}",
            query_params=list(query.items()),
            header_params={"Accept": "application/json"},
            auth_settings=["BearerToken"],
        )
        try:
            answer = self._client.call_api(method, url, headers, _request_timeout=self._timeout_seconds)
            body = answer.read()
        except (urllib3.exceptions.HTTPError, client.ApiException, OSError) as away:
            server = self._client.configuration.host
            raise ClusterUnavailable(f"the cluster at {server} does not answer: {away}") from away
        if answer.status == HTTPStatus.NOT_FOUND:
            return None
        if answer.status != HTTPStatus.OK:
            raise ClusterUnavailable(f"the cluster refuses GET /{path}: {answer.status} {_said(body)}")
        found: Json = json.loads(body)
        return found


def _node(item: Json) -> Node:
    return Node(item["metadata"]["name"], NodeStatus.model_validate(item["status"]))


def _quota(item: Json) -> Quota:
    status = QuotaStatus.model_validate(item.get("status", {}))
    return Quota(item["metadata"]["name"], QuotaSpec.model_validate(item["spec"]), status)


def _ours(item: Json, parse: Callable[[Json], Member]) -> Member | Unreadable:
    """Parse one of many objects: one that another version wrote must not hide the rest."""
    try:
        return parse(item)
    except ValidationError as other_form:
        return Unreadable(item["metadata"]["name"], _first_problem(other_form))


def _parsed(model: type[Model], content: Json, path: str) -> Model:
    try:
        return model.model_validate(content)
    except ValidationError as other_form:
        raise ClusterUnavailable(
            f"what is at /{path} cannot be read here: {_first_problem(other_form)}"
        ) from other_form


def _first_problem(other_form: ValidationError) -> str:
    first = other_form.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'value'}: {first['msg']}"


def _said(body: bytes) -> str:
    """Return the API server's sentence."""
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")
