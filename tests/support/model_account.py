"""What the kubelet model tells of its pods: by its List, and by its own record."""

from collections.abc import Mapping

from cta_group_core.ids import GroupId
from cta_group_plugin.errors import KubeletUnavailable
from cta_group_plugin.ports import Account, Holding, PodDevices
from cta_group_plugin.testing.kubelet_model import KubeletModel, listed_containers


class ModelAccount:
    """kubelet's account of its pods: what it lists, when it answers."""

    def __init__(self, kubelet: KubeletModel) -> None:
        self.is_away = False
        self._kubelet = kubelet

    async def account(self) -> Account:
        """List the pods."""
        if self.is_away:
            raise KubeletUnavailable("pods.sock: List failed: UNAVAILABLE: told to be away")
        listed = listed_containers(iter(self._kubelet.pods.values()))
        holdings = tuple(
            Holding(pod.name, container.asked.name, frozenset(map(GroupId.parse, container.ids)))
            for pod, container in listed
        )
        return Account(holdings, frozenset(self._kubelet.pods))

    def record(self) -> tuple[PodDevices, ...]:
        """Return kubelet's own record, which has every container, and pods that ended since it was written."""
        return tuple(PodDevices(f"uid-of-{pod}", container, ids) for pod, container, ids in self._kubelet.checkpoint)

    async def other_devices(self) -> Mapping[str, frozenset[str]]:
        """Return none."""
        return {}

    async def close(self) -> None:
        """Nothing to release."""
