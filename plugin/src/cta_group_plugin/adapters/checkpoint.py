"""kubelet's own record of which pod holds which device: the one place on a node that names pods by their UID.

pod-resources tells namespace and name only, and no ordinary init container. The file is unversioned and internal to
kubelet, so nothing that kubelet tells otherwise is decided by it: it adds the UID to events, tells whose a process is,
what init containers hold, and by which texts kubelet knows its ids. One that cannot be read, or is of another form,
tells nothing.
"""

import json
from base64 import b64decode
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from google.protobuf.message import DecodeError

from cta_group_core import names
from cta_group_core.errors import InvalidText
from cta_group_core.ids import UUID_TEXTS, GpuUuid, GroupId, parse_gpu_uuid
from cta_group_plugin.kubelet_api import deviceplugin_v1beta1_pb2 as api
from cta_group_plugin.plain_files import read_plain
from cta_group_plugin.ports import PodDevices

CHECKPOINT: Final = "kubelet_internal_checkpoint"
_OUR_DEVICES: Final = f"{names.CDI_KIND}="
_NOT_UNDERSTOOD: Final = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What a file of any other form leads to."""


class KubeletCheckpoint:
    """Reads the file in kubelet's folder of device plugins. Every method blocks for a file of some 100 kB."""

    def __init__(
        self, folder: Path, resource_name: str, meaning_of: Callable[[str], GroupId] = UUID_TEXTS.parse
    ) -> None:
        """``meaning_of`` returns the group of an id, or raises InvalidText."""
        self._file = folder / CHECKPOINT
        self._resource_name = resource_name
        self._meaning_of = meaning_of
        self._read: tuple[tuple[int, int, int], tuple[PodDevices, ...]] | None = None
        """What was read last, with what tells whether the file is still the same. Replaced, never changed."""

    def uid_of(self, ids: Collection[GroupId]) -> str | None:
        """Return the UID of the pod that holds any of these groups."""
        wanted = frozenset(ids)
        holders = (held for held in self.pod_devices() or () if not wanted.isdisjoint(self._groups(held.ids)))
        return next((held.pod_uid for held in holders), None)

    def pod_devices(self) -> tuple[PodDevices, ...] | None:
        """Return what every container holds; ``None`` for a file that is not there or that nobody understands."""
        try:
            found = self._file.stat()
            mark = (found.st_ino, found.st_mtime_ns, found.st_size)
            if self._read is None or self._read[0] != mark:
                self._read = (mark, tuple(self._entries()))
        except _NOT_UNDERSTOOD:
            return None
        return self._read[1]

    def registered(self) -> frozenset[str]:
        """Return every id of our resource that kubelet was told of, held or not; none when that cannot be read."""
        try:
            document = json.loads(read_plain(self._file))
            return frozenset(map(str, document["Data"]["RegisteredDevices"].get(self._resource_name) or ()))
        except _NOT_UNDERSTOOD:
            return frozenset()

    def _entries(self) -> Iterator[PodDevices]:
        document = json.loads(read_plain(self._file))
        for entry in document["Data"]["PodDeviceEntries"] or ():
            if isinstance(entry, dict) and entry.get("ResourceName") == self._resource_name:
                ids, gpus = frozenset(_texts(entry.get("DeviceIDs"))), _gpus_in(entry.get("AllocResp"))
                yield PodDevices(str(entry.get("PodUID")), str(entry.get("ContainerName")), ids, gpus)

    def _groups(self, texts: Iterable[str]) -> Iterator[GroupId]:
        for text in texts:
            with suppress(InvalidText):  # another plugin gave it out under our name before
                yield self._meaning_of(text)


def _texts(ids: Any) -> Iterator[str]:
    """Yield the ids of an entry: a list by NUMA node since Kubernetes 1.20, one list before."""
    groups = ids.values() if isinstance(ids, dict) else [ids]
    for group in groups:
        yield from (text for text in group or () if isinstance(text, str))


def _gpus_in(answer: Any) -> tuple[GpuUuid, ...]:
    """Return the GPUs that an answer of ours to Allocate names, by its environment or by its CDI devices."""
    try:
        read = api.ContainerAllocateResponse.FromString(b64decode(answer, validate=True))
        if named := read.envs.get(names.ENV_GPU_UUID):
            return tuple(map(parse_gpu_uuid, named.split(",")))
        devices = (device.name for device in read.cdi_devices if device.name.startswith(_OUR_DEVICES))
        return tuple(parse_gpu_uuid(name.removeprefix(_OUR_DEVICES).rpartition("-")[0]) for name in devices)
    except (TypeError, ValueError, DecodeError, InvalidText):
        return ()
