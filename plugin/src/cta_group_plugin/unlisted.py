"""Who holds groups without being listed: init containers of before this process started.

kubelet's List leaves ordinary init containers out, and this process remembers only those that it gave groups to itself.
kubelet's record has all containers; but a pod that ended stays in it until kubelet writes it anew.
"""

from collections.abc import Collection, Iterable

from cta_group_core.ids import GroupId
from cta_group_plugin.ledger import Holder, HolderKind
from cta_group_plugin.ports import Account, PodDevices

RecordEntry = tuple[PodDevices, frozenset[GroupId]]
"""A container in kubelet's record, and the groups that its ids mean."""
_Key = tuple[str, str]


class UnlistedHolders:
    """Finds them, from one account to the next."""

    def __init__(self) -> None:
        self._doubtful: frozenset[_Key] = frozenset()

    def after(self, record: Collection[RecordEntry], account: Account, *, sees_all_grants: bool) -> tuple[Holder, ...]:
        """Return the holders that ``record`` has and ``account``, which was read just before, has not.

        A container counts when another one of its pod is listed. One whose pod is not known counts as well, if it is
        from before ``sees_all_grants`` was true: later ones this process has seen itself. Too much is no harm here,
        since it only keeps limits as high as they are; too little would lower them under somebody who runs.
        """
        listed = [holding.ids for holding in account.holdings]
        living = {one.pod_uid for one, ids in record if ids in listed}
        others = [(one, ids) for one, ids in record if ids and ids not in listed]
        unknown = {_key(one) for one, ids in others if one.pod_uid not in living and _is_new_to(ids, listed)}
        self._doubtful = frozenset(unknown & self._doubtful if sees_all_grants else unknown)
        return tuple(
            Holder(
                HolderKind.REST if one.pod_uid in living else HolderKind.DOUBTFUL,
                ids,
                frozenset(group.gpu for group in ids),
            )
            for one, ids in others
            if one.pod_uid in living or _key(one) in self._doubtful
        )


def _key(one: PodDevices) -> _Key:
    return (one.pod_uid, one.container)


def _is_new_to(ids: frozenset[GroupId], listed: Iterable[frozenset[GroupId]]) -> bool:
    """Tell whether nobody has any of these groups now: the pod of one that somebody has was not written off yet."""
    return all(ids.isdisjoint(others) for others in listed)
