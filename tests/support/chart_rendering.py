"""The chart as Helm renders it, for the tests that look at the objects or give them to a real API server."""

import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "cta-group"
SCENARIOS = tuple(sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").glob("*-values.yaml")))
"""Names of the values files in the chart's ``ci/``."""
HELM_VERSIONS = {"helm": "Helm 4", "helm3": "Helm 3"}
KUBERNETES = "v1.37.2"
"""Without it each Helm renders for a version of its own."""
IN_A_POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
"""What the kubelet puts into the environment of every container."""
RELEASE = "cta-group"
NAMESPACE = "cta-group"

Manifest = dict[str, Any]


def helm(*arguments: str | Path, program: str = "helm") -> subprocess.CompletedProcess[str]:
    """Run one of the two Helm versions and return what it answered, also when it failed."""
    command = [str(ROOT / ".venv" / "bin" / program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def scenario_file(scenario: str) -> Path:
    """Return the values file of a scenario."""
    return CHART / "ci" / f"{scenario}-values.yaml"


@cache
def render_text(
    scenario: str, *settings: str, program: str = "helm", namespace: str = NAMESPACE, hooks: bool = False
) -> str:
    """Return the manifests of a scenario as text; ``settings`` are ``key=value`` as for ``helm --set``.

    Without ``hooks`` it is what the release consists of while it is installed.
    """
    sets = [argument for setting in settings for argument in ("--set", setting)]
    files = ("--values", scenario_file(scenario), *(() if hooks else ("--no-hooks",)))
    where = ("--namespace", namespace, "--kube-version", KUBERNETES)
    done = helm("template", RELEASE, CHART, *where, *files, *sets, program=program)
    assert done.returncode == 0, done.stderr
    return done.stdout


def render(scenario: str, *settings: str, program: str = "helm", namespace: str = NAMESPACE) -> list[Manifest]:
    """Return the objects of a scenario, in Helm's order; a fresh copy each time."""
    text = render_text(scenario, *settings, program=program, namespace=namespace)
    return [document for document in yaml.load_all(text, Loader=yaml.CSafeLoader) if document]


def render_hooks(scenario: str, *settings: str, event: str | None = None, program: str = "helm") -> list[Manifest]:
    """Return the objects that Helm makes beside the release and deletes itself; those of one ``event``, or all."""
    text = render_text(scenario, *settings, program=program, hooks=True)
    documents = [document for document in yaml.load_all(text, Loader=yaml.CSafeLoader) if document]
    hooks = [(one["metadata"].get("annotations", {}).get("helm.sh/hook"), one) for one in documents]
    return [one for hook, one in hooks if hook is not None and event in {None, hook}]


def refusal(*settings: str, values: Sequence[Path] = (), program: str = "helm", namespace: str = NAMESPACE) -> str:
    """Return what Helm says about values that it must refuse."""
    sets = [argument for setting in settings for argument in ("--set", setting)]
    files = [argument for path in values for argument in ("--values", path)]
    done = helm("template", RELEASE, CHART, "--namespace", namespace, *files, *sets, program=program)
    assert done.returncode != 0, f"{settings} was accepted"
    return done.stderr


def of_kind(manifests: Iterable[Manifest], kind: str) -> dict[str, Manifest]:
    """Return the objects of a kind by name."""
    return {manifest["metadata"]["name"]: manifest for manifest in manifests if manifest["kind"] == kind}


def pod_templates(manifests: Iterable[Manifest]) -> dict[str, Manifest]:
    """Return the pod templates by the name of their workload."""
    return {m["metadata"]["name"]: m["spec"]["template"] for m in manifests if "template" in m.get("spec", {})}


def pod_of(scenario: str, component: str, *settings: str) -> Manifest:
    """Return the pod template of the component's workload."""
    (pod,) = [pod for pod in pod_templates(render(scenario, *settings)).values() if _component(pod) == component]
    return pod


def arguments_of(scenario: str, component: str, *settings: str) -> list[str]:
    """Return the arguments with which the chart starts a component's program."""
    arguments: list[str] = pod_of(scenario, component, *settings)["spec"]["containers"][0]["args"]
    return arguments


def _component(manifest: Manifest) -> str:
    return str(manifest["metadata"]["labels"]["app.kubernetes.io/component"])
