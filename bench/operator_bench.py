"""What the operator costs, and how fast it is, in a large cluster.

Prints JSON and writes it to build/bench-operator.json: the spread of each figure, and whether its limit was kept. The
control plane is real, KWOK plays nodes and pods, this program plays the plugins; the operator is a process as in its
image. Everything shares this machine. In a cluster the control plane and the nodes have machines of their own; with
``--nice`` they stand back for the operator here. A floor that is asked the same tells what the machine adds.
Its load is told with the figures; those in processor time hold on a busy one too.

``--nodes 50 --workloads 50 --pods 500 --seconds 15`` is a try of some minutes.
"""

import argparse
import asyncio
import json
import os
import random
import time
from collections.abc import Mapping
from pathlib import Path
from signal import SIGKILL
from typing import Any

from churn import SPACE, Churn
from cta_group_operator.pauses import keep_short
from decisions import decide
from figures import Figures, Limit, machine, percentile
from operator_cluster import Cluster, Size, running_cluster
from operator_subject import Operator, Operators
from process import children_give_way, peak_mib, processor_seconds, quantile_between
from subjects import ROOT

_NODES_DECIDED, _DECISIONS = 1000, 1000
_QUESTIONS_A_SECOND = 20.0


async def first_start(operators: Operators, figures: Figures) -> Operator:
    """Let an operator see the cluster for the first time, until everything is explained; then start another one."""
    operator = operators.start()
    figures.add("first_start_to_calm_s", await _led_and_calm(operator) - operator.started)
    figures.add("first_start_writes", (await operator.scrape()).total("cta_group_api_writes_total"))
    figures.add("first_start_peak_mib", peak_mib(operator.pid))
    operator.process.end()
    return await _digest(operators, figures)


async def _digest(operators: Operators, figures: Figures) -> Operator:
    """Start an operator over a cluster in which nothing is left to write, and ask its admission from the beginning."""
    with operators.asked(_QUESTIONS_A_SECOND) as asked:
        operator = operators.start()
        ready = await operator.ready()
        figures.add("digest_s", ready - operator.started)
        figures.add("digest_cpu_s", processor_seconds(operator.pid))
        figures.add("restart_to_calm_s", await _led_and_calm(operator) - operator.started)
    figures.add("restart_writes", (await operator.scrape()).total("cta_group_api_writes_total"))
    figures.add("restart_peak_mib", peak_mib(operator.pid))
    for name, file in (("admission", asked.operator), ("floor", asked.floor)):
        figures.add(f"{name}_while_digesting_ms", *(taken for at, taken in _answers(file) if at < ready))
    return operator


async def _led_and_calm(operator: Operator) -> float:
    await operator.leads()
    return await operator.calm()


async def churn(operators: Operators, operator: Operator, figures: Figures, asked: argparse.Namespace) -> None:
    """Let pods come and go, and see what the operator takes for it."""
    cluster = operators.cluster
    await cluster.client.create("/api/v1/namespaces", {"metadata": {"name": SPACE}})
    operators.register(SPACE)
    load = Churn(cluster, random.Random(asked.seed))  # noqa: S311 - a load, no secret
    before, since, processor_since = await operator.scrape(), time.monotonic(), processor_seconds(operator.pid)
    with operators.asked(_QUESTIONS_A_SECOND) as files:
        await load.run(asked.rate, asked.seconds)
    seconds = time.monotonic() - since
    after = await operator.scrape()
    figures.add("churn_cores", (processor_seconds(operator.pid) - processor_since) / seconds)
    figures.add("churn_peak_mib", peak_mib(operator.pid))
    for name, file in (("admission", files.operator), ("floor", files.floor)):
        figures.add(f"{name}_ms", *(taken for _, taken in _answers(file)))
    figures.add("created_to_bound_s", *load.bound_seconds())
    figures.add("pods_made", len(load.made))
    figures.add("pods_ungated", len(load.ungated))
    figures.add("pods_not_bound", len(load.made) - len(load.bound))
    writes = after.total("cta_group_api_writes_total") - before.total("cta_group_api_writes_total")
    figures.add("api_writes_per_pod", writes / len(load.made))
    for share, name in ((0.5, "p50"), (0.99, "p99")):
        for metric in ("reconcile", "placement", "admission"):
            figures.add(
                f"{metric}_{name}_at_most_s", quantile_between(before, after, f"cta_group_{metric}_seconds", share)
            )


