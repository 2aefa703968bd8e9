"""Pods that their controllers could not create: what the API server said, and how many groups that is."""

from collections import defaultdict

from cta_group_core.denials import Denial, bounding_quota, parse_denial
from cta_group_core.explain import CreateFailure
from cta_group_core.names import QUOTA_OBJECT_NAME
from cta_group_operator.ports import ControllerView
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.resources import DEPLOYMENTS, REPLICA_SETS

MOST_DENIED_PODS = 256
"""Denied pods of one controller that are counted; its next pods are asked for when these exist."""


class Denials:
    """Reads failures out of conditions and events."""

    def __init__(self, view: ClusterView, resource_name: str) -> None:
        self._view = view
        self._resource_name = resource_name

    def failure_of(self, controller: ControllerView) -> CreateFailure | None:
        """Return why a controller cannot create a pod now.

        A ReplicaSet says so in a condition, whose words stay those of the first refusal: an event has newer ones. Other
        controllers have events only; those count while pods are missing and none was created since.
        """
        if self.missing(controller) == 0:
            return None
        event = self._view.newest_failure(controller.ref.uid)
        text = event.text if event else ""
        if controller.ref.kind == REPLICA_SETS.kind:
            text = (text or controller.failure) if controller.failure else ""
        elif event and any(pod.created > event.last for pod in self._view.pods_of(controller.ref.uid)):
            return None
        return CreateFailure(text, parse_denial(text, self._resource_name)) if text else None

    def over(self, controller: ControllerView) -> str:
        """Return which state of things ended what refused a controller's pod; empty while that would do so again.

        Not of a CTAQuota's limit that is there: whether its room is to stay is known to who plans the quota.
        """
        failure = self.failure_of(controller)
        if failure is None:
            return ""
        if failure.denial is None:
            return self._bound_over(controller, failure.text)
        return self._denial_over(controller, failure.denial)

    def _denial_over(self, controller: ControllerView, denial: Denial) -> str:
        if not denial.about_groups:
            return ""
        limit = self._view.limits.get(denial.quota_object, controller.ref.namespace)
        if limit is None:
            return f"without {denial.quota_object} since {self._refused_last(controller)}"
        if limit.quota is not None or limit.enforced is None or limit.used is None:
            return ""
        return limit.resource_version if limit.enforced - limit.used >= sum(controller.requests) else ""

    def _bound_over(self, controller: ControllerView, text: str) -> str:
        """Return the state of the CTAQuota whose bound of a single pod is high enough now, or gone.

        The API server may hear of that later than we do, and refuse the pod once more: that is another state.
        """
        name = bounding_quota(text)
        quota = self._view.quotas.get(name) if name is not None else None
        if name is None or (quota is not None and not quota.spec.allows_pod(sum(controller.requests))):
            return ""
        generation = quota.generation if quota is not None else "gone"
        return f"{name} {generation} since {self._refused_last(controller)}"

    def _refused_last(self, controller: ControllerView) -> str:
        event = self._view.newest_failure(controller.ref.uid)
        return event.last if event else "then"

    def missing(self, controller: ControllerView) -> int:
        """Return how many pods a controller wants that do not exist."""
        if controller.ref.kind == DEPLOYMENTS.kind:
            return 0  # its ReplicaSets create the pods
        living = sum(not (pod.is_over or pod.deleting) for pod in self._view.pods_of(controller.ref.uid))
        return max(0, (controller.wanted or 0) - living)

    def by_namespace(self) -> dict[str, tuple[int, ...]]:
        """Return the size in groups of each pod that a quota of ours keeps from being created."""
        sizes: defaultdict[str, list[int]] = defaultdict(list)
        for controller in self._view.all_controllers():
            if self.is_denied_groups(controller):
                count = min(self.missing(controller), MOST_DENIED_PODS)
                sizes[controller.ref.namespace] += [sum(controller.requests)] * count
        return {namespace: tuple(sorted(found)) for namespace, found in sizes.items()}

    def is_denied_groups(self, controller: ControllerView) -> bool:
        """Tell whether a ResourceQuota of a CTAQuota refuses the controller's pods."""
        failure = self.failure_of(controller)
        denial = failure.denial if failure else None
        return denial is not None and denial.about_groups and denial.quota_object == QUOTA_OBJECT_NAME
