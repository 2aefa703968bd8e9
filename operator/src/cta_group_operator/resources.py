"""The kinds of the Kubernetes API that the operator reads and writes, and the paths of their objects."""

from dataclasses import dataclass
from typing import Final

from cta_group_core.names import API_GROUP_VERSION
from cta_group_operator.ports import ObjectRef


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind."""

    group_version: str
    kind: str
    plural: str

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the path of a collection or, with ``name``, of one object. No namespace: all, or cluster scope."""
        root = f"/api/{self.group_version}" if "/" not in self.group_version else f"/apis/{self.group_version}"
        place = f"/namespaces/{namespace}" if namespace else ""
        tail = "".join(f"/{part}" for part in (name, subresource) if part)
        return f"{root}{place}/{self.plural}{tail}"


PODS: Final = Resource("v1", "Pod", "pods")
NODES: Final = Resource("v1", "Node", "nodes")
NAMESPACES: Final = Resource("v1", "Namespace", "namespaces")
RESOURCE_QUOTAS: Final = Resource("v1", "ResourceQuota", "resourcequotas")
EVENTS: Final = Resource("v1", "Event", "events")
DEPLOYMENTS: Final = Resource("apps/v1", "Deployment", "deployments")
REPLICA_SETS: Final = Resource("apps/v1", "ReplicaSet", "replicasets")
STATEFUL_SETS: Final = Resource("apps/v1", "StatefulSet", "statefulsets")
DAEMON_SETS: Final = Resource("apps/v1", "DaemonSet", "daemonsets")
JOBS: Final = Resource("batch/v1", "Job", "jobs")
AUTOSCALERS: Final = Resource("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
SECRETS: Final = Resource("v1", "Secret", "secrets")
MUTATING_WEBHOOKS: Final = Resource(
    "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"
)
VALIDATING_WEBHOOKS: Final = Resource(
    "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"
)
LEASES: Final = Resource("coordination.k8s.io/v1", "Lease", "leases")
CTA_QUOTAS: Final = Resource(API_GROUP_VERSION, "CTAQuota", "ctaquotas")
CTA_NODES: Final = Resource(API_GROUP_VERSION, "CTANode", "ctanodes")
CTA_WORKLOADS: Final = Resource(API_GROUP_VERSION, "CTAWorkload", "ctaworkloads")

CONTROLLERS: Final = (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS)
"""Kinds that make pods and are followed; owners of other kinds are named as they are referred to."""
_FOLLOWED: Final = frozenset((one.group_version, one.kind) for one in CONTROLLERS)


def is_followed(ref: ObjectRef | None) -> bool:
    """Tell whether an object is of a followed kind: its template is read, and one that is not known does not exist."""
    return ref is not None and (ref.api_version, ref.kind) in _FOLLOWED
