"""Quotas that lend each other groups on a real API server: idle room is used, and comes back to its owner."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from cluster_harness.api_client import ApiClient, Json
from cluster_harness.waiting import wait_for
from gpu_cluster import OURS, GpuCluster, condition
from operator_fixtures import cluster, kinds, operator, operator_kubeconfig, second_namespace

__all__ = ["cluster", "kinds", "operator", "operator_kubeconfig", "second_namespace"]

pytestmark = pytest.mark.usefixtures("operator")


@dataclass(frozen=True)
class Teams:
    """Two teams of one cohort, of 64 groups each."""

    a: GpuCluster
    b: GpuCluster
    quota_a: str
    quota_b: str

    def status(self, quota: str) -> Json:
        """Return the status of a quota."""
        return self.a.quota_status(quota)

    def wait_lending(self, lender: str, groups: int) -> None:
        """Wait until a quota says that it has lent so much."""
        wait_for(lambda: self.status(lender).get("lent") == groups, f"{lender} to lend {groups}")


@pytest.fixture
def teams(cluster: GpuCluster, second_namespace: str) -> Iterator[Teams]:
    """Give two teams a quota each, both enforced."""
    other, cohort = GpuCluster(cluster.api, second_namespace), cluster.namespace
    made = Teams(cluster, other, cluster.declare_quota(64, cohort=cohort), other.declare_quota(64, cohort=cohort))
    made.a.wait_enforced(64)
    made.b.wait_enforced(64)
    yield made
    other.close()


@pytest.fixture
def low_priority(api: ApiClient, namespace: str) -> Iterator[str]:
    """Make a class of pods that matter less than others."""
    name, path = f"low-{namespace}", "/apis/scheduling.k8s.io/v1/priorityclasses"
    api.create(path, {"metadata": {"name": name}, "value": -10})
    yield name
    api.delete(f"{path}/{name}")


def scale(team: GpuCluster, name: str, replicas: int) -> None:
    """Set how many pods a Deployment has."""
    path = f"/apis/apps/v1/namespaces/{team.namespace}/deployments/{name}"
    team.api.patch(path, {"spec": {"replicas": replicas}})


def wait_pods(team: GpuCluster, count: int) -> None:
    """Wait until a team has so many pods."""
    wait_for(lambda: len(team.pods()) == count, f"{count} pods in {team.namespace}")


def test_idle_groups_are_lent_and_come_back(teams: Teams) -> None:
    """A team uses what the other does not need; when its pods end the owner has everything again."""
    teams.b.deploy("web", 32, replicas=3)
    wait_pods(teams.b, 3)
    teams.wait_lending(teams.quota_a, 32)
    wait_for(lambda: teams.status(teams.quota_b).get("used") == 96, "the use to be told")
    wait_for(lambda: teams.status(teams.quota_b).get("borrowed") == 32, "the loan to be told")
    assert (teams.a.limit(), teams.b.limit()) == (32, 96)
    scale(teams.b, "web", 1)
    teams.a.wait_enforced(64)
    teams.b.wait_enforced(64)


def test_a_borrowing_limit_of_nothing_lends_only(teams: Teams) -> None:
    """A quota that may not borrow stays within its own groups, and its message says what is short."""
    teams.b.api.patch(f"{OURS}/ctaquotas/{teams.quota_b}", {"spec": {"borrowingLimit": 0}})
    teams.b.deploy("web", 32, replicas=3)
    teams.b.wait_told("Deployment", "web", "1 of 3 pods cannot be created: needs 32, quota 64, used 64, short 32")
    assert teams.a.limit() == 64


def test_an_owner_waits_for_what_is_lent(teams: Teams) -> None:
    """With `reclaim: wait` an owner's pod is told who has its groups, and exists soon after a borrower's pod ended."""
    teams.b.deploy("web", 32, replicas=3)
    wait_pods(teams.b, 3)
    teams.a.deploy("web", 64)
    teams.a.wait_told("Deployment", "web", "needs 64, quota 64 of which 32 are lent to cohort", "used 0, short 32")
    wait_for(lambda: condition(teams.status(teams.quota_a), "Reclaiming") == ("True", "Waiting"), "the quota to tell")
    scale(teams.b, "web", 2)
    wait_pods(teams.a, 1)
    wait_for(
        lambda: condition(teams.status(teams.quota_a), "Reclaiming") == ("False", "NothingOwed"), "the end of waiting"
    )


def test_an_owner_takes_back_what_is_lent(teams: Teams, low_priority: str) -> None:
    """With `reclaim: delete` the borrower's pod of the lowest priority is deleted, and does not come back."""
    teams.a.api.patch(f"{OURS}/ctaquotas/{teams.quota_a}", {"spec": {"reclaim": "delete"}})
    teams.b.deploy("less", 32, priorityClassName=low_priority)
    wait_pods(teams.b, 1)
    teams.b.deploy("more", 32, replicas=2)
    wait_pods(teams.b, 3)
    teams.a.deploy("web", 64)
    wait_pods(teams.a, 1)
    assert [pod["metadata"]["labels"]["app"] for pod in teams.b.pods()] == ["more", "more"]
    teams.b.wait_told("Deployment", "less", "needs 32, quota 64, used 64, short 32")
    path = f"/api/v1/namespaces/{teams.b.namespace}/events?fieldSelector=reason=GroupsReclaimed"
    events = wait_for(lambda: teams.b.api.items(path), "an event on the pod that was deleted")
    assert [one["involvedObject"]["name"].rsplit("-", 2)[0] for one in events] == ["less"]
    assert (teams.a.limit(), teams.b.limit()) == (64, 64)
