"""``kubectl cta doctor`` finds nothing where nothing is wrong, and tells what it finds in two forms."""

import json

import pytest

from cta_group_cli.doctor.gather import gather
from cta_group_cli.doctor.show import show_checkup
from cta_group_cli.errors import ClusterUnavailable, NotFound
from cta_group_cli.exits import Exit
from cta_group_cli.ports import Node
from cta_group_core.compatibility.findings import Severity
from cta_group_core.nodes import GpuHealth
from doctor_checkup import WELL, found, on_node
from fake_doctor_reader import (
    FakeDoctorReader,
    binding,
    gpu,
    machine,
    policy,
    release_pod,
    status,
    webhook,
    workload,
)
from gpu_strategies import uuid_of


def printed(
    capsys: pytest.CaptureFixture[str], reader: FakeDoctorReader, name: str | None = None, *, as_json: bool = False
) -> tuple[Exit, str]:
    """Return exit status and output of the command."""
    ended = show_checkup(reader, name, as_json=as_json)
    return ended, capsys.readouterr().out


def test_a_cluster_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is found, and the exit status is 0."""
    assert printed(capsys, WELL) == (Exit.FINE, "Nothing is wrong; 1 node examined.\n")
    assert printed(capsys, WELL, "gpu-1")[0] is Exit.FINE


def test_a_finding_says_where_what_and_how_to_mend_it(capsys: pytest.CaptureFixture[str]) -> None:
    """The text has a line for what is wrong on which node and one for the remedy; the exit status is 1."""
    ended, text = printed(capsys, on_node(gpu(persistence_mode=False)))
    first, second, *_ = text.splitlines()
    assert ended is Exit.FINDINGS
    assert first.startswith(f"WARNING  node gpu-1, GPU 0 ({uuid_of(0)}): persistence mode is off")
    assert second == "         Mend it: run nvidia-persistenced on the node, or nvidia-smi -pm 1"
    assert text.endswith("1 finding; 1 node examined.\n")


def test_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Programs get severity, subject, sentence, remedy and nodes."""
    _, text = printed(capsys, on_node(gpu(persistence_mode=False)), as_json=True)
    facts = json.loads(text)
    assert facts["nodes"] == ["gpu-1"]
    assert facts["notChecked"] == []
    (one,) = facts["findings"]
    assert set(one) == {"severity", "subject", "sentence", "remedy", "nodes"}
    assert (one["severity"], one["nodes"]) == ("warning", ["gpu-1"])


def test_a_named_node_comes_with_the_way_to_ask_it(capsys: pytest.CaptureFixture[str]) -> None:
    """What no object of the cluster tells, the doctor in the plugin's pod does."""
    ended, text = printed(capsys, WELL, "gpu-1")
    assert ended is Exit.FINE
    pod = WELL.pods[0].metadata
    assert f"kubectl -n {pod.namespace} exec {pod.name} -- cta-group-plugin doctor" in text
    assert "exec" not in printed(capsys, WELL)[1]


def test_what_is_only_worth_knowing_leaves_the_exit_status_at_0(capsys: pytest.CaptureFixture[str]) -> None:
    """Simulated GPUs are told and need nobody."""
    ended, text = printed(capsys, on_node(simulated=True))
    assert ended is Exit.FINE
    assert "INFO     node gpu-1, GPUs: they are simulated" in text


def test_what_many_nodes_have_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    """A thousand nodes with one kubelet are one finding."""
    names = [f"gpu-{number}" for number in range(7)]
    reader = WELL.but(
        all_nodes=[Node(name, status()) for name in names],
        all_machines=[machine(name, kubelet="v1.37.2") for name in names],
        pods=[release_pod("plugin", name) for name in names],
        workloads=[workload("plugin", wanted=7), workload("operator", wanted=2)],
    )
    _, text = printed(capsys, reader)
    assert text.count("kubernetes#142293") == 1
    assert "nodes gpu-0, gpu-1, gpu-2, gpu-3, gpu-4 and 2 more, kubelet" in text


def test_the_worst_is_told_first() -> None:
    """Errors, then warnings, whatever they are about."""
    sick = gpu(health=GpuHealth.UNHEALTHY, health_reason="XID 79", persistence_mode=False)
    told = found(
        on_node(sick).but(all_policies=[policy("other")], bindings=[binding("other")], all_webhooks=[webhook("")])
    )
    assert [one.finding.severity for one in told] == sorted(
        (one.finding.severity for one in told), key=list(Severity).index
    )
    assert len({one.finding.severity for one in told}) == 2


def test_unknown_node_names_the_known_ones() -> None:
    """A node that does not exist is bad input."""
    with pytest.raises(NotFound, match="no node 'gpu-9'; nodes: gpu-1"):
        gather(WELL, "gpu-9")


def test_a_cluster_that_does_not_answer_is_told() -> None:
    """The one question that everything hangs on passes its error on."""
    with pytest.raises(ClusterUnavailable):
        gather(WELL.but(denied=frozenset({"nodes"})), None)


@pytest.mark.parametrize(
    "method",
    [
        "machines",
        "release_workloads",
        "release_pods",
        "webhooks",
        "policies",
        "policy_bindings",
        "runtime_classes",
        "tenant_pods",
        "rehearse_pod",
    ],
)
def test_what_may_not_be_read_is_said_and_nothing_is_made_up(method: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Somebody with few rights gets no false finding, and reads what was not looked at."""
    ended, text = printed(capsys, WELL.but(denied=frozenset({method})))
    assert ended is Exit.FINE, text
    assert "NOT CHECKED, " in text
    assert "403 forbidden" in text


def test_feature_gates_that_may_not_be_read_are_no_finding(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody claims that a gate is on whose kubelet was not asked."""
    reader = WELL.but(all_machines=[machine("gpu-1", kubelet="v1.37.2")], denied=frozenset({"kubelet_gates"}))
    ended, text = printed(capsys, reader)
    assert ended is Exit.FINE
    assert "NOT CHECKED, feature gates of kubelet on gpu-1" in text


def test_a_rehearsal_that_somebody_else_refuses_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """A quota on the namespace is no fault of the webhook."""
    ended, text = printed(capsys, WELL.but(rehearsal=ClusterUnavailable("exceeded quota")))
    assert ended is Exit.FINE
    assert "NOT CHECKED, whether the webhook is reached: exceeded quota" in text
