"""``scripts/dashboard-picture``: draws the dashboard of the running demo for the README.

It is a drawing of the dashboard file, of the values that the demo's Prometheus has at the moment. Grafana draws the
same panels in its own way.
"""

import argparse
import sys
from pathlib import Path

from cluster_harness.errors import HarnessError
from cluster_harness.prometheus_program import cluster_prometheus
from cluster_harness.tools import PROJECT, Tools
from cta_group_demo import play, stage
from cta_group_demo.browser import photograph
from cta_group_demo.look import View, look, wait_for_number
from cta_group_demo.page import WIDTH, draw_page

PICTURE = PROJECT / "docs" / "pictures" / "dashboard-cluster.png"
_ORIGIN = (
    "Drawn from charts/cta-group/dashboards/{uid}.json, with the values of a real Prometheus on the demo's cluster "
    "(simulated GPUs). Grafana draws the same panels in its own style."
)


def main() -> int:
    """Draw the picture; 1 and a sentence where there is nothing to draw or to draw with."""
    arguments = _parser().parse_args()
    try:
        draw(_view(with_neighbours=arguments.neighbours), arguments.png)
    except HarnessError as error:
        print(f"dashboard-picture: {error}", file=sys.stderr)
        return 1
    print(f"{arguments.png}: {arguments.png.stat().st_size // 1024} KiB")
    return 0


def draw(view: View, target: Path) -> None:
    """Write the picture of a view."""
    origin = _ORIGIN.format(uid=view.dashboard.uid)
    page, height = draw_page(view.dashboard, view.answered, view.window, origin)
    photograph(page, WIDTH, height, target)


def _view(*, with_neighbours: bool) -> View:
    cluster = stage.find_cluster()
    if cluster is None:
        raise HarnessError("no demo is running; start one with: make demo")
    prometheus, tools = cluster_prometheus(cluster), Tools(stage.KUBECONFIG, cluster.api)
    if not with_neighbours:
        return look(prometheus, tools)
    play.let_neighbours_in(tools)
    # Beside the demo's sixth server one of the neighbours is refused.
    return wait_for_number(prometheus, tools, "Workloads blocked", 2)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dashboard-picture", description="Draw the dashboard of the running demo.")
    parser.add_argument("png", type=Path, nargs="?", default=PICTURE, help="where to (default: %(default)s)")
    parser.add_argument("--neighbours", action="store_true", help="let two more teams into the cluster before")
    return parser


if __name__ == "__main__":
    sys.exit(main())
