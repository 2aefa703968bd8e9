"""The fixtures' pods as a cluster sees them: bare, and below a Deployment and a StatefulSet of the same template."""

import copy
import json
from typing import Any

from cta_group_cli.align_rules import WorkloadAnswer, answers
from cta_group_cli.manifests import Manifests
from cta_group_core.names import ANNOTATION_ALIGNMENT, ANNOTATION_ALIGNMENT_ADVICE
from vllm_fixtures import Case, h100

Json = dict[str, Any]
STYLE = "style"
"""Label that tells which fixture a pod is, and below which owner."""
_WORDS = ("name", "image", "command", "args", "env")


def bare_pod(case: Case, style: str) -> Json:
    """Return the pod of the fixture as its controller would make it, without what a cluster must have for it."""
    template = case.template
    spec = copy.deepcopy(dict(template.spec))
    for field in ("serviceAccountName", "serviceAccount", "minReplicas", "containerConcurrency"):
        spec.pop(field, None)
    mounted = {volume["name"] for volume in spec.get("volumes", ())}
    for container in spec["containers"]:
        if not container.get("name"):
            container["name"] = "user-container"  # Knative's
        container.setdefault("image", "localhost/none:1")  # an InferenceService names none: its runtime does
        container["volumeMounts"] = [one for one in container.get("volumeMounts", ()) if one["name"] in mounted]
    metadata = {"labels": {**template.labels, STYLE: style}}
    if template.annotations:
        metadata["annotations"] = dict(template.annotations)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": style, **metadata}, "spec": spec}


def owner(kind: str, case: Case, style: str, namespace: str) -> Json:
    """Return a Deployment or StatefulSet whose template is the fixture's pod."""
    pod = bare_pod(case, style)
    template = {"metadata": {**pod["metadata"]}, "spec": pod["spec"]}
    template["metadata"].pop("name")
    template["spec"].pop("restartPolicy", None)
    spec: Json = {"selector": {"matchLabels": {STYLE: style}}, "template": template}
    if kind == "StatefulSet":
        spec["serviceName"] = style
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": style, "namespace": namespace}, "spec": spec}


def answer_at_admission(case: Case) -> WorkloadAnswer:
    """Return what ``kubectl cta align`` says where it sees the pod alone, as admission does."""
    alone = [one for one in case.manifests.objects if one["kind"] != "ConfigMap"]
    (answer,) = answers(Manifests(alone), h100())
    return answer


def answer_again(pod: Json) -> WorkloadAnswer:
    """Return what it says to a pod that came in."""
    (answer,) = answers(Manifests([{"kind": "Pod", **pod}]), h100())
    return answer


def edits_of(pod: Json) -> list[Json]:
    """Return the changes that admission says it made."""
    return list(json.loads(pod["metadata"].get("annotations", {}).get(ANNOTATION_ALIGNMENT, "[]")))


def advice_of(pod: Json) -> str:
    """Return what admission says should be changed by hand."""
    return str(pod["metadata"].get("annotations", {}).get(ANNOTATION_ALIGNMENT_ADVICE, ""))


def words_of(pod: Json) -> list[Json]:
    """Return what its containers run, without what the API server adds to it."""
    found = [{key: one[key] for key in _WORDS if key in one} for one in pod["spec"]["containers"]]
    for container in found:
        container["env"] = [(one["name"], one.get("value")) for one in container.get("env", ())]
    return found
