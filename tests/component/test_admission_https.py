"""The admission endpoint over real HTTPS: questions, bad questions, faults inside, certificates that change."""

import asyncio
import json
import ssl
from collections.abc import Collection
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from admission_pods import ALSO_SET, FITS_H100_QUARTER, FLAG, H100, patched, server_pod
from admission_running import local_certificate, local_endpoint, patch_of, running_endpoint, write_pair
from conditions import until
from cta_group_core.names import GATE_PLACEMENT, LABEL_REQUESTS
from cta_group_core.vllm.gpu import GpuKind
from cta_group_operator.admission.certificate_sources import FolderSource
from cta_group_operator.admission.pod import Spec

Json = dict[str, Any]
EXPIRY = "webhook_certificate_expiry_timestamp_seconds"


class BrokenFacts:
    """Facts that fail when they are asked for."""

    def kinds(self, spec: Spec) -> Collection[GpuKind]:
        """Fail."""
        raise RuntimeError(f"broken for the test, node {spec.node_name}")


async def test_a_pod_is_mutated_over_tls(tmp_path: Path) -> None:
    """The API server gets a patch, warnings and its uid back; what was changed is counted."""
    async with local_endpoint(tmp_path, H100) as conversation:
        response = await conversation.ask(server_pod("m"))
        pod = patched(server_pod("m"), patch_of(response))
        assert response["allowed"] is True
        assert pod["metadata"]["labels"] == {LABEL_REQUESTS: "true"}
        assert pod["spec"]["schedulingGates"] == [{"name": GATE_PLACEMENT}]
        assert pod["spec"]["containers"][0]["args"] == ["m", f"{FLAG}={FITS_H100_QUARTER}", *ALSO_SET]
        assert response["warnings"][0] == f"set {FLAG}={FITS_H100_QUARTER} (was not given)"
        assert conversation.metric("alignment_changes_total", flag=FLAG) == 1
        assert conversation.metric("admission_seconds_count", path="mutate") == 1
        assert conversation.metric(EXPIRY) > 0


async def test_a_dry_run_is_answered_and_not_counted(tmp_path: Path) -> None:
    """Nothing was changed."""
    async with local_endpoint(tmp_path, H100) as conversation:
        assert patch_of(await conversation.ask(server_pod("m"), dryRun=True))
        assert conversation.metric("alignment_changes_total", flag=FLAG) == 0


async def test_a_pod_of_another_resource_comes_in_unchanged(tmp_path: Path) -> None:
    """No patch, no warning."""
    async with local_endpoint(tmp_path, H100) as conversation:
        assert await conversation.ask(server_pod("m", groups=None)) == {"uid": "u-1", "allowed": True}


@pytest.mark.parametrize(
    "request_fields",
    [
        {"kind": {"group": "apps", "version": "v1", "kind": "Deployment"}},
        {"operation": "UPDATE"},
        {"operation": "DELETE", "object": None},
        {"subResource": "ephemeralcontainers"},
    ],
)
async def test_other_questions_are_let_through(tmp_path: Path, request_fields: Json) -> None:
    """Only pods that are being created are looked at."""
    async with local_endpoint(tmp_path, H100) as conversation:
        assert await conversation.ask(server_pod("m"), **request_fields) == {"uid": "u-1", "allowed": True}


async def test_the_validating_path_refuses_with_a_sentence(tmp_path: Path) -> None:
    """As an error of the API server, which the creator reads."""
    async with local_endpoint(tmp_path, H100) as conversation:
        response = await conversation.ask(server_pod("m", "-tp=2"), path="/validate")
        assert response["allowed"] is False
        assert "only one rank runs" in response["status"]["message"]
        assert response["status"]["code"] == 422
        assert (await conversation.ask(server_pod("m"), path="/validate"))["allowed"] is True


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "not an AdmissionReview"),
        (b"{", "not an AdmissionReview"),
        (b"[]", "not an AdmissionReview"),
        (b"{}", "only admission.k8s.io/v1 AdmissionReview is answered"),
        (b'{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"}', "v1beta1"),
        (b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}', "no request with a uid"),
        (
            (
                b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u",'
                b' "kind": {"kind": "Pod"}, "object": {"metadata": {}, "spec": {"containers": "none"}}}}'
            ),
            "Expected `array | null`, got `str` - at `$.spec.containers`",
        ),
    ],
)
async def test_a_body_that_is_no_question_is_refused_in_words(tmp_path: Path, body: bytes, said: str) -> None:
    """HTTP 400, which the API server treats as a failed call, and a metric."""
    async with local_endpoint(tmp_path, H100) as conversation:
        status, text = await conversation.send("/mutate", body)
        assert status == 400
        assert said in text
        assert conversation.metric("admission_errors_total", reason="bad_review") == 1


