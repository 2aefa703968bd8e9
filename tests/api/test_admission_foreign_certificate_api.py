"""The certificate is somebody else's, as with cert-manager: the operator serves it and writes nothing of others'."""

import base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from admission_running import write_pair
from cluster_harness.control_plane import ControlPlane
from cluster_harness.waiting import wait_for
from cta_group_core.names import FIELD_MANAGER_OPERATOR
from cta_group_operator.admission.authority import KeyPair, issue, make_authority, read_certificates
from cta_group_operator.admission.settings import EndpointSettings
from cta_group_operator.settings import Settings
from operator_fixtures import kinds, operator_kubeconfig
from registered_operator import NAME, PATIENT, SECRET, WEBHOOKS, Registration, registered_operator

__all__ = ["kinds", "operator_kubeconfig"]

_INJECTOR = "cert-manager-cainjector"
_NAMES = EndpointSettings.of(Settings(identity="")).server_names
_VALUES = (*PATIENT, "webhook.certificates.source=cert-manager")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the folder in which the operator finds its certificate."""
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def registration(
    control_plane: ControlPlane,
    kinds: None,  # noqa: ARG001 - must be served first
    operator_kubeconfig: Path,
    certificates: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Registration]:
    """Run the operator with the chart's arguments for cert-manager; nobody has made a certificate yet."""
    folder = tmp_path_factory.mktemp("foreign")
    flags = (f"--webhook-tls-dir={certificates}", "--webhook-poll-seconds=1")
    place = (control_plane, operator_kubeconfig, folder)
    with registered_operator(*place, settings=_VALUES, flags=flags, waits=False) as (made, _):
        yield made


def authority() -> KeyPair:
    """Return an authority that the operator has not made."""
    return make_authority(datetime.now(UTC), timedelta(hours=3))


def serve(registration: Registration, folder: Path, signer: KeyPair, hours: int) -> None:
    """Put a certificate where the operator finds it, and wait until it is the one that is served."""
    pair = issue(signer, _NAMES, datetime.now(UTC), timedelta(hours=hours))
    write_pair(folder, pair)
    ends = read_certificates(pair.certificate)[0].ends.timestamp()
    (operator,) = registration.operators
    expiry = "cta_group_webhook_certificate_expiry_timestamp_seconds"
    wait_for(lambda: operator.metric(expiry) == ends, "the certificate to be served")


def inject(registration: Registration, *signers: KeyPair) -> str:
    """Write authorities into both configurations as the injector does; return what it wrote."""
    bundle = base64.b64encode(b"".join(one.certificate for one in signers)).decode()
    for path in WEBHOOKS:
        registration.write_bundle(path, bundle, manager=_INJECTOR)
    return bundle


def test_what_another_manager_injects_is_never_overwritten(registration: Registration, certificates: Path) -> None:
    """Through a renewal and a change of the authority the operator follows the files, and writes nothing."""
    secret = registration.api.find(SECRET)
    first, second = authority(), authority()
    serve(registration, certificates, first, hours=1)
    injected = inject(registration, first)
    registration.wait_seen("default")
    serve(registration, certificates, first, hours=2)
    registration.wait_seen("default")
    assert set(registration.bundles()) == {injected}
    injected = inject(registration, second, first)
    serve(registration, certificates, second, hours=1)
    registration.wait_seen("default")
    assert set(registration.bundles()) == {injected}
    assert registration.api.find(SECRET) == secret
    for path in WEBHOOKS:
        fields = registration.api.get(f"{path}/{NAME}")["metadata"]["managedFields"]
        assert FIELD_MANAGER_OPERATOR not in {entry["manager"] for entry in fields}
