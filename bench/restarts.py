"""Restarts of kubelet against one process of the plugin: how soon it is registered again, and what stays behind."""

import time
from statistics import median

from figures import Figures
from subjects import has_all_devices, open_files, plugin_command, registered, resident_mib

_COMPARED = 100


async def register_again(figures: Figures, restarts: int) -> dict[str, float]:
    """Restart kubelet again and again; return what the last hundred are beside the first hundred."""
    resident: list[float] = []
    files: list[float] = []
    async with registered(plugin_command) as subject:
        for _ in range(restarts):
            await subject.kubelet.stop()
            since = time.perf_counter()
            await subject.kubelet.start()
            await subject.kubelet.until(has_all_devices, deadline_seconds=60)
            figures.add("kubelet_socket_to_registered_ms", (time.perf_counter() - since) * 1000)
            resident.append(resident_mib(subject.pid))
            files.append(open_files(subject.pid))
    taken = figures.samples["kubelet_socket_to_registered_ms"]
    many = min(_COMPARED, restarts // 2)
    return {
        "compared_restarts": many,
        "latency_ratio": round(median(taken[-many:]) / median(taken[:many]), 3),
        "resident_growth_mib": round(median(resident[-many:]) - median(resident[:many]), 3),
        "open_files_growth": median(files[-many:]) - median(files[:many]),
    }
