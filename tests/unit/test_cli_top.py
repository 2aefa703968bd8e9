"""``kubectl cta top``: nodes, GPUs and holders."""

import json
from typing import Any

import pytest

from cta_group_cli.errors import NotFound
from cta_group_cli.exits import Exit
from cta_group_cli.ports import Node, Unreadable
from cta_group_cli.top import show_top
from cta_group_core.names import CONDITION_REGISTERED
from cta_group_core.nodes import Allocation, Condition, ConditionStatus, GpuHealth, GpuStatus, NodeStatus
from fake_cluster_reader import FakeClusterReader
from gpu_strategies import uuid_of

NOW = "2026-12-01T12:15:00Z"


def gpu(index: int, free: int, **more: Any) -> GpuStatus:
    """Return an H200 with free groups, held by one pod for each 32 that are not."""
    holders = tuple(
        Allocation(namespace="team-a", pod=f"vllm-{number}", container="vllm", groups=32, memory_mib=35532)
        for number in range((128 - free) // 32)
    )
    facts: dict[str, Any] = {
        "uuid": uuid_of(index),
        "index": index,
        "product": "NVIDIA H200",
        "compute_capability": "9.0",
        "sm_count": 132,
        "capacity": 128,
        "minimum": 8,
        "step": 8,
        "free": free,
        "allocations": holders,
    }
    return GpuStatus(**{**facts, **more})


def node(name: str, *gpus: GpuStatus, simulated: bool = False) -> Node:
    """Return a node with these GPUs."""
    return Node(name, NodeStatus(resource_name="nvidia.com/cta-group", simulated=simulated, gpus=gpus))


def printed(
    capsys: pytest.CaptureFixture[str], *nodes: Node | Unreadable, name: str | None = None, as_json: bool = False
) -> tuple[Exit, str, str]:
    """Return exit status, standard output and standard error of the command for these nodes."""
    status = show_top(FakeClusterReader(all_nodes=list(nodes)), name, now=NOW, as_json=as_json)
    told = capsys.readouterr()
    return status, told.out, told.err


def rows(text: str, header: str) -> list[list[str]]:
    """Return the words of the lines below the header that starts like this, up to the next blank line."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(header))
    end = lines.index("", start) if "" in lines[start:] else len(lines)
    return [line.split() for line in lines[start + 1 : end]]


def test_header_line_sums_up(capsys: pytest.CaptureFixture[str]) -> None:
    """The first line says how much is free of what can be given out, and what fits."""
    status, text, _ = printed(capsys, node("b", gpu(0, 96), gpu(1, 128)), node("a", gpu(0, 0)))
    assert text.splitlines()[0] == (
        "2 nodes, 3 GPUs: 224 of 384 groups free; the largest request on one GPU that fits now is 128."
    )
    assert status is Exit.FINE


def test_gpus_are_sorted_by_node_and_index(capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each GPU: node, index, product, free, capacity, largest request, health."""
    _, text, _ = printed(capsys, node("b", gpu(10, 100), gpu(2, 96)), node("a", gpu(0, 0)))
    assert rows(text, "NODE   GPU   PRODUCT") == [
        ["a", "0", "NVIDIA", "H200", "0", "128", "0", "Healthy"],
        ["b", "2", "NVIDIA", "H200", "96", "128", "96", "Healthy"],
        ["b", "10", "NVIDIA", "H200", "100", "128", "96", "Healthy"],
    ]


def test_holders_are_told_with_groups_and_memory(capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each container that holds groups."""
    _, text, _ = printed(capsys, node("a", gpu(0, 64), gpu(1, 128)))
    assert rows(text, "NODE   GPU   NAMESPACE") == [
        ["a", "0", "team-a", "vllm-0", "vllm", "32", "35532"],
        ["a", "0", "team-a", "vllm-1", "vllm", "32", "35532"],
    ]


def test_nobody_holds_anything(capsys: pytest.CaptureFixture[str]) -> None:
    """Without holders a sentence stands where the table would be."""
    assert "Nobody holds any groups." in printed(capsys, node("a", gpu(0, 128)))[1]


def test_simulated_nodes_are_marked(capsys: pytest.CaptureFixture[str]) -> None:
    """A node that only pretends is named in the first line and marked on each of its lines; a real one is not."""
    _, text, _ = printed(capsys, node("real", gpu(0, 128)), node("sim", gpu(0, 128), simulated=True))
    assert text.splitlines()[0].endswith("Simulated, not real GPUs: sim.")
    assert [row[:2] for row in rows(text, "NODE")] == [["real", "0"], ["sim", "(simulated)"]]


def test_what_a_plugin_that_is_gone_left_behind_is_not_called_free(capsys: pytest.CaptureFixture[str]) -> None:
    """Kubelet takes no pods with groups there, so the node is named with its reason and nothing of it is counted."""
    left = node("left", gpu(0, 128), gpu(1, 64))
    gone = Condition(
        type=CONDITION_REGISTERED, status=ConditionStatus.FALSE, reason="Stopped", message="it is stopping"
    )
    left = Node("left", left.status.model_copy(update={"conditions": (gone,)}))
    _, text, _ = printed(capsys, node("real", gpu(0, 96)), left)
    assert text.splitlines()[0] == (
        "2 nodes, 3 GPUs: 96 of 128 groups free; the largest request on one GPU that fits now is 96. "
        "Nothing is offered by left (it is stopping)."
    )
    assert [row[-2] for row in rows(text, "NODE")] == ["0", "0", "96"]
    assert "0 of 0 groups free" in printed(capsys, left)[1]


def test_what_nobody_has_confirmed_for_long_is_told_as_old(capsys: pytest.CaptureFixture[str]) -> None:
    """A plugin that was killed, or a release that is gone, leaves its last word: that is said, and is a finding."""
    old, fresh = node("old", gpu(0, 128)).status, node("fresh", gpu(0, 128)).status
    nodes = [
        Node("fresh", fresh.model_copy(update={"confirmed_at": "2026-12-01T12:00:01Z"})),
        Node("old", old.model_copy(update={"confirmed_at": "2026-12-01T12:00:00Z"})),
    ]
    status, text, _ = printed(capsys, *nodes)
    assert status is Exit.FINDINGS
    assert text.splitlines()[0].endswith(
        " Not heard of for 15 minutes or more, so what stands here is old: old (since 2026-12-01T12:00:00Z)."
    )
    assert printed(capsys, *nodes, name="fresh")[0] is Exit.FINE


def test_unhealthy_gpu_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    """An unhealthy GPU tells why, has no request that fits, and makes the exit status 1."""
    sick = gpu(0, 128, health=GpuHealth.UNHEALTHY, health_reason="XID 79")
    status, text, _ = printed(capsys, node("a", sick, gpu(1, 32)))
    assert status is Exit.FINDINGS
    assert rows(text, "NODE")[0][-4:] == ["0", "Unhealthy:", "XID", "79"]
    assert "32 of 128 groups free; the largest request on one GPU that fits now is 32." in text


def test_withheld_gpu_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    """A GPU that offers nothing on purpose says why, and is no finding."""
    withheld = GpuStatus(uuid=uuid_of(0), index=0, product="A100", compute_capability="8.0", withheld="MIG is on")
    status, text, _ = printed(capsys, node("a", withheld))
    assert status is Exit.FINE
    assert "withheld: MIG is on" in text


def test_node_without_gpus_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """A node whose plugin found no GPU is told as that."""
    assert "no GPU" in printed(capsys, node("a"))[1]


def test_no_node_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    """When nothing was published, a sentence says what to look at."""
    status, text, _ = printed(capsys)
    assert status is Exit.FINDINGS
    assert text == "No node has published its GPUs: is the plugin's DaemonSet running?\n"


def test_one_node_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    """Only the node that was named is told."""
    text = printed(capsys, node("a", gpu(0, 128)), node("b", gpu(0, 128)), name="b")[1]
    assert [row[0] for row in rows(text, "NODE")] == ["b"]


def test_unknown_node_names_the_known_ones() -> None:
    """A node that does not exist is an error that names those that do."""
    reader = FakeClusterReader(all_nodes=[node("a"), node("b")])
    with pytest.raises(NotFound, match="no CTANode 'c'; nodes whose plugin has published: a, b"):
        show_top(reader, "c", now=NOW, as_json=False)


def test_json_is_what_the_nodes_published(capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON form has each node's name and its status with the names of the API."""
    published = node("a", gpu(0, 96), simulated=True)
    facts = json.loads(printed(capsys, published, as_json=True)[1])
    assert facts == {"nodes": [{"name": "a", **published.status.as_api()}]}
    assert facts["nodes"][0]["gpus"][0]["allocations"][0]["memoryMiB"] == 35532


def test_unreadable_node_does_not_hide_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    """A node that another version wrote is told on standard error; the rest is shown, and it is a finding."""
    status, text, told = printed(capsys, node("a", gpu(0, 128)), Unreadable("b", "gpus.0.health: unknown"))
    assert status is Exit.FINDINGS
    assert told == "CTANode b cannot be read by this version: gpus.0.health: unknown\n"
    assert [row[0] for row in rows(text, "NODE")] == ["a"]
