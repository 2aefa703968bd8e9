"""The CDI specifications of a node's GPUs: what each of our CDI devices does to a container. Pure.

One specification for each GPU, with one device for each request size that the GPU allows. The runtime applies the edits
of a device after the pod's own environment, so a tenant cannot undo the limits by what its pod says.

Format: the Container Device Interface specification, version 0.3.0, the oldest that has all that is used here.
"""

import json
from collections.abc import Iterable
from typing import Any, Final

from cta_group_core import names
from cta_group_core.errors import GpuRefused
from cta_group_core.ids import GpuUuid
from cta_group_plugin.answers import NO_DEVICES, CdiRules, Rules, slice_device, slice_given
from cta_group_plugin.inventory import ServedGpu

_CDI_VERSION: Final = "0.3.0"
_MOUNT_OPTIONS: Final = ("ro", "nosuid", "nodev", "rbind", "rprivate")
_SHARED_DEVICE_FILES: Final = ("/dev/nvidiactl", "/dev/nvidia-uvm")
"""What CUDA opens beside the GPU's own device file."""


def file_name(gpu: GpuUuid) -> str:
    """Return the name of the file with a GPU's specification."""
    return f"{names.CDI_KIND.replace('/', '-')}_{gpu}.json"


def specification(gpu: ServedGpu, rules: Rules, cdi: CdiRules) -> str:
    """Return the text of a GPU's specification; raises GpuRefused when the GPU's device file is needed and unknown."""
    devices = [_device(gpu, groups, rules, cdi) for groups in _sizes(gpu)]
    return json.dumps({"cdiVersion": _CDI_VERSION, "kind": names.CDI_KIND, "devices": devices}, indent=1) + "\n"


def _sizes(gpu: ServedGpu) -> Iterable[int]:
    return (groups for groups in range(1, gpu.units.capacity + 1) if gpu.units.allows(groups))


def _device(gpu: ServedGpu, groups: int, rules: Rules, cdi: CdiRules) -> dict[str, Any]:
    given = slice_given(gpu, groups, rules)
    # A container may have several whole GPUs, and their numbers are sums: those come with the answer itself.
    numbers = {} if gpu.units.is_whole(groups) else given.environment
    environment = {**numbers, names.ENV_VISIBLE_DEVICES: NO_DEVICES}
    edits: dict[str, Any] = {"env": [f"{name}={value}" for name, value in environment.items()]}
    if given.read_only_mounts:
        edits["mounts"] = [
            {"hostPath": str(path), "containerPath": str(path), "options": list(_MOUNT_OPTIONS)}
            for path in given.read_only_mounts
        ]
    if not cdi.gpu_kind and not cdi.is_simulated:
        edits["deviceNodes"] = [{"path": path} for path in _device_files(gpu)]
    return {"name": slice_device(gpu.facts.uuid, groups), "containerEdits": edits}


def _device_files(gpu: ServedGpu) -> tuple[str, ...]:
    if gpu.facts.minor is None:
        raise GpuRefused(f"{gpu.facts.uuid}: the driver does not tell the number of this GPU's device file")
    return (f"/dev/nvidia{gpu.facts.minor}", *_SHARED_DEVICE_FILES)
