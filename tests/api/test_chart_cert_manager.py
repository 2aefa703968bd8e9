"""The chart's objects for cert-manager, and a real API server that has cert-manager's own published kinds."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from chart_rendering import NAMESPACE, Manifest, of_kind, render
from cluster_harness.api_client import ApiClient
from cluster_harness.cert_manager import CERT_MANAGER_KINDS, cert_manager_definitions
from cluster_harness.control_plane import ControlPlane
from cluster_harness.errors import ApiError
from cluster_harness.waiting import wait_for
from kubectl import Kubectl

_GROUP = "cert-manager.io/v1"
_OWN_ISSUER = ("webhook.certificates.issuerRef.name=ours", "webhook.certificates.issuerRef.kind=ClusterIssuer")


@pytest.fixture(scope="module")
def kubectl(control_plane: ControlPlane) -> Iterator[Kubectl]:
    """Give the API server cert-manager's kinds and the release's namespace; the kinds go again."""
    made = Kubectl.admin(control_plane)
    made.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    files = cert_manager_definitions()
    made.apply(*(yaml.safe_load(path.read_text()) for path in files))
    api = control_plane.api
    wait_for(lambda: all(_is_served(api, plural) for plural in CERT_MANAGER_KINDS), "cert-manager's kinds to be served")
    yield made
    for path in files:
        made.run("delete", "--wait", "--ignore-not-found", "-f", str(path))


def _is_served(api: ApiClient, plural: str) -> bool:
    """Tell whether the API server has made room for a new kind; until then it says 404, then 429."""
    try:
        return api.find(f"/apis/{_GROUP}/{plural}") is not None
    except ApiError:
        return False


def _of_cert_manager(*settings: str) -> list[Manifest]:
    return [one for one in render("cert-manager", *settings) if one["apiVersion"] == _GROUP]


@pytest.mark.parametrize(
    ("settings", "kinds"),
    [((), ["Certificate", "Certificate", "Issuer", "Issuer"]), (_OWN_ISSUER, ["Certificate"])],
    ids=["an authority of the release's own", "an issuer of the cluster"],
)
def test_cert_manager_s_kinds_take_them_as_they_are(
    kubectl: Kubectl, settings: tuple[str, ...], kinds: list[str]
) -> None:
    """Strict validation by the published schemas: no unknown field, no wrong type, no value that is not known."""
    objects = _of_cert_manager(*settings)
    assert sorted(one["kind"] for one in objects) == kinds
    how = ("--server-side", "--dry-run=server", "--validate=strict")
    done = kubectl.run("apply", *how, "-f", "-", objects=objects)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr


def test_those_kinds_would_refuse_a_field_that_they_do_not_know(kubectl: Kubectl) -> None:
    """The validation above is one: a misspelt field, and a key of an algorithm that nobody has, are refused."""
    certificate = of_kind(_of_cert_manager(), "Certificate")["cta-group-webhook"]
    how = ("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
    for wrong in ({"dnsName": ["a"]}, {"privateKey": {"algorithm": "ROT13"}}):
        spec: dict[str, Any] = certificate["spec"] | wrong
        assert kubectl.run(*how, objects=[certificate | {"spec": spec}]).returncode != 0, wrong
