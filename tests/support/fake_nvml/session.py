"""The program that a test runs to use the real adapter with the fake library: one call a line, one answer a line.

It has to be a process of its own, because the dynamic loader reads LD_LIBRARY_PATH only when a process starts and
the binding loads the library once for all. Run it with ``--sysfs DIR``.
"""

import argparse
import base64
import pickle
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from cta_group_core.ids import parse_gpu_uuid
from cta_group_plugin.adapters.nvml import NvmlSource
from cta_group_plugin.adapters.nvml_compute_modes import NvmlComputeModes
from cta_group_plugin.errors import DriverError
from cta_group_plugin.ports import ComputeMode


def answer_calls(source: NvmlSource) -> None:
    """Do what each line of standard input says: a method of the source and its argument, ...."""
    modes = NvmlComputeModes()
    calls: dict[str, Callable[..., object]] = {
        "open": source.open,
        "inventory": source.inventory,
        "vitals": lambda uuid: source.vitals(parse_gpu_uuid(uuid)),
        "use": lambda uuid: source.use(parse_gpu_uuid(uuid)),
        "processes": lambda uuid: source.processes(parse_gpu_uuid(uuid)),
        "links": lambda *uuids: source.links([parse_gpu_uuid(uuid) for uuid in uuids]),
        "wait": lambda seconds: source.wait_events(float(seconds)),
        "close": source.close,
        "get_mode": lambda uuid: modes.get(parse_gpu_uuid(uuid)),
        "set_mode": lambda uuid, mode: modes.set(parse_gpu_uuid(uuid), ComputeMode(mode)),
    }
    for line in sys.stdin:
        name, *arguments = shlex.split(line)
        try:
            answer = calls[name](*arguments)
        except DriverError as error:
            answer = error
        sys.stdout.write(base64.b64encode(pickle.dumps(answer)).decode("ascii") + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--sysfs", type=Path, required=True)
    answer_calls(NvmlSource(sysfs_root=options.parse_args().sysfs))
