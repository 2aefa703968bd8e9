"""Kinds of serving stacks in ``kubectl cta align``: what their controllers add, and pods that nobody can see."""

import pytest
import yaml

from cta_group_cli.align_rules import WorkloadAnswer, answers
from cta_group_cli.cli import main
from cta_group_cli.manifests import read_manifests
from vllm_fixtures import h100

ASKING = {"limits": {"nvidia.com/cta-group": 32}}


def answered(kind: str, spec: object) -> list[WorkloadAnswer]:
    """Return the answers for one object."""
    text = yaml.safe_dump({"kind": kind, "metadata": {"name": "x"}, "spec": spec})
    return answers(read_manifests(text, "test"), h100())


def test_kserve_starts_its_own_script_in_a_container_without_a_command() -> None:
    """Its arguments come out of the variable and of args; each role has a pod."""
    role = {"containers": [{"name": "main", "resources": ASKING}, {"name": "proxy", "image": "envoy"}]}
    found = answered("LLMInferenceService", {"template": role, "prefill": {"template": role}})
    assert [(one.container, one.read) for one in found] == [("main", {"--model": "/mnt/models", "--port": 8000})] * 2
    assert all(one.edits[0]["flag"] == "--gpu-memory-utilization" for one in found)
    assert all(one.warnings == [] for one in found)


def test_a_command_of_one_s_own_wins_over_kserve_s() -> None:
    """It is what runs."""
    own = {"name": "main", "command": ["vllm", "serve", "m"], "resources": ASKING}
    (found,) = answered("LLMInferenceService", {"template": {"containers": [own]}})
    assert (found.argv_form, found.read) == ("list", {"--model": "m"})


def test_a_step_of_a_workflow_is_a_pod() -> None:
    """Argo's templates have one container, under that name."""
    step = {"name": "serve", "container": {"image": "vllm/vllm-openai:v0.25.0", "args": ["m"], "resources": ASKING}}
    (found,) = answered("Workflow", {"templates": [step, {"name": "dag", "dag": {}}]})
    assert (found.container, found.groups) == ("main", 32)


@pytest.mark.parametrize(
    "spec",
    [
        {"predictor": {"model": {"modelFormat": {"name": "vLLM"}, "resources": ASKING}}},
        {"deploymentConfig": {"resources": {"gpuType": "nvidia.com/cta-group", "gpu": "32"}}},
        {"services": {"Worker": {"resources": {"limits": {"custom": {"nvidia.com/cta-group": "32"}}}}}},
    ],
)
def test_groups_that_a_controller_asks_for_in_pods_of_its_own_making_are_told(
    capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory, spec: object
) -> None:
    """Silence would look as if there were nothing to fit."""
    (found,) = answered("Some", spec)
    assert "its controller makes the pods" in found.warnings[0]
    file = tmp_path_factory.mktemp("align") / "x.yaml"
    file.write_text(yaml.safe_dump({"kind": "Some", "metadata": {"name": "x"}, "spec": spec}))
    assert main(["align", "-f", str(file), "--gpu", "h100-sxm"]) == 0
    assert "some/x in default: no pod is described\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("ResourceQuota", {"hard": {"requests.nvidia.com/cta-group": 64}}),
        ("LimitRange", {"limits": [{"type": "Container", "max": {"nvidia.com/cta-group": 64}}]}),
        ("ClusterQueue", {"resourceGroups": [{"coveredResources": ["nvidia.com/cta-group"]}]}),
        ("Service", {"ports": [{"port": 80}]}),
    ],
)
def test_who_only_speaks_of_the_resource_is_not_told_of(kind: str, spec: object) -> None:
    """Quotas, bounds and queues ask for nothing."""
    assert answered(kind, spec) == []
