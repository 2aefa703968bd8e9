"""Wakes controllers whose pods were refused, once they would be let in: their own back-off grows to 17 minutes."""

from collections.abc import Collection

from cta_group_core.names import ANNOTATION_POKED, QUOTA_OBJECT_NAME
from cta_group_operator.errors import Forbidden, NotFound, Rejected
from cta_group_operator.logs import EventLog
from cta_group_operator.metrics import Metrics
from cta_group_operator.one_by_one import OneByOne
from cta_group_operator.ports import ControllerView, KubeApi
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.resources import CONTROLLERS, DEPLOYMENTS

_log = EventLog(__name__)

_PATHS = {one.kind: one for one in CONTROLLERS if one != DEPLOYMENTS}
"""Kinds that create pods themselves. Each tries again within seconds when an annotation of it changes (measured on
Kubernetes 1.37, ``tests/api/test_operator_wake_api.py``)."""


class Waker:
    """Touches an annotation of controllers."""

    def __init__(self, view: ClusterView, api: KubeApi, metrics: Metrics, denials: Denials) -> None:
        self._view = view
        self._api = api
        self._metrics = metrics
        self._denials = denials

    async def wake_in(self, namespaces: Collection[str]) -> None:
        """Wake every controller of these namespaces that was denied and whose next pod fits now.

        Raises ApiError, when all others were woken, for one that could not be.
        """
        turns = OneByOne()
        for controller in self._view.all_controllers():
            if controller.ref.namespace in namespaces and controller.ref.kind in _PATHS:
                with turns.one(controller.ref):
                    await self._wake(controller)
        turns.end()

    async def _wake(self, controller: ControllerView) -> None:
        """Wake one controller. The quota object's version is what is written, so one state of it wakes at most once."""
        limit = self._view.limits.get(QUOTA_OBJECT_NAME, controller.ref.namespace)
        if limit is None or limit.enforced is None or limit.used is None:
            return
        if limit.enforced - limit.used < sum(controller.requests) or controller.poked == limit.resource_version:
            return
        if self._denials.is_denied_groups(controller):
            await self._poke(controller, limit.resource_version)

    async def wake_where_over(self, namespace: str) -> None:
        """Wake every controller of a namespace whose refusal by something else than a limit of ours is over.

        A ResourceQuota that people made has room or is gone, ours is gone, or a single pod may ask for more. Raises
        ApiError as :meth:`wake_in` does.
        """
        turns = OneByOne()
        for controller in self._view.all_controllers():
            if controller.ref.namespace == namespace and controller.ref.kind in _PATHS:
                state = self._denials.over(controller)
                if state and controller.poked != state:
                    with turns.one(controller.ref):
                        await self._poke(controller, state)
        turns.end()

    async def _poke(self, controller: ControllerView, state: str) -> None:
        path = _PATHS[controller.ref.kind].path(controller.ref.namespace, controller.ref.name)
        try:
            await self._api.merge_patch(path, {"metadata": {"annotations": {ANNOTATION_POKED: state}}})
        except NotFound:
            return
        except (Rejected, Forbidden) as no:  # somebody's policy; the controller tries again by itself, later
            _log.warning("poke_refused", controller=controller.ref, cause=no)
            return
        self._metrics.pokes.inc()
        _log.info("poked", controller=controller.ref, state=state)