async def test_a_fault_inside_lets_the_pod_in(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As it is, with a warning to its creator, a metric and a line in the log."""
    async with local_endpoint(tmp_path, BrokenFacts()) as conversation:
        response = await conversation.ask(server_pod("m"))
        assert (response["allowed"], patch_of(response)) == (True, [])
        assert "could not look at this pod" in response["warnings"][0]
        assert conversation.metric("admission_errors_total", reason="internal") == 1
        assert "admission_failed" in caplog.text


async def test_long_warnings_are_cut_by_us_and_not_by_the_api_server(tmp_path: Path) -> None:
    """At most 256 characters each."""
    async with local_endpoint(tmp_path, H100) as conversation:
        pod = server_pod("m", *(f"extra-{number}-{'x' * 300}" for number in range(2)))
        response = await conversation.ask(pod)
        assert max(map(len, response["warnings"])) == 256


async def test_a_hundred_questions_at_once_are_all_answered(tmp_path: Path) -> None:
    """Each with its own answer."""
    async with local_endpoint(tmp_path, H100) as conversation:
        answers = await asyncio.gather(*(conversation.ask(server_pod("m")) for _ in range(100)))
        assert all(patch_of(answer) for answer in answers)
        assert conversation.metric("admission_seconds_count", path="mutate") == 100


async def test_it_opens_when_the_certificate_comes(tmp_path: Path) -> None:
    """Not ready before, and no restart is needed."""
    bundle, pair = local_certificate()
    async with running_endpoint(FolderSource(tmp_path), H100, bundle=bundle) as conversation:
        assert not conversation.server.is_ready
        write_pair(tmp_path, pair)
        await until(lambda: conversation.server.is_ready)
        assert (await conversation.ask(server_pod("m")))["allowed"]


async def test_a_new_certificate_is_served_without_a_restart(tmp_path: Path) -> None:
    """New connections get it; one that trusts only the old authority fails then."""
    async with local_endpoint(tmp_path, H100) as conversation:
        old_port, old_expiry = conversation.server.port, conversation.metric(EXPIRY)
        new_bundle, pair = local_certificate(hours=2)
        write_pair(tmp_path, pair)
        await until(lambda: conversation.metric(EXPIRY) > old_expiry)
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await conversation.ask(server_pod("m"))
        conversation.bundle = new_bundle
        assert (await conversation.ask(server_pod("m")))["allowed"]
        assert conversation.server.port == old_port


async def test_a_certificate_that_cannot_be_served_leaves_the_one_in_use(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Half-written files and foreign keys are logged and tried again."""
    async with local_endpoint(tmp_path, H100) as conversation:
        _, other = local_certificate()
        (tmp_path / "tls.key").write_bytes(other.key)
        await until(lambda: "certificate_not_loaded" in caplog.text)
        assert (await conversation.ask(server_pod("m")))["allowed"]


async def test_an_old_tls_version_is_refused(tmp_path: Path) -> None:
    """1.2 and newer."""
    async with local_endpoint(tmp_path, H100) as conversation:
        trust = ssl.create_default_context(cadata=conversation.bundle.decode())
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            trust.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises(ssl.SSLError):
            await asyncio.open_connection("127.0.0.1", conversation.server.port, ssl=trust)


async def test_health_needs_no_question(tmp_path: Path) -> None:
    """For probes and load balancers."""
    async with local_endpoint(tmp_path, H100) as conversation:
        status, text = await conversation.send("/healthz", json.dumps({}).encode())
        assert (status, text) == (405, "405: Method Not Allowed")
