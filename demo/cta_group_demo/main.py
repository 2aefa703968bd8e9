"""``make demo``: the main job on a real Kubernetes with simulated GPUs. ``make demo-down`` ends it."""

import sys
import time

from cluster_harness.tools import PROJECT, ToolError, Tools
from cta_group_core.names import (
    ANNOTATION_ALIGNMENT,
    ENV_GPU_UUID,
    ENV_MPS_MEMORY_LIMIT,
    ENV_MPS_PERCENTAGE,
)
from cta_group_demo import play, stage

_STARTED = time.monotonic()


def main() -> int:
    """Play the demo, or end it when the argument is ``down``; return the exit status."""
    if sys.argv[1:] == ["down"]:
        print("ended the demo" if stage.end() else "no demo is running")
        return 0
    try:
        _play()
    except ToolError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


def _play() -> None:
    _, tools = stage.begin(_say)
    _say("waiting for the node's GPUs")
    capacity = play.wait_for_capacity(tools)
    _title(f"The node offers {capacity} groups: eight simulated H100 of 128")
    print(tools.cta("top"))
    _say("a quota of 160 groups for team-a, then five servers of 32")
    play.give_quota(tools)
    play.start_servers(tools)
    _title("Placed by best fit: four servers share one GPU, the fifth opens another")
    print(tools.cta("top"))
    _show_slices(tools)
    _say("a sixth server of 32")
    sentence = play.ask_for_too_much(tools)
    _title("Refused by the quota, and explained: kubectl cta explain deployment/chat-6 -n team-a")
    print(sentence)
    _show_further()


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


def _show_further() -> None:
    _title("Look further, then end it")
    print(f"  export KUBECONFIG={stage.KUBECONFIG} PATH={PROJECT / '.venv' / 'bin'}:$PATH")
    print("  kubectl cta top")
    print("  kubectl get ctaquotas,ctanodes,ctaworkloads -A")
    print("  kubectl -n team-a get pods -o wide")
    print('  kubectl patch ctaquota team-a --type merge -p \'{"spec":{"groups":192}}\'   # the sixth server starts')
    print("  make demo-down")


def _title(text: str) -> None:
    print(f"\n=== {text}\n", flush=True)


def _say(text: str) -> None:
    print(f"[{time.monotonic() - _STARTED:4.0f} s] {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
