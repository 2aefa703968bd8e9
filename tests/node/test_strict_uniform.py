"""Enforcement mode strict-uniform on a real node: plugin and operator keep share sizes apart by the same rule."""

from collections.abc import Iterator

import pytest

from cluster_harness import release
from cluster_harness.tools import Tools
from cluster_harness.waiting import wait_for
from cta_group_core.names import ENV_GPU_UUID
from team import CTA_NODES, EIGHT_H100, Team, allocatable


@pytest.fixture
def strict_team(tools: Tools, team: Team) -> Iterator[Team]:
    """Give the test a team on a node that is strict; it is cooperative again afterwards."""
    release.upgrade(tools, "--set", "enforcement.mode=strict-uniform")
    wait_for(lambda: _mode(tools) == "strict-uniform", "CTANode to tell the mode")
    yield team
    release.upgrade(tools)
    wait_for(lambda: _mode(tools) == "cooperative", "CTANode to tell the mode")
    wait_for(lambda: allocatable(tools) == EIGHT_H100, "the node to offer its groups again")


def test_sizes_are_kept_apart_until_a_gpu_is_empty(strict_team: Team) -> None:
    """Eight sizes take eight GPUs; a ninth waits with the reason although every GPU has room, until one is empty."""
    sizes = range(8, 72, 8)
    for size in sizes:
        strict_team.start_pod(f"size-{size}", size)
    strict_team.wait_running(*(f"size-{size}" for size in sizes))
    strict_team.start_pod("second-8", 8)
    strict_team.wait_running("second-8")
    held = {size: strict_team.environment(f"pod/size-{size}")[ENV_GPU_UUID] for size in sizes}
    assert len(set(held.values())) == 8
    assert strict_team.environment("pod/second-8")[ENV_GPU_UUID] == held[8]
    strict_team.start_pod("ninth", 40)
    strict_team.wait_running("ninth")
    assert strict_team.environment("pod/ninth")[ENV_GPU_UUID] == held[40]
    strict_team.start_pod("too-different", 72)
    strict_team.wait_explained("pod/too-different", "asked for 72", "shared in 8", "shared in 64")
    strict_team.tools.kubectl("-n", strict_team.namespace, "delete", "pod", "size-64")
    strict_team.wait_running("too-different")
    assert strict_team.environment("pod/too-different")[ENV_GPU_UUID] == held[64]


def _mode(tools: Tools) -> str:
    (node,) = tools.api.items(CTA_NODES)
    return str(node["status"]["enforcement"]["mode"])
