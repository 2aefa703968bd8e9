"""What the plugin costs a node, as its kubelet sees it, beside the floor of the same messages on bare grpcio.

Prints JSON and writes it to build/bench.json: the spread of each figure, and whether its limit was kept. Everything
goes through real unix sockets; the kubelet is the fake one of ``cta_group_plugin.testing``, the GPUs are simulated.
Plugin and floor take turns in fresh processes: a busy moment of the machine hits both. The client is this program, in
Python; what the floor takes is what client and transport cost. The plugin's own part is measured without them, in time
of the clock and in time of the processor: the second one is the same on a busy machine.
"""

import argparse
import asyncio
import json
from statistics import median

from calls import GROUPS, in_process, over_grpc
from events import event_to_list
from figures import Figures, Limit, machine, percentile
from restarts import register_again
from subjects import GPUS, IDS, ROOT, Command, floor_command, plugin_command, registered, resident_mib

_CALLS = ("get_preferred_allocation", "allocate")


async def measure(command: Command, figures: Figures, calls: int) -> None:
    """Start a subject, measure it once, and end it."""
    async with registered(command) as subject:
        figures.add("start_to_registered_ms", subject.started_ms)
        await asyncio.to_thread(over_grpc, subject.socket, list(subject.kubelet.devices), figures, calls)
        figures.add("resident_mib", resident_mib(subject.pid))


def limits(plugin: Figures, floor: Figures, flat: dict[str, float]) -> list[Limit]:
    """Return everything that was promised of the plugin, with what was measured."""
    promised = []
    for call in _CALLS:
        ours, own = plugin.samples[f"{call}_ms"], plugin.samples[f"{call}_own_cpu_ms"]
        promised += [
            Limit(f"{call}: p99 of its own part, processor time", percentile(own, 99), 1.0, "ms"),
            Limit(f"{call}: p99 over gRPC, times the floor's", p99_ratio(ours, floor.samples[f"{call}_ms"]), 3.0, ""),
        ]
    return [
        *promised,
        Limit("start to registered, median", median(plugin.samples["start_to_registered_ms"]), 500.0, "ms"),
        Limit("resident memory, most", max(plugin.samples["resident_mib"]), 50.0, "MiB"),
        Limit("event to ListAndWatch, p99", percentile(plugin.samples["event_to_list_ms"], 99), 100.0, "ms"),
        Limit(
            "new kubelet.sock to registered, p99",
            percentile(plugin.samples["kubelet_socket_to_registered_ms"], 99),
            200.0,
            "ms",
        ),
        Limit("last re-registrations, times the first: latency", flat["latency_ratio"], 1.5, ""),
        Limit("last re-registrations less the first: resident memory", flat["resident_growth_mib"], 2.0, "MiB"),
        Limit("last re-registrations less the first: open files", flat["open_files_growth"], 1.0, ""),
    ]


def p99_ratio(ours: list[float], floors: list[float]) -> float:
    """Return how many times the floor's p99 ours is."""
    return percentile(ours, 99) / percentile(floors, 99)


def parse_arguments() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000, help="calls of each method in one repeat")
    parser.add_argument("--repeats", type=int, default=5, help="fresh processes of each subject")
    parser.add_argument("--events", type=int, default=400, help="GPUs that are lost")
    parser.add_argument("--restarts", type=int, default=1000, help="restarts of kubelet against one plugin")
    return parser.parse_args()


async def main() -> None:
    """Measure and print."""
    asked = parse_arguments()
    plugin, floor = Figures(), Figures()
    before = machine()
    for _ in range(asked.repeats):
        await measure(floor_command, floor, asked.calls)
        await measure(plugin_command, plugin, asked.calls)
    await in_process(plugin, asked.calls)
    await event_to_list(plugin, asked.events)
    flat = await register_again(plugin, asked.restarts)
    report = {
        "machine": before,
        "conditions": {"gpus": GPUS, "ids": IDS, "groups_per_request": GROUPS, **vars(asked)},
        "limits": [limit.verdict() for limit in limits(plugin, floor, flat)],
        "plugin": plugin.spreads(),
        "floor": floor.spreads(),
        "re_registrations": flat,
    }
    text = json.dumps(report, indent=2)
    target = ROOT / "build" / "bench.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(f"{text}\n")
    print(text)


if __name__ == "__main__":
    asyncio.run(main())
