"""Groups that a ResourceQuota charges to no pod that is known: kube-controller-manager has not counted for a while.

Its count follows a pod's end within a second when it works. What lasts longer is told, and never taken for free.
"""

from collections.abc import Iterable
from typing import Final

from cta_group_operator.ports import Clock
from cta_group_operator.reconcile.quota_scope import Scope
from cta_group_operator.reconcile.view import ClusterView

STALE_SECONDS: Final = 15.0


class Charges:
    """Remembers since when a namespace is charged for more than its pods ask for."""

    def __init__(self, view: ClusterView, clock: Clock) -> None:
        self._view = view
        self._clock = clock
        self._since: dict[str, dict[str, float]] = {}
        """By CTAQuota and namespace; what is explained, and what does not belong to the quota any more, has none."""

    def stale(self, quota: str, scope: Scope) -> dict[str, int]:
        """Return the groups that are charged to nobody for longer than ``STALE_SECONDS``, by namespace."""
        now, found, before = self._clock.monotonic(), self._unexplained(scope), self._since.pop(quota, {})
        if not found:
            return {}
        since = self._since[quota] = {space: before.get(space, now) for space in found}
        return {space: groups for space, groups in found.items() if now - since[space] >= STALE_SECONDS}

    def seconds_left(self, quotas: Iterable[str]) -> float | None:
        """Return when somebody should look again; None while everything is explained or told."""
        now = self._clock.monotonic()
        ages = [now - since for quota in quotas for since in self._since.get(quota, {}).values()]
        return min((STALE_SECONDS - age for age in ages if age < STALE_SECONDS), default=None)

    def drop(self, quota: str) -> None:
        """Forget a CTAQuota that is gone."""
        self._since.pop(quota, None)

    def forget(self) -> None:
        """Begin to count the time anew."""
        self._since.clear()

    def _unexplained(self, scope: Scope) -> dict[str, int]:
        """Return what is charged above what the pods of each namespace ask for."""
        more: dict[str, int] = {}
        for space, limit in scope.limits.items():
            asked = sum(pod.groups for pod in self._view.pods_in(space))
            if limit.used is not None and limit.used > asked:
                more[space] = limit.used - asked
        return more
