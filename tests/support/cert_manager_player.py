"""Plays cert-manager on a cluster that has its kinds: signs what Certificates ask for, and injects the authority.

As its documents say: a Secret of the certificate's name with tls.crt, tls.key and ca.crt, and the authority in each
webhook of the configurations that name the Certificate in an annotation.
"""

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cluster_harness import release
from cluster_harness.tools import Tools
from cta_group_operator.admission.authority import issue, make_authority
from team import Json

_CERTIFICATES = f"/apis/cert-manager.io/v1/namespaces/{release.NAMESPACE}/certificates"
_SECRETS = f"/api/v1/namespaces/{release.NAMESPACE}/secrets"
_INJECTS = "cert-manager.io/inject-ca-from"
_LIFETIME = timedelta(hours=3)
CONFIGURATIONS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


@dataclass(frozen=True, slots=True)
class Issued:
    """What was written: the Secret's data and the authority, both in base64."""

    data: dict[str, str]

    @property
    def bundle(self) -> str:
        """The authority."""
        return self.data["ca.crt"]


def play_cert_manager(tools: Tools, name: str) -> Issued:
    """Issue the Certificate ``name`` by a new authority, write its Secret, and inject the authority."""
    certificate = tools.api.get(f"{_CERTIFICATES}/{name}")
    now = datetime.now(UTC)
    signer = make_authority(now, _LIFETIME)
    pair = issue(signer, tuple(certificate["spec"]["dnsNames"]), now, _LIFETIME)
    parts = {"ca.crt": signer.certificate, "tls.crt": pair.certificate, "tls.key": pair.key}
    issued = Issued({key: base64.b64encode(value).decode() for key, value in parts.items()})
    _write(tools, certificate["spec"]["secretName"], issued)
    for kind in CONFIGURATIONS:
        for configuration in configurations(tools, kind):
            if configuration["metadata"].get("annotations", {}).get(_INJECTS) == f"{release.NAMESPACE}/{name}":
                _inject(tools, kind, configuration, issued.bundle)
    return issued


def configurations(tools: Tools, kind: str) -> list[Json]:
    """Return every webhook configuration of a kind."""
    return tools.api.items(f"/apis/admissionregistration.k8s.io/v1/{kind}")


def bundles(tools: Tools) -> set[str]:
    """Return the authorities that the API server trusts the release's webhooks by."""
    found = [one for kind in CONFIGURATIONS for one in configurations(tools, kind)]
    return {webhook["clientConfig"].get("caBundle", "") for one in found for webhook in one["webhooks"]}


def secret_data(tools: Tools, name: str) -> dict[str, str]:
    """Return what a Secret of the release's namespace holds."""
    data: dict[str, str] = tools.api.get(f"{_SECRETS}/{name}")["data"]
    return data


def _write(tools: Tools, name: str, issued: Issued) -> None:
    """Write the Secret; one that is there keeps its type, which cannot be changed, and loses all other data."""
    path = f"{_SECRETS}/{name}"
    there = tools.api.find(path)
    if there is None:
        tools.api.create(_SECRETS, {"metadata": {"name": name}, "type": "kubernetes.io/tls", "data": issued.data})
    else:
        tools.api.replace(path, {**there, "data": issued.data})


def _inject(tools: Tools, kind: str, configuration: Json, bundle: str) -> None:
    patch = [
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle}
        for index in range(len(configuration["webhooks"]))
    ]
    what = ("patch", kind, configuration["metadata"]["name"], "--type=json", f"--patch={json.dumps(patch)}")
    tools.kubectl(*what, "--field-manager=cert-manager-cainjector")
