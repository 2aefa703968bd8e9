"""The webhook's certificates under disturbance: two replicas behind the chart's registration, and pods that go on.

Lives and waits of a rotation are shortened by the operator's options; what is asked and decided is the same.
"""

import base64
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from calling_loop import CallingLoop
from cluster_harness.control_plane import ControlPlane
from cluster_harness.waiting import wait_for
from cta_group_operator.admission.authority import issue, make_authority, read_certificates
from cta_group_operator.admission.settings import EndpointSettings
from cta_group_operator.settings import Settings
from operator_fixtures import kinds, operator_kubeconfig
from operator_process import OperatorProcess
from registered_operator import SECRET, WEBHOOKS, Registration, registered_operator

__all__ = ["kinds", "operator_kubeconfig"]

_FLAGS = ("--webhook-propagation-seconds=5", "--webhook-overlap-seconds=5", "--webhook-poll-seconds=1")
"""Long enough that whoever must take notice has, on a machine that is busy."""
_SECONDS_TO_GO = 12.0
_NAMES = EndpointSettings.of(Settings(identity="")).server_names


def aged(seconds_to_go: float) -> dict[str, str]:
    """Return a Secret's data, hours old, whose authority must be replaced in so many seconds and ends an hour later."""
    made = datetime.now(UTC) - timedelta(hours=2) + timedelta(seconds=seconds_to_go)
    authority = make_authority(made, timedelta(hours=3))
    serving = issue(authority, _NAMES, made, timedelta(hours=6))
    parts = {
        "ca.crt": authority.certificate,
        "ca.key": authority.key,
        "tls.crt": serving.certificate,
        "tls.key": serving.key,
    }
    return {name: base64.b64encode(part).decode() for name, part in parts.items()}


def authorities(registration: Registration) -> list[bytes]:
    """Return the authorities in the Secret, the signing one first; none while there is no Secret."""
    secret = registration.api.find(SECRET)
    if secret is None:
        return []
    return [one.pem for one in read_certificates(base64.b64decode(secret["data"]["ca.crt"]))]


def is_settled(registration: Registration) -> bool:
    """Tell whether one authority is left, and all webhooks trust it alone."""
    found = authorities(registration)
    wanted = base64.b64encode(found[0]).decode() if len(found) == 1 else None
    return wanted is not None and set(registration.bundles()) == {wanted}


@contextmanager
def pods_coming(registration: Registration) -> Iterator[CallingLoop]:
    """Let pods come, one after the other, until the block ends."""
    made = CallingLoop(lambda: registration.is_seen("default"))
    try:
        yield made
    finally:
        made.end()


def the_leader(registration: Registration) -> OperatorProcess | None:
    """Return the replica that says that it leads; None while none or more than one does."""
    leading = [one for one in registration.operators if one.process.poll() is None and one.leads]
    return leading[0] if len(leading) == 1 else None


def settle(registration: Registration) -> bytes:
    """Wait until a rotation is over and pods are seen; return the authority that is left."""
    wait_for(lambda: is_settled(registration), "the end of the rotation")
    registration.wait_seen("default")
    return authorities(registration)[0]


@pytest.fixture(scope="module")
def registration(
    control_plane: ControlPlane,
    kinds: None,  # noqa: ARG001 - must be served first
    operator_kubeconfig: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Registration]:
    """Run two replicas behind the chart's registration."""
    folder, api = tmp_path_factory.mktemp("rotation"), control_plane.api
    with registered_operator(control_plane, operator_kubeconfig, folder, flags=_FLAGS, replicas=2) as (made, _):
        yield made
    api.discard(SECRET)


def test_no_call_fails_in_a_rotation_with_an_upgrade_in_the_middle(registration: Registration) -> None:
    """The old authority is trusted until no replica serves what it signed, and Helm takes nothing back."""
    old = aged(_SECONDS_TO_GO)
    registration.api.patch(SECRET, {"data": old})
    first = base64.b64decode(old["ca.crt"])
    wait_for(lambda: first in map(base64.b64decode, filter(None, registration.bundles())), "the old one to be trusted")
    registration.wait_seen("default")
    with pods_coming(registration) as calls:
        wait_for(lambda: authorities(registration)[0] != first, "the new authority")
        registration.register(registration.port, "webhook.timeoutSeconds=29")
        assert settle(registration) != first
        calls.wait_more(3)
    assert all(calls.answers), f"{calls.answers.count(False)} of {len(calls.answers)} pods were not seen"


def test_a_secret_that_is_deleted_comes_back(registration: Registration) -> None:
    """With another authority, which both replicas use without a restart, and no call fails on the way."""
    before = settle(registration)
    with pods_coming(registration) as calls:
        registration.api.delete(SECRET)
        wait_for(lambda: authorities(registration)[:1] not in ([], [before]), "another Secret")
        assert settle(registration) != before
        calls.wait_more(3)
    assert all(calls.answers), f"{calls.answers.count(False)} of {len(calls.answers)} pods were not seen"
    assert {one.process.poll() for one in registration.operators} == {None}


def test_a_foreign_authority_in_the_configurations_is_taken_out(registration: Registration) -> None:
    """Whoever wrote it; the Secret stays."""
    before = settle(registration)
    foreign = make_authority(datetime.now(UTC), timedelta(hours=1)).certificate
    for path in WEBHOOKS:
        registration.write_bundle(path, base64.b64encode(foreign).decode(), manager="somebody")
    assert settle(registration) == before


def test_a_leader_that_is_killed_in_a_rotation_is_succeeded_by_one_who_ends_it(registration: Registration) -> None:
    """The other replica goes on answering, takes the lease, and goes on from what it finds."""
    settle(registration)
    registration.api.patch(SECRET, {"data": aged(-60)})
    wait_for(lambda: len(authorities(registration)) > 1, "the new authority")
    leader = wait_for(lambda: the_leader(registration), "one of them to say that it leads")
    leader.end(signal.SIGKILL)
    settle(registration)
    (other,) = [one for one in registration.operators if one.process.poll() is None]
    wait_for(lambda: other.leads, "the other replica to lead")
