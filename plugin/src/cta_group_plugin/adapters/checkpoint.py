"""kubelet's own record of which pod holds which device: the one place on a node that names pods by their UID.

pod-resources tells namespace and name only. The file is unversioned and internal to kubelet, so nothing is decided by
it: it adds the UID to events, and tells whose a process is. One that cannot be read, or is of another form, tells
nothing.
"""

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

from cta_group_core.ids import GroupId

CHECKPOINT: Final = "kubelet_internal_checkpoint"


class KubeletCheckpoint:
    """Reads the file in kubelet's folder of device plugins. Every method blocks for a file of some 100 kB."""

    def __init__(self, folder: Path, resource_name: str) -> None:
        self._file = folder / CHECKPOINT
        self._resource_name = resource_name

    def uid_of(self, ids: Collection[GroupId]) -> str | None:
        """Return the UID of the pod that holds any of these groups."""
        wanted = {str(group_id) for group_id in ids}
        return next((uid for uid, held in self._entries() if not wanted.isdisjoint(held)), None)

    def pods_of_gpus(self) -> dict[str, frozenset[str]]:
        """Return the UIDs of the pods that hold groups of each GPU, by the GPU's UUID as it is in the ids."""
        pods: dict[str, set[str]] = {}
        for uid, held in self._entries():
            for gpu in {text.partition("::")[0] for text in held}:
                pods.setdefault(gpu, set()).add(uid)
        return {gpu: frozenset(uids) for gpu, uids in pods.items()}

    def _entries(self) -> Iterator[tuple[str, set[str]]]:
        try:
            document = json.loads(self._file.read_bytes())
            entries = document["Data"]["PodDeviceEntries"] or ()
        except (OSError, ValueError, KeyError, TypeError):
            return
        for entry in entries:
            if isinstance(entry, dict) and entry.get("ResourceName") == self._resource_name:
                yield str(entry.get("PodUID")), set(_texts(entry.get("DeviceIDs")))


def _texts(ids: Any) -> Iterator[str]:
    """Yield the ids of an entry: a list by NUMA node since Kubernetes 1.20, one list before."""
    groups = ids.values() if isinstance(ids, dict) else [ids]
    for group in groups:
        yield from (text for text in group or () if isinstance(text, str))
