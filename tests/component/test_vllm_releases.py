"""What is planned in every style of manifest has only flags and values of the pod's release, by its own parser."""

from dataclasses import dataclass, replace

import pytest

from cluster_harness.vllm_sources import OLDER, RELEASES, Release
from cta_group_cli.manifest_pods import containers_of
from cta_group_core.names import ANNOTATION_CONTAINER
from cta_group_core.vllm.align import Alignment
from cta_group_core.vllm.detect import ContainerFacts, Detected, detect
from cta_group_core.vllm.judge import Case as Judged
from cta_group_core.vllm.judge import judge
from cta_group_core.vllm.words import ADDITIONAL_ARGS, CommandLine, command_line
from vllm_fixtures import Case, cases, h100
from vllm_parsing import answers_of

CASES = cases()


@dataclass(frozen=True)
class Planned:
    """One manifest: what vLLM is started with now, and with what is planned."""

    title: str
    before: list[str]
    """Empty where it cannot be told."""
    after: list[str]
    values: dict[str, str]
    """What each flag is to be."""


def server_of(case: Case) -> Detected | None:
    """Return the vLLM container of a manifest."""
    containers = [one.facts for one in containers_of(case.template, case.manifests)]
    named = case.template.annotations.get(ANNOTATION_CONTAINER)
    return detect(containers, case.template.labels, named=named).found


def planned(case: Case, version: str | None) -> Planned | None:
    """Return what is planned where the release is the given one; None where nothing is."""
    found, groups = server_of(case), case.answer.groups
    if found is None or groups is None:
        return None
    alignment = judge(Judged(replace(found, version=version), groups, [h100()])).alignment
    if alignment is None or not alignment.edits:
        return None
    before = words_of(found.arguments.line)
    values = {edit.flag: edit.after for edit in alignment.edits}
    return Planned(case.title, before, after(found.container, alignment, before), values)


def after(container: ContainerFacts, alignment: Alignment, before: list[str]) -> list[str]:
    """Return what vLLM is started with when the plan is followed, by us or by whoever reads it."""
    if not alignment.changes:
        return [*before, *(f"{edit.flag}={edit.after}" for edit in alignment.edits)]
    around = container.surroundings
    added = f"{around.variables.get(ADDITIONAL_ARGS) or ''} {alignment.variable}".strip()
    if added:
        around = replace(around, variables={**around.variables, ADDITIONAL_ARGS: added})
    return words_of(command_line(alignment.command, alignment.args, around))


def words_of(line: CommandLine) -> list[str]:
    """Return vLLM's words; none where some of them are not known."""
    known = line.readable and not any(word.unresolved for word in line.words)
    return [word.text for word in line.words] if known else []


def meant(text: str) -> float:
    """Return a planned value as vLLM keeps it."""
    return -1 if text == "auto" else float(text)


@pytest.mark.parametrize("release", [*OLDER, *RELEASES], ids=lambda release: release.version)
def test_what_is_planned_is_the_release_s_own(release: Release) -> None:
    """A line that was accepted still is, with the values that were meant, also where the release is not known."""
    found = [one for case in CASES for version in (release.version, None) if (one := planned(case, version))]
    lines = [one for one in found if one.before]
    answers = answers_of(release, [words for one in lines for words in (one.before, one.after)])
    accepted = [
        (one, old, new)
        for one, old, new in zip(lines, answers[::2], answers[1::2], strict=True)
        if "refused" not in old
    ]
    for one, old, new in accepted:
        assert "refused" not in new, (one, new)
        read = {flag: new[flag.removeprefix("--").replace("-", "_")] for flag in one.values}
        assert read == {flag: meant(text) for flag, text in one.values.items()}, one
        assert new["model"] == old["model"], one
    assert {flag for one in found for flag in one.values} == {flag for one, _, _ in accepted for flag in one.values}
    assert len(accepted) > len(CASES) / 2
