"""What a reconciler of the tests wrote about a workload, as the watch would tell it."""

from cta_group_core.workload import WorkloadStatus, object_name
from cta_group_operator.ports import ObjectRef, WorkloadView
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.resources import CTA_WORKLOADS
from operator_world import FakeKube


def hear_explanation(view: ClusterView, kube: FakeKube, top: ObjectRef) -> WorkloadStatus:
    """Put the CTAWorkload of a top owner into the view as it was written, and return its status."""
    name = object_name(top.kind, top.name, top.api_version)
    path = CTA_WORKLOADS.path(top.namespace, name)
    written = kube.objects[f"{path}/status"]
    status = WorkloadStatus.model_validate(written["status"])
    ref = ObjectRef(CTA_WORKLOADS.group_version, CTA_WORKLOADS.kind, top.namespace, name, f"of-{top.uid}")
    view.workloads.put(WorkloadView(ref, written["metadata"]["resourceVersion"], top.uid, status))
    return status
