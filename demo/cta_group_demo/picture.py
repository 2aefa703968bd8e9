"""``scripts/dashboard-picture [PNG]``: draws the dashboard of the running demo for the README.

It is a drawing of the dashboard file, of the values that the demo's Prometheus has at the moment. Grafana draws the
same panels in its own way.
"""

import sys
from pathlib import Path

from cluster_harness.errors import HarnessError
from cluster_harness.prometheus_program import cluster_prometheus
from cluster_harness.tools import PROJECT, Tools
from cta_group_demo import stage
from cta_group_demo.browser import photograph
from cta_group_demo.look import View, look
from cta_group_demo.page import WIDTH, draw_page

PICTURE = PROJECT / "docs" / "pictures" / "dashboard-cluster.png"
_ORIGIN = (
    "Drawn from charts/cta-group/dashboards/{uid}.json, with the values of a real Prometheus on the demo's cluster "
    "(simulated GPUs). Grafana draws the same panels in its own style."
)


def main() -> int:
    """Draw the picture; 1 and a sentence where there is nothing to draw or to draw with."""
    target = Path(sys.argv[1]) if sys.argv[1:] else PICTURE
    try:
        draw(_view(), target)
    except HarnessError as error:
        print(f"dashboard-picture: {error}", file=sys.stderr)
        return 1
    print(f"{target}: {target.stat().st_size // 1024} KiB")
    return 0


def draw(view: View, target: Path) -> None:
    """Write the picture of a view."""
    origin = _ORIGIN.format(uid=view.dashboard.uid)
    page, height = draw_page(view.dashboard, view.answered, view.window, origin)
    photograph(page, WIDTH, height, target)


def _view() -> View:
    cluster = stage.find_cluster()
    if cluster is None:
        raise HarnessError("no demo is running; start one with: make demo")
    return look(cluster_prometheus(cluster), Tools(stage.KUBECONFIG))


if __name__ == "__main__":
    sys.exit(main())
