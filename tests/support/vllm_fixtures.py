"""Manifests in the styles in which people and serving stacks write vLLM, and what ``kubectl cta align`` says."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from cta_group_cli.align_rules import WorkloadAnswer, answers
from cta_group_cli.manifests import Manifests, PodTemplate, read_manifests
from cta_group_core.profiles import profile_named
from cta_group_core.vllm.gpu import GpuKind

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "vllm"


@dataclass(frozen=True)
class Case:
    """One manifest with one workload, on an H100."""

    title: str
    manifest: str
    expect: dict[str, Any]

    @cached_property
    def manifests(self) -> Manifests:
        """Its objects."""
        return read_manifests(self.manifest, self.title)

    @property
    def template(self) -> PodTemplate:
        """The pod that it describes."""
        (template,) = self.manifests.templates()
        return template

    @property
    def answer(self) -> WorkloadAnswer:
        """The answer for the manifest's only workload."""
        (answer,) = answers(self.manifests, h100())
        return answer


def h100() -> GpuKind:
    """Return the GPU that the expectations are for."""
    profile = profile_named("h100-sxm")
    return GpuKind(profile.product, profile.memory_total_mib, 1024, profile.units, limits_memory=True)


def cases() -> list[Case]:
    """Return all of them."""
    return [Case(**one) for path in sorted(FOLDER.glob("*.yaml")) for one in yaml.safe_load(path.read_text())]
