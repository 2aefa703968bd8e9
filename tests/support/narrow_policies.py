"""The chart's policies beside those of other tests: under names of their own, and for namespaces with a label only."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from chart_rendering import Manifest, render
from cluster_harness.api_client import Json
from cluster_harness.control_plane import ControlPlane
from cluster_harness.waiting import wait_for
from kubectl import Kubectl
from refused_pods import refusal

_KINDS = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")


def _narrowed(manifest: Manifest, name: str, label: str) -> Manifest:
    manifest["metadata"] = {"name": f"{label}-{name}"}
    if manifest["kind"] == _KINDS[1]:
        manifest["spec"]["policyName"] = f"{label}-{name}"
        selector = manifest["spec"]["matchResources"]["namespaceSelector"]
        selector["matchExpressions"].append({"key": label, "operator": "Exists"})
    return manifest


@contextmanager
def narrow_policies(
    control_plane: ControlPlane, label: str, namespace: str, probes: Mapping[str, Json]
) -> Iterator[None]:
    """Apply the policies of ``probes`` until the block ends, each with a pod that it alone refuses in ``namespace``."""
    admin = Kubectl.admin(control_plane)
    found = [
        _narrowed(one, policy, label)
        for one in render("default")
        for policy in probes
        if one["kind"] in _KINDS and one["metadata"]["name"] == f"cta-group-{policy}"
    ]
    admin.apply(*found)
    try:
        for policy, pod in probes.items():
            wait_for(partial(refusal, control_plane.api, namespace, pod), f"the policy {policy}")
        yield
    finally:
        admin.run("delete", "-f", "-", objects=found)
