"""Manifests in the styles in which people and serving stacks write vLLM, each with what is to be read from it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from cta_group_cli.align_rules import WorkloadAnswer, answers
from cta_group_cli.manifests import read_manifests
from cta_group_core.profiles import profile_named
from cta_group_core.vllm.gpu import GpuKind

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "vllm"


@dataclass(frozen=True)
class Case:
    """One manifest with one workload, on an H100."""

    title: str
    manifest: str
    expect: dict[str, Any]


def cases() -> list[Case]:
    """Return all of them."""
    return [Case(**one) for path in sorted(FOLDER.glob("*.yaml")) for one in yaml.safe_load(path.read_text())]


CASES = cases()


def answer_of(case: Case) -> WorkloadAnswer:
    """Return the answer for the manifest's only workload."""
    profile = profile_named("h100-sxm")
    kind = GpuKind(profile.product, profile.memory_total_mib, 1024, profile.units, limits_memory=True)
    (answer,) = answers(read_manifests(case.manifest, case.title), kind)
    return answer


def test_there_are_many_and_no_two_are_called_alike() -> None:
    """Sixty styles at least."""
    assert len({case.title for case in CASES}) == len(CASES) >= 60


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_manifest_is_read_and_fitted_as_expected(case: Case) -> None:
    """Container, release, form, groups, each argument, each change; and every refusal and warning that is expected."""
    answer, expect = answer_of(case), case.expect
    found = {
        key: value for key, value in answer.as_json().items() if key in {"container", "version", "argvForm", "groups"}
    }
    assert found == {key: expect[key] for key in ("container", "version", "argvForm", "groups")}
    assert answer.read == expect["read"]
    assert [f"{edit['flag']}={edit['to']}" for edit in answer.edits] == expect["set"]
    for kind, told in (("refused", answer.refused), ("warnings", answer.warnings)):
        for text in expect.get(kind, ()):
            assert any(text in one for one in told), (text, told)
    assert bool(answer.refused) is ("refused" in expect), answer.refused
