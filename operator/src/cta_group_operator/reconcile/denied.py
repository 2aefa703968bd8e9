"""Pods that their controllers could not create: what the API server said, and how many groups that is."""

from collections import defaultdict

from cta_group_core.denials import parse_denial
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
