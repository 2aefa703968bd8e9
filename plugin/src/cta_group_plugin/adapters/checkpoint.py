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
from cta_group_plugin.ports import PodDevices

CHECKPOINT: Final = "kubelet_internal_checkpoint"


class KubeletCheckpoint:
    """Reads the file in kubelet's folder of device plugins. Every method blocks for a file of some 100 kB."""

    def __init__(self, folder: Path, resource_name: str) -> None:
        self._file = folder / CHECKPOINT
        self._resource_name = resource_name
        self._read: tuple[tuple[int, int, int], tuple[PodDevices, ...]] | None = None
        """What was read last, with what tells whether the file is still the same. Replaced, never changed."""

    def uid_of(self, ids: Collection[GroupId]) -> str | None:
        """Return the UID of the pod that holds any of these groups."""
        wanted = {str(group_id) for group_id in ids}
        return next((held.pod_uid for held in self.pod_devices() or () if not wanted.isdisjoint(held.ids)), None)

    def pod_devices(self) -> tuple[PodDevices, ...] | None:
        """Return what every container holds; ``None`` for a file that is not there or that nobody understands."""
        try:
            found = self._file.stat()
            mark = (found.st_ino, found.st_mtime_ns, found.st_size)
            if self._read is None or self._read[0] != mark:
                self._read = (mark, tuple(self._entries()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return self._read[1]

    def _entries(self) -> Iterator[PodDevices]:
        document = json.loads(self._file.read_bytes())
        for entry in document["Data"]["PodDeviceEntries"] or ():
            if isinstance(entry, dict) and entry.get("ResourceName") == self._resource_name:
                ids = frozenset(_texts(entry.get("DeviceIDs")))
                yield PodDevices(str(entry.get("PodUID")), str(entry.get("ContainerName")), ids)


def _texts(ids: Any) -> Iterator[str]:
    """Yield the ids of an entry: a list by NUMA node since Kubernetes 1.20, one list before."""
    groups = ids.values() if isinstance(ids, dict) else [ids]
    for group in groups:
        yield from (text for text in group or () if isinstance(text, str))
