"""A release whose certificate cert-manager makes, on a real node: it comes in by a mount, and nobody touches it.

cert-manager itself is played; its kinds are the published ones.
"""

from collections.abc import Iterator

import pytest

from cert_manager_player import bundles, play_cert_manager, secret_data
from cluster_harness import release
from cluster_harness.cert_manager import CERT_MANAGER_KINDS, cert_manager_definitions
from cluster_harness.errors import ApiError
from cluster_harness.tools import Tools
from cluster_harness.waiting import wait_for
from cta_group_core.names import ANNOTATION_ALIGNMENT
from node_clusters import SHARED_VALUES
from rehearsing import wait_gated
from team import Team

_NAME = "cta-group-webhook"


@pytest.fixture
def by_cert_manager(tools: Tools) -> Iterator[Tools]:
    """Upgrade the release to cert-manager's certificates on a cluster that has its kinds, and back again."""
    for path in cert_manager_definitions():
        tools.kubectl("apply", "--server-side", "-f", str(path))
    wait_for(lambda: all(_is_served(tools, plural) for plural in CERT_MANAGER_KINDS), "cert-manager's kinds")
    try:
        release.upgrade(tools, *SHARED_VALUES, "--set", "webhook.certificates.source=cert-manager")
        yield tools
    finally:
        release.upgrade(tools, *SHARED_VALUES)
        wait_gated(tools, "default")


def _is_served(tools: Tools, plural: str) -> bool:
    try:
        return tools.api.find(f"/apis/cert-manager.io/v1/{plural}") is not None
    except ApiError:
        return False


def test_a_release_goes_over_to_cert_manager_and_back(by_cert_manager: Tools, team: Team) -> None:
    """Its new authority alone is trusted, and pods are gated and aligned by it; the operator changes nothing of it."""
    issued = play_cert_manager(by_cert_manager, _NAME)
    wait_gated(by_cert_manager, team.namespace)
    team.start_server("server")
    team.wait_served("server")
    assert ANNOTATION_ALIGNMENT in team.server_pod("server")["metadata"]["annotations"]
    assert bundles(by_cert_manager) == {issued.bundle}
    assert secret_data(by_cert_manager, _NAME) == issued.data
