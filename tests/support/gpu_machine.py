"""Whether this machine has a GPU that the tests can have for themselves.

Run as a program it prints the sentence that says why not and returns 2, or names the GPU and returns 0.
"""

import os
import shutil
import sys

from cta_group_plugin.adapters.nvml import NvmlSource
from cta_group_plugin.errors import DriverError
from cta_group_plugin.inventory import Offer, ServedGpu, offer_of
from cta_group_plugin.ports import Inventory
from gpu_processes import CONTROL_DAEMON

RESERVE_MIB = 1024
"""The plugin's own default."""


class NoGpuForTests(Exception):
    """Says in one sentence what is missing, or in the way."""


def gpu_for_tests(source: NvmlSource, inventory: Inventory) -> ServedGpu:
    """Return the GPU that the tests use: the one that a first pod gets. Raises NoGpuForTests."""
    if os.geteuid():
        raise NoGpuForTests("root is needed: NVIDIA's MPS daemon serves several user ids only as root")
    if shutil.which(CONTROL_DAEMON) is None:
        raise NoGpuForTests(
            f"no {CONTROL_DAEMON} on PATH; it comes with NVIDIA's driver (package nvidia-compute-utils)"
        )
    offer = offer_of(inventory, reserve_mib=RESERVE_MIB)
    if not offer.served:
        raise NoGpuForTests(_nothing_served(offer, inventory))
    for gpu in offer.served:
        if busy := source.processes(gpu.facts.uuid):
            pids = ", ".join(str(process.pid) for process in busy)
            raise NoGpuForTests(f"GPU {gpu.facts.index} is in use (processes {pids}); these tests need idle GPUs")
    return offer.served[0]


def _nothing_served(offer: Offer, inventory: Inventory) -> str:
    reasons = [f"GPU {gpu.facts.index} ({gpu.facts.product}): {gpu.reason}" for gpu in offer.withheld]
    reasons += [f"GPU {gpu.index}: {gpu.reason}" for gpu in inventory.broken]
    return "; ".join(reasons) or "the driver is there and lists no GPU"


def main() -> int:
    """Look, and say what there is."""
    source = NvmlSource()
    try:
        source.open()
        inventory = source.inventory()
        gpu = gpu_for_tests(source, inventory)
    except (DriverError, NoGpuForTests) as problem:
        print(f"e2e-gpu: {problem}", file=sys.stderr)  # noqa: T201 - a program
        return 2
    print(f"==> GPU {gpu.facts.index}: {gpu.facts.product}, driver {inventory.driver_version}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
