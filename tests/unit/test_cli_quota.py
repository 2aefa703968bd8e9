"""``kubectl cta quota``: what each team may hold, and holds."""

import json

import pytest

from cta_group_cli.exits import Exit
from cta_group_cli.ports import Quota, Unreadable
from cta_group_cli.quota import show_quotas
from cta_group_core.quota import QuotaSpec, QuotaStatus
from fake_cluster_reader import FakeClusterReader


def quota(name: str, *namespaces: str, pending: int = 0, ready: str = "True") -> Quota:
    """Return a quota of 256 groups, of which each namespace may hold 100 and holds 96."""
    status = {
        "groups": 256,
        "used": 96 * len(namespaces),
        "pending": pending,
        "namespaces": [{"name": namespace, "hard": 100, "used": 96} for namespace in namespaces],
        "conditions": [{"type": "Ready", "status": ready, "reason": "Enforced"}],
    }
    return Quota(name, QuotaSpec(groups=256, namespaces=namespaces), QuotaStatus.model_validate(status))


def test_each_quota_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Name, groups, used, pending, whether it is enforced, and the part of each namespace."""
    reader = FakeClusterReader(all_quotas=[quota("b", "team-b"), quota("a", "team-a", "team-a-dev")])
    assert show_quotas(reader, namespace=None, as_json=False) is Exit.FINE
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert lines == [
        ["a", "256", "192", "0", "True", *["team-a", "96", "of", "100,", "team-a-dev", "96", "of", "100"]],
        ["b", "256", "96", "0", "True", *["team-b", "96", "of", "100"]],
    ]


def test_cohorts_show_what_is_lent(capsys: pytest.CaptureFixture[str]) -> None:
    """When a quota has a cohort, three columns tell who borrowed and who lent; the others stay."""
    status = QuotaStatus(used=160, borrowed=64)
    borrower = Quota("b", QuotaSpec(groups=96, namespaces=("b",), cohort="research"), status)
    reader = FakeClusterReader(all_quotas=[quota("a", "team-a"), borrower])
    show_quotas(reader, namespace=None, as_json=False)
    header, *lines = capsys.readouterr().out.splitlines()[:3]
    assert header.split()[3:8] == ["PENDING", "COHORT", "BORROWED", "LENT", "READY"]
    assert [line.split()[3:8] for line in lines] == [
        ["0", "-", "0", "0", "True"],
        ["0", "research", "64", "0", "Unknown"],
    ]


def test_one_namespace_sees_its_quotas_only(capsys: pytest.CaptureFixture[str]) -> None:
    """With a namespace only the quotas that give it a part are told."""
    reader = FakeClusterReader(all_quotas=[quota("a", "team-a"), quota("b", "team-b")])
    show_quotas(reader, namespace="team-b", as_json=False)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]] == ["b"]


@pytest.mark.parametrize(
    ("namespace", "told"), [(None, "There is no CTAQuota."), ("x", "No CTAQuota limits namespace x.")]
)
def test_no_quota_is_a_sentence(capsys: pytest.CaptureFixture[str], namespace: str | None, told: str) -> None:
    """Nothing to show is said, and is no finding."""
    assert show_quotas(FakeClusterReader(), namespace=namespace, as_json=False) is Exit.FINE
    assert capsys.readouterr().out == f"{told}\n"


@pytest.mark.parametrize("troubled", [quota("a", "team-a", pending=32), quota("a", "team-a", ready="False")])
def test_trouble_is_a_finding(capsys: pytest.CaptureFixture[str], troubled: Quota) -> None:
    """Pods that wait for the quota, or a quota that is not enforced, make the exit status 1."""
    assert show_quotas(FakeClusterReader(all_quotas=[troubled]), namespace=None, as_json=False) is Exit.FINDINGS
    assert "team-a" in capsys.readouterr().out


def test_quota_that_nobody_has_looked_at_is_not_ready(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a status the quota is told as not enforced yet."""
    fresh = Quota("a", QuotaSpec(groups=8), QuotaStatus())
    assert show_quotas(FakeClusterReader(all_quotas=[fresh]), namespace=None, as_json=False) is Exit.FINDINGS
    assert capsys.readouterr().out.splitlines()[1].split() == ["a", "8", "0", "0", "Unknown", "none"]


def test_what_is_wrong_stands_below(capsys: pytest.CaptureFixture[str]) -> None:
    """Sentences of conditions that are not as they should be, and namespaces that got nothing, follow the table."""
    conditions = [
        {"type": "Ready", "status": "False", "reason": "Sharing", "message": "moving groups"},
        {"type": "NamespaceConflict", "status": "True", "reason": "KeptByOlder", "message": "1 namespace belongs to b"},
        {"type": "Overcommitted", "status": "False", "reason": "WithinGroups", "message": "not told"},
    ]
    status = QuotaStatus.model_validate(
        {"namespaces": [{"name": "team-a", "hard": 8, "used": 0}], "conditions": conditions}
    )
    troubled = Quota("a", QuotaSpec(groups=8, namespaces=("team-a", "team-x", "team-y")), status)
    show_quotas(FakeClusterReader(all_quotas=[troubled]), namespace=None, as_json=False)
    assert capsys.readouterr().out.splitlines()[2:] == [
        "",
        "a: moving groups",
        "a: 1 namespace belongs to b",
        "a: no part yet for team-x, team-y: no such namespace, or another CTAQuota has it",
    ]


def test_a_conflict_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    """An older quota that keeps a namespace is why this one has none; only what is not named so is told beside it."""
    conflict = "1 namespace belongs to an older CTAQuota: team-a (CTAQuota b)"
    conditions = [
        {"type": "Ready", "status": "False", "reason": "NoNamespace", "message": "no namespace that exists belongs"},
        {"type": "NamespaceConflict", "status": "True", "reason": "KeptByOlder", "message": conflict},
    ]

    def told(*namespaces: str) -> list[str]:
        status = QuotaStatus.model_validate({"conditions": conditions})
        reader = FakeClusterReader(all_quotas=[Quota("a", QuotaSpec(groups=8, namespaces=namespaces), status)])
        show_quotas(reader, namespace=None, as_json=False)
        return capsys.readouterr().out.splitlines()[3:]

    assert told("team-a") == [f"a: {conflict}"]
    assert told("team-a", "a") == [
        f"a: {conflict}",
        "a: no part yet for a: no such namespace, or another CTAQuota has it",
    ]


def test_json_is_the_objects(capsys: pytest.CaptureFixture[str]) -> None:
    """Programs get name, spec and status as the API has them."""
    show_quotas(FakeClusterReader(all_quotas=[quota("a", "team-a")]), namespace=None, as_json=True)
    (facts,) = json.loads(capsys.readouterr().out)["quotas"]
    assert facts["name"] == "a"
    assert facts["spec"] == {"groups": 256, "namespaces": ["team-a"]}
    assert facts["status"]["namespaces"] == [{"name": "team-a", "hard": 100, "used": 96, "pending": 0}]


def test_unreadable_quota_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A quota of another version is told on standard error and is a finding."""
    reader = FakeClusterReader(all_quotas=[Unreadable("b", "spec.groups: missing")])
    assert show_quotas(reader, namespace=None, as_json=False) is Exit.FINDINGS
    assert capsys.readouterr().err == "CTAQuota b cannot be read by this version: spec.groups: missing\n"
