"""The leader keeps the webhook's Secret and authorities in a real API server."""

import base64
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest

from admission_running import ENDPOINT, SetClock
from cluster_harness.api_client import ApiClient
from cluster_harness.control_plane import ControlPlane
from cta_group_core.names import FIELD_MANAGER_OPERATOR
from cta_group_operator.adapters.connection import load_connection
from cta_group_operator.adapters.kube import KubeClient
from cta_group_operator.admission.certificate_sources import SecretSource
from cta_group_operator.admission.certificates import CertificateKeeper
from cta_group_operator.admission.rotation import Step
from cta_group_operator.admission.tls import ServingContext
from cta_group_operator.resources import MUTATING_WEBHOOKS

Json = dict[str, Any]


@pytest.fixture
def configuration(api: ApiClient, namespace: str) -> Iterator[str]:
    """Make a webhook configuration as the chart does, without an authority, that matches no namespace."""
    service = {"name": "operator", "namespace": namespace, "path": "/mutate"}
    webhook = {
        "name": "pods.ctagroup.dev",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"service": service},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "namespaceSelector": {"matchLabels": {"never": "matched"}},
    }
    body = {"metadata": {"name": f"cta-group-{namespace}"}, "webhooks": [webhook]}
    name = api.create(MUTATING_WEBHOOKS.path(), body)["metadata"]["name"]
    yield name
    api.delete(MUTATING_WEBHOOKS.path(name=name))


@pytest.fixture
async def kube(control_plane: ControlPlane) -> AsyncIterator[KubeClient]:
    """Open the operator's own client."""
    async with KubeClient(load_connection(control_plane.admin_kubeconfig)) as client:
        yield client


async def test_secret_and_authorities_are_made_kept_and_healed(
    api: ApiClient, kube: KubeClient, namespace: str, configuration: str
) -> None:
    """Made at first, left alone when right, made again when the Secret is gone, and never without trust."""
    settings = replace(ENDPOINT, namespace=namespace, configuration_name=configuration)
    clock = SetClock()
    keeper = CertificateKeeper(kube, settings, clock)
    assert await keeper.round() is Step.START_OVER
    secret = api.get(f"/api/v1/namespaces/{namespace}/secrets/webhook")
    first = bundle_of(api, configuration)
    assert base64.b64decode(secret["data"]["ca.crt"]) == first
    assert await keeper.round() is Step.NOTHING
    assert api.get(f"/api/v1/namespaces/{namespace}/secrets/webhook") == secret

    api.delete(f"/api/v1/namespaces/{namespace}/secrets/webhook")
    assert await keeper.round() is Step.START_OVER
    assert first in bundle_of(api, configuration)
    assert len(bundle_of(api, configuration)) > len(first)

    source = SecretSource(kube, namespace, "webhook")
    assert await source.current() is None
    clock.pass_seconds(settings.lifetimes.propagation_seconds + 1)
    assert await keeper.round() is Step.NEW_SERVING
    served = await source.current()
    assert served is not None
    assert ServingContext().load(served) is not None


async def test_the_authorities_are_the_operator_s_fields(
    api: ApiClient, kube: KubeClient, namespace: str, configuration: str
) -> None:
    """Whoever applies the chart again owns the other fields, so an upgrade neither conflicts nor takes it back."""
    settings = replace(ENDPOINT, namespace=namespace, configuration_name=configuration)
    await CertificateKeeper(kube, settings, SetClock()).round()
    fields = api.get(MUTATING_WEBHOOKS.path(name=configuration))["metadata"]["managedFields"]
    (owned,) = [entry["fieldsV1"] for entry in fields if entry["manager"] == FIELD_MANAGER_OPERATOR]
    assert "f:caBundle" in str(owned)
    assert "f:rules" not in str(owned)


def bundle_of(api: ApiClient, configuration: str) -> bytes:
    """Return what the API server trusts, PEM."""
    (webhook,) = api.get(MUTATING_WEBHOOKS.path(name=configuration))["webhooks"]
    return base64.b64decode(webhook["clientConfig"]["caBundle"])
