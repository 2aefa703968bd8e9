"""A running admission endpoint and the API server's side of a conversation with it."""

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
from prometheus_client import CollectorRegistry

from conditions import until
from cta_group_operator.admission.authority import KeyPair, issue, make_authority
from cta_group_operator.admission.certificate_sources import CertificateSource, FolderSource
from cta_group_operator.admission.endpoint import Endpoint
from cta_group_operator.admission.gpu_kinds import SliceFacts
from cta_group_operator.admission.metrics import AdmissionMetrics
from cta_group_operator.admission.run import AdmissionServer
from cta_group_operator.admission.settings import EndpointSettings, PodRules
from cta_group_operator.settings import Lifetimes

Json = dict[str, Any]

ENDPOINT = EndpointSettings(
    port=0,
    host="127.0.0.1",
    namespace="cta-group",
    service_name="operator",
    secret_name="webhook",
    configuration_name="cta-group",
    lifetimes=Lifetimes(poll_seconds=0.02),
)


class SetClock:
    """A clock that stands where it is put; it begins now, since TLS looks at the real time."""

    def __init__(self, ago_seconds: float = 0) -> None:
        self.now = datetime.now(UTC) - timedelta(seconds=ago_seconds)

    def pass_seconds(self, seconds: float) -> None:
        """Go on."""
        self.now += timedelta(seconds=seconds)

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return self.now.timestamp()

    def utc_text(self) -> str:
        """Return the time of day in RFC 3339."""
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Conversation:
    """Questions to one endpoint, over TLS that trusts one bundle of authorities."""

    server: AdmissionServer
    registry: CollectorRegistry
    bundle: bytes
    name: str = "127.0.0.1"
    """The name that its certificate must have."""

    async def ask(self, pod: Json, path: str = "/mutate", **request: Any) -> Json:
        """Send the question about a pod that is being created; return the response of the answer."""
        asked = {
            "uid": "u-1",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "operation": "CREATE",
            "namespace": "team-a",
            "object": pod,
            **request,
        }
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}
        status, text = await self.send(path, json.dumps(review).encode())
        assert status == 200, text
        answer: Json = json.loads(text)
        assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        response: Json = answer["response"]
        assert response["uid"] == "u-1"
        return response

    async def send(self, path: str, body: bytes) -> tuple[int, str]:
        """Send any body in a connection of its own."""
        trust = ssl.create_default_context(cadata=self.bundle.decode())
        url = f"https://127.0.0.1:{self.server.port}{path}"
        connector = aiohttp.TCPConnector(ssl=trust, force_close=True)
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.post(url, data=body, server_hostname=self.name) as answer,
        ):
            return answer.status, await answer.text()

    def metric(self, name: str, **labels: str) -> float:
        """Return the value of one series; every series is there from the start."""
        value = self.registry.get_sample_value(f"cta_group_{name}", labels)
        assert value is not None, name
        return value


def patch_of(response: Json) -> list[Json]:
    """Return the JSON patch of a response."""
    if "patch" not in response:
        return []
    assert response["patchType"] == "JSONPatch"
    return list(json.loads(base64.b64decode(response["patch"])))


def local_certificate(hours: int = 1) -> tuple[bytes, KeyPair]:
    """Return an authority to trust and a certificate for 127.0.0.1."""
    now, life = datetime.now(UTC), timedelta(hours=hours)
    authority = make_authority(now, life)
    return authority.certificate, issue(authority, ["127.0.0.1"], now, life)


def write_pair(folder: Path, pair: KeyPair) -> None:
    """Put a certificate where the endpoint looks for one that somebody else keeps."""
    (folder / "tls.key").write_bytes(pair.key)
    (folder / "tls.crt").write_bytes(pair.certificate)


@asynccontextmanager
async def running_endpoint(
    source: CertificateSource,
    facts: SliceFacts,
    *,
    bundle: bytes = b"",
    rules: PodRules | None = None,
    settings: EndpointSettings = ENDPOINT,
) -> AsyncIterator[Conversation]:
    """Run an endpoint on a free port; it opens when its source has a certificate."""
    registry = CollectorRegistry()
    endpoint = Endpoint(rules or PodRules(), facts, AdmissionMetrics(registry))
    server = AdmissionServer(settings, endpoint, source)
    running = asyncio.create_task(server.run())
    try:
        yield Conversation(server, registry, bundle)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def local_endpoint(folder: Path, facts: SliceFacts, rules: PodRules | None = None) -> AsyncIterator[Conversation]:
    """Run an endpoint with a certificate from files, and wait until it answers."""
    bundle, pair = local_certificate()
    write_pair(folder, pair)
    async with running_endpoint(FolderSource(folder), facts, bundle=bundle, rules=rules) as conversation:
        await until(lambda: conversation.server.is_ready)
        yield conversation
