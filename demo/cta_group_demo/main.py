"""``make demo``: the main job on a real Kubernetes with simulated GPUs. ``make demo-down`` ends it."""

import sys
import time

from cluster_harness.errors import HarnessError
from cluster_harness.monitoring import watch_release
from cluster_harness.prometheus import Prometheus
from cluster_harness.tools import PROJECT, Tools
from cta_group_core.names import (
    ANNOTATION_ALIGNMENT,
    ENV_GPU_UUID,
    ENV_MPS_MEMORY_LIMIT,
    ENV_MPS_PERCENTAGE,
)
from cta_group_demo import play, stage
from cta_group_demo.dashboard_text import dashboard_text
from cta_group_demo.look import wait_for_number

_STARTED = time.monotonic()
_TABLES = ("Workloads that do not run, and why", "Quotas")  # of the dashboard; `kubectl cta top` showed the others


def main() -> int:
    """Play the demo, or end it when the argument is ``down``; return the exit status."""
    if sys.argv[1:] == ["down"]:
        print("ended the demo" if stage.end() else "no demo is running")
        return 0
    try:
        _play()
    except HarnessError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


def _play() -> None:
    cluster, tools = stage.begin(_say)
    _say("waiting for the node's GPUs")
    capacity = play.wait_for_capacity(tools)
    _title(f"The node offers {capacity} groups: eight simulated H100 of 128")
    print(tools.cta("top"))
    _say("a Prometheus that scrapes what the chart's monitors name")
    prometheus = watch_release(cluster, tools)
    _say("a quota of 160 groups for team-a, then five servers of 32")
    play.give_quota(tools)
    play.start_servers(tools)
    _title("Placed by best fit: four servers share one GPU, the fifth opens another")
    print(tools.cta("top"))
    _show_slices(tools)
    _say("the same server, with its arguments left alone")
    log, told = play.start_unaligned(tools)
    _title("It ends as vLLM does, and is explained: kubectl cta explain deployment/chat -n team-z")
    print(f"its log: {log}\n\n{told}")
    _say("a sixth server of 32")
    sentence = play.ask_for_too_much(tools)
    _title("Refused by the quota, and explained: kubectl cta explain deployment/chat-6 -n team-a")
    print(sentence)
    _title("What the dashboard shows, evaluated by the cluster's own Prometheus")
    wait_for_number(prometheus, tools, "Held", play.GROUPS_HELD)  # the server that was left alone has gone
    view = wait_for_number(prometheus, tools, "Workloads blocked", 1)
    print(dashboard_text(it for it in view.answered if it.panel.kind == "stat" or it.panel.title in _TABLES))
    _show_further(prometheus)


def _show_slices(tools: Tools) -> None:
    _title("What each server runs with")
    for name in play.FITTING:
        environment = play.environment_of(tools, name)
        print(f"{name}: {ENV_MPS_PERCENTAGE}={environment[ENV_MPS_PERCENTAGE]}")
        print(f"        {ENV_MPS_MEMORY_LIMIT}={environment[ENV_MPS_MEMORY_LIMIT]}")
        print(f"        {ENV_GPU_UUID}={environment[ENV_GPU_UUID]}")
    pod = play.pod_of(tools, play.FITTING[0])
    print(f"\narguments after admission: {' '.join(pod['spec']['containers'][0]['args'])}")
    print(f"why:                       {pod['metadata']['annotations'][ANNOTATION_ALIGNMENT]}")


def _show_further(prometheus: Prometheus) -> None:
    _title("Look further, then end it")
    print(f"  export KUBECONFIG={stage.KUBECONFIG} PATH={PROJECT / '.venv' / 'bin'}:$PATH")
    print("  kubectl cta top")
    print("  kubectl get ctaquotas,ctanodes,ctaworkloads -A")
    print("  kubectl -n team-a get pods -o wide")
    print('  kubectl patch ctaquota team-a --type merge -p \'{"spec":{"groups":192}}\'   # the sixth server starts')
    print(f"  {prometheus.url}   # Prometheus; scripts/dashboard-picture draws the dashboard from it")
    print("  make demo-down")


def _title(text: str) -> None:
    print(f"\n=== {text}\n", flush=True)


def _say(text: str) -> None:
    print(f"[{time.monotonic() - _STARTED:4.0f} s] {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
