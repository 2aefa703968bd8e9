"""However much is asked for or said, the API server takes the status: of one that it refuses nobody reads a word."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from chart_rendering import ROOT
from cta_group_core.explain import CreateFailure, PodFacts, Stage, WorkloadFacts
from cta_group_core.nodes import Condition, ConditionStatus
from cta_group_core.quota import NamespaceShare, QuotaStatus
from cta_group_core.rollout import Rollout
from cta_group_operator.reconcile.workload_status import status_of
from operator_world import ref

MOST = 2**63 - 1
"""The largest quantity."""
LONG = "x" * 262_144
"""As much as the annotations of one object may have together."""
_FORMATS = jsonschema.FormatChecker(())


@_FORMATS.checks("int32")
def _is_int32(number: object) -> bool:
    return not isinstance(number, int) or -(2**31) <= number < 2**31


def check(plural: str, status: dict[str, Any]) -> None:
    """Raise jsonschema's ValidationError for a status that the API server would not take."""
    path: Path = ROOT / "crds" / f"ctagroup.dev_{plural}.yaml"
    version = yaml.safe_load(path.read_text())["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]["properties"]["status"]
    jsonschema.validate(status, schema, format_checker=_FORMATS)


def test_the_check_itself_finds_a_number_that_is_too_large() -> None:
    """Formats are not looked at unless they are asked for."""
    with pytest.raises(jsonschema.ValidationError):
        check("ctaquotas", {"used": 2**31})


def test_a_quota_whose_pods_ask_for_more_than_there_is() -> None:
    """One tenant's request of 2^63 groups, and more namespaces than the status has room for."""
    shares = tuple(NamespaceShare(name=f"n{place}", hard=0, used=0, pending=MOST) for place in range(5001))
    told = Condition(type="Ready", status=ConditionStatus.FALSE, reason="WriteRefused", message=LONG)
    status = QuotaStatus(used=MOST, pending=MOST, uncharged=MOST, namespaces=shares, conditions=(told,))
    check("ctaquotas", status.as_api())
    assert (status.pending, len(status.namespaces)) == (2**31 - 1, 5000)
    assert status.conditions[0].message.endswith("x…")


def test_a_workload_that_asks_for_more_than_there_is() -> None:
    """Its sentence has the number that was asked for."""
    facts = WorkloadFacts(
        wanted=MOST,
        groups_per_pod=MOST,
        pods=[PodFacts("p", Stage.NO_ROOM, f"asked for {MOST} groups")],
        failure=None,
        rollout=Rollout(surge=MOST, unavailable=MOST),
    )
    status = status_of(ref("Deployment", "web"), facts, (None, None))
    check("ctaworkloads", status.as_api())
    assert f"asked for {MOST} groups" in status.message


def test_what_others_said_of_a_workload_is_cut() -> None:
    """An annotation about arguments, and a refusal, may be of any length."""
    told = Condition(type="ArgsAligned", status=ConditionStatus.FALSE, reason="ArgsNotPatchable", message=LONG)
    facts = WorkloadFacts(wanted=1, groups_per_pod=8, failure=CreateFailure(LONG))
    check("ctaworkloads", status_of(ref("Deployment", "web"), facts, (None, told)).as_api())
