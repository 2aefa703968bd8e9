"""Both doctors on a real node with the release: they find what is so there and nothing else."""

import json
from typing import Any

from cluster_harness.cluster import Cluster
from cluster_harness.tools import Tools
from cluster_harness.waiting import wait_for
from doctor_in_pod import findings_in_pod
from team import Team

Json = dict[str, Any]


def test_kubectl_cta_doctor_finds_what_is_so(tools: Tools, cluster: Cluster, team: Team) -> None:
    """Simulated GPUs, and this kubelet's statuses; webhook, policies, release and the tenant are in order."""
    team.start_pod("tenant", 32)
    team.wait_running("tenant")

    def finds_what_is_so() -> Json | None:
        facts: Json = json.loads(tools.cta("doctor", "-o", "json"))
        found = {(one["severity"], one["subject"]) for one in facts["findings"]}
        return facts if found == {("info", "GPUs"), ("warning", "kubelet")} else None

    # A replica of the release that is not ready at this moment would be a finding too, and rightly.
    facts = wait_for(finds_what_is_so, "nothing but the simulation and this kubelet to be found")
    assert facts["nodes"] == [cluster.node.name]
    assert facts["notChecked"] == []
    assert "kubernetes#142293" in str(facts["findings"])


def test_the_doctor_in_the_plugin_s_pod_takes_the_plugin_s_settings(tools: Tools, team: Team) -> None:
    """It asks kubelet and the MPS supervisor by the paths of the running plugin, and finds a shared GPU in order."""
    team.start_pod("tenant", 32)
    team.wait_running("tenant")
    found = wait_for(lambda: told_in_pod(tools) == [("info", "GPUs")], "nothing but the simulation to be found")
    assert found


def told_in_pod(tools: Tools) -> list[tuple[str, str]]:
    """Return severity and subject of each finding in the plugin's pod."""
    return [(one["severity"], one["subject"]) for one in findings_in_pod(tools)]