async def takeover(operators: Operators, operator: Operator, figures: Figures) -> None:
    """Kill the leader beside a second replica, and see when that leads."""
    second = operators.start(serves_admission=False)
    try:
        await second.ready()
        killed = time.monotonic()
        operator.process.end(SIGKILL)
        figures.add("takeover_s", await second.leads() - killed)
    finally:
        second.process.end(SIGKILL)


def _answers(file: Path) -> list[tuple[float, float]]:
    """Return when each question was asked, and the milliseconds until its answer; the last line may be cut off."""
    lines = file.read_text().splitlines()[:-1]
    return [(float(at), float(taken)) for at, taken in map(str.split, lines)]


def limits(figures: Figures) -> list[Limit]:
    """Return everything that was promised of the operator, with what was measured."""
    found = figures.samples

    def p99(name: str) -> float:
        return percentile(found[name], 99)

    promised = [
        Limit(f"placement {what} over 1000 nodes of 8 GPUs, p99", p99(f"placement_{what}_cpu_ms"), 5.0, "ms of cpu")
        for what in ("snapshot", "decision")
    ]
    if "digest_s" not in found:
        return promised
    peak = max(found[f"{name}_peak_mib"][0] for name in ("first_start", "restart", "churn"))
    return [
        *promised,
        Limit("start until everything is listed", found["digest_s"][0], 10.0, "s"),
        Limit("peak memory", peak, 200.0, "MiB"),
        Limit("writes of a start where nothing changed", found["restart_writes"][0], 1.0, ""),
        Limit("processor at the rate of creations", found["churn_cores"][0], 0.15, "cores"),
        Limit("round of work, p99 at most", found["reconcile_p99_at_most_s"][0], 1.001, "s"),
        Limit("admission, p99", p99("admission_ms"), 10.0, "ms"),
        Limit("admission while everything is listed, p99", p99("admission_while_digesting_ms"), 10.0, "ms"),
        Limit("leader killed until another leads", found["takeover_s"][0], 15.0, "s"),
        Limit("pods that came in ungated", found["pods_ungated"][0], 1.0, ""),
        Limit("pods that were not bound", found["pods_not_bound"][0], 1.0, ""),
    ]


def parse_arguments() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=500, help="nodes of eight GPUs; 0: decisions only")
    parser.add_argument("--workloads", type=int, default=1000, help="Deployments")
    parser.add_argument("--pods", type=int, default=10_000, help="pods of them together")
    parser.add_argument("--rate", type=float, default=20.0, help="pods that are created a second, beside those")
    parser.add_argument("--seconds", type=float, default=120.0, help="for how long")
    parser.add_argument("--seed", type=int, default=1, help="of sizes and of how full nodes are")
    parser.add_argument(
        "--nice", type=int, default=0, help="of the control plane; above 0 it starves beside other work"
    )
    return parser.parse_args()


async def in_cluster(asked: argparse.Namespace, figures: Figures) -> None:
    """Measure everything that needs a cluster."""
    async with running_cluster(Size(asked.nodes, asked.workloads, asked.pods)) as cluster:
        since = time.monotonic()
        await cluster.fill()
        children_give_way(asked.nice)
        figures.add("cluster_filled_s", time.monotonic() - since)
        await _measure(cluster, asked, figures)


async def _measure(cluster: Cluster, asked: argparse.Namespace, figures: Figures) -> None:
    operators = Operators(cluster)
    operator = await first_start(operators, figures)
    try:
        await churn(operators, operator, figures, asked)
        await takeover(operators, operator, figures)
    finally:
        operator.process.end(SIGKILL)


def report(asked: argparse.Namespace, figures: Figures, before: Mapping[str, object]) -> dict[str, Any]:
    """Return everything that is told."""
    return {
        "machine": {**before, "load_average_after": round(os.getloadavg()[0], 2)},
        "conditions": vars(asked),
        "limits": [limit.verdict() for limit in limits(figures)],
        "operator": figures.spreads(),
    }


def main() -> None:
    """Measure and print."""
    asked, figures, before = parse_arguments(), Figures(), machine()
    keep_short()  # as the operator does, part of which runs here
    decide(figures, _NODES_DECIDED, _DECISIONS, asked.seed)
    if asked.nodes:
        asyncio.run(in_cluster(asked, figures))
    text = json.dumps(report(asked, figures, before), indent=2)
    target = ROOT / "build" / "bench-operator.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(f"{text}\n")
    print(text)


if __name__ == "__main__":
    main()
