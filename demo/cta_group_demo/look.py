"""Looks at the demo's cluster through its dashboard: the one in the cluster, evaluated by the cluster's Prometheus."""

from collections.abc import Sequence
from dataclasses import dataclass

from cluster_harness.dashboard import Dashboard
from cluster_harness.dashboard_answers import Answered, Window, answer_dashboard, last_seconds
from cluster_harness.monitoring import installed_dashboards
from cluster_harness.prometheus import Prometheus
from cluster_harness.tools import Tools
from cluster_harness.waiting import wait_for

DASHBOARD = "cta-group-cluster"
_LONGEST_SECONDS = 3600.0
_PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class View:
    """A dashboard, what its panels showed, and the time that they cover."""

    dashboard: Dashboard
    answered: Sequence[Answered]
    window: Window


def look(prometheus: Prometheus, tools: Tools) -> View:
    """Return what the dashboard shows of everything since Prometheus began, of an hour at most."""
    dashboard = installed_dashboards(tools)[DASHBOARD]
    (age,) = prometheus.query("max(time() - min_over_time(timestamp(up)[1h:2s]))")
    window = last_seconds(prometheus, min(_LONGEST_SECONDS, age.value))
    return View(dashboard, answer_dashboard(dashboard, prometheus, window), window)


def wait_for_number(prometheus: Prometheus, tools: Tools, title: str, number: float) -> View:
    """Look until the panel shows the number, which takes a scrape or two, and return the view."""

    def shown() -> View | None:
        view = look(prometheus, tools)
        found = {it.panel.title: it.number for it in view.answered}
        return view if found[title] == number else None

    return wait_for(shown, f"the dashboard to show {title} {number:g}", _PATIENCE_SECONDS)
