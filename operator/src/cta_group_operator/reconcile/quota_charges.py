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
        self._since: dict[str, float] = {}

    def stale(self, scope: Scope) -> dict[str, int]:
        """Return the groups that are charged to nobody for longer than ``STALE_SECONDS``, by namespace."""
        now, found = self._clock.monotonic(), self._unexplained(scope)
        for space in scope.limits.keys() - found.keys():
            self._since.pop(space, None)
        for space in found:
            self._since.setdefault(space, now)
        return {space: groups for space, groups in found.items() if now - self._since[space] >= STALE_SECONDS}

    def seconds_left(self, scopes: Iterable[Scope]) -> float | None:
        """Return when somebody should look again; None while everything is explained or told."""
        now = self._clock.monotonic()
        ages = [now - self._since[space] for scope in scopes for space in scope.limits if space in self._since]
        return min((STALE_SECONDS - age for age in ages if age < STALE_SECONDS), default=None)

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
