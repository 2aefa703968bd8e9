"""Manifests in the styles in which people and serving stacks write vLLM, each with what is to be read from it."""

import pytest

from vllm_fixtures import Case, cases

CASES = cases()


def test_there_are_many_and_no_two_are_called_alike() -> None:
    """Sixty styles at least."""
    assert len({case.title for case in CASES}) == len(CASES) >= 60


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_manifest_is_read_and_fitted_as_expected(case: Case) -> None:
    """Container, release, form, groups, each argument, each change; and every refusal and warning that is expected."""
    answer, expect = case.answer, case.expect
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
    assert not ("quiet" in expect and answer.warnings), answer.warnings
