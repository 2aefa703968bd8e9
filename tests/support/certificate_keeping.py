"""Certificates of the webhook that a leader keeps in an API server of the test, and a replica that serves them."""

import base64
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from admission_pods import H100, server_pod
from admission_running import ENDPOINT, Conversation, SetClock, running_endpoint
from cta_group_operator.admission.certificate_sources import SecretSource
from cta_group_operator.admission.certificates import CertificateKeeper
from cta_group_operator.admission.trust import CONFIGURATIONS
from cta_group_operator.resources import SECRETS
from cta_group_operator.settings import Lifetimes
from memory_kube import MemoryKube

SECRET = SECRETS.path("cta-group", "webhook")
CONFIGURATION, REFUSING = (resource.path(name="cta-group") for resource in CONFIGURATIONS)
NAME = "operator.cta-group.svc"
HOUR = 3600
# Real TLS checks real time, so certificates live long here and the clock is what goes on.
LIFETIMES = Lifetimes(authority_seconds=90_000_000, serving_seconds=30_000_000)
SETTINGS = replace(ENDPOINT, lifetimes=LIFETIMES)


@pytest.fixture
def kube() -> MemoryKube:
    """Return an API server with webhook configurations as the chart makes them, one of two webhooks."""
    made = MemoryKube()
    webhooks = [{"name": name, "clientConfig": {"service": {"name": "operator"}}} for name in ("pods", "more")]
    made.put(CONFIGURATION, {"kind": "MutatingWebhookConfiguration", "webhooks": webhooks})
    made.put(REFUSING, {"kind": "ValidatingWebhookConfiguration", "webhooks": webhooks[:1]})
    return made


@pytest.fixture
def clock() -> SetClock:
    """Return the leader's clock."""
    return SetClock()


@pytest.fixture
def keeper(kube: MemoryKube, clock: SetClock) -> CertificateKeeper:
    """Return the leader's part."""
    return CertificateKeeper(kube, SETTINGS, clock)


@pytest.fixture
async def conversation(kube: MemoryKube) -> AsyncIterator[Conversation]:
    """Run a replica that serves what the Secret holds."""
    async with running_endpoint(SecretSource(kube, "cta-group", "webhook"), H100, settings=SETTINGS) as made:
        made.name = NAME
        yield made


def trusted(kube: MemoryKube, webhook: int = 0, path: str = CONFIGURATION) -> bytes:
    """Return what the API server trusts for a webhook, PEM."""
    return base64.b64decode(kube.objects[path]["webhooks"][webhook]["clientConfig"]["caBundle"])


async def call(conversation: Conversation, kube: MemoryKube) -> None:
    """Ask as the API server would, with what it trusts now; an error when TLS fails."""
    conversation.bundle = trusted(kube)
    assert (await conversation.ask(server_pod("m")))["allowed"]
