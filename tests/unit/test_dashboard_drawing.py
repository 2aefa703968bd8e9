"""The drawing of a dashboard: numbers with units, colours by threshold, tables, lines in a stack, gaps, states."""

from collections.abc import Sequence
from typing import Any

import pytest

from cluster_harness.dashboard import Dashboard, DashboardError, Panel, Place, Query, fill, parse_dashboard, values_of
from cluster_harness.dashboard_answers import Answer, Answered, Window, legend
from cluster_harness.dashboard_tables import Table, table_of
from cluster_harness.prometheus import Sample, Series
from cta_group_demo.axes import Frame, level_step, unbroken
from cta_group_demo.dashboard_text import dashboard_text
from cta_group_demo.figures import COLOURS, colour_of, mapped, number_text
from cta_group_demo.page import draw_page
from cta_group_demo.panels import draw_panel

WINDOW = Window(1000.0, 1060.0)
ORGANIZE = {"indexByName": {"pod": 0}, "renameByName": {"pod": "Pod", "Value #A": "Groups", "Value #B": "Free"}}


def panel(kind: str, queries: Sequence[Query] = (), **changes: Any) -> Panel:
    """Return a panel of a kind."""
    fields: dict[str, Any] = {"defaults": {}, "overrides": (), "options": {}, "transformations": ()}
    return Panel(1, kind, "A title", "", Place(0, 0, 12, 8), tuple(queries), **(fields | changes))


def table(**changes: Any) -> Answered:
    """Return a table of two queries about pods; the second knows nothing of one of them."""
    queries = [Query(ref, "x", "", instant=True) for ref in "AB"]
    first = (Sample({"pod": "b"}, 32.0), Sample({"pod": "a"}, 64.0))
    transformations = ({"id": "merge", "options": {}}, {"id": "organize", "options": ORGANIZE})
    shown = panel("table", queries, **({"transformations": transformations} | changes))
    return Answered(shown, (Answer(queries[0], first), Answer(queries[1], (Sample({"pod": "a"}, 0.0),))))


def course(kind: str, *series: Series, **changes: Any) -> Answered:
    """Return a panel over time with series that are named after their pod."""
    query = Query("A", "x", "{{pod}}", instant=False)
    return Answered(panel(kind, [query], **changes), (Answer(query, series=series),))


@pytest.mark.parametrize(
    ("value", "settings", "text"),
    [
        (1024.0, {"unit": "none"}, "1024"),
        (0.5, {"unit": "percentunit"}, "50%"),
        (0.0042, {"unit": "s"}, "4.20 ms"),
        (12500.0, {"unit": "short"}, "12.5k"),
        (1.25, {}, "1.25"),
        (None, {"noValue": "not shared"}, "not shared"),
    ],
)
def test_a_number_is_written_with_its_unit(value: float | None, settings: dict[str, Any], text: str) -> None:
    """Units, decimals and the words for nothing are the file's."""
    assert number_text(value, settings) == text


def test_a_unit_that_nobody_knows_is_an_error() -> None:
    """A number without its unit would be a wrong number."""
    with pytest.raises(DashboardError, match="'bytes'"):
        number_text(1.0, {"unit": "bytes"})


def test_a_colour_is_that_of_the_highest_threshold_reached() -> None:
    """The first step has no value and holds for everything below the next."""
    steps = [{"color": "green", "value": None}, {"color": "red", "value": 1}]
    settings = {"thresholds": {"mode": "absolute", "steps": steps}}
    assert [colour_of(value, settings) for value in (0.0, 1.0, 9.0)] == [COLOURS[it] for it in ("green", "red", "red")]
    assert colour_of(9.0, {"color": {"mode": "fixed", "fixedColor": "blue"}}) == COLOURS["blue"]


def test_a_value_may_stand_for_a_word() -> None:
    """A mapping gives the text, and nothing for other values."""
    settings = {"mappings": [{"type": "value", "options": {"1": {"text": "ready", "color": "green"}}}]}
    assert mapped(1.0, settings) == {"text": "ready", "color": "green"}
    assert mapped(0.0, settings) is None


def test_a_variable_is_filled_in_and_a_strange_one_is_an_error() -> None:
    """Grafana's three spellings are understood; a query with a hole in it is not sent."""
    values = {"namespace": ".*", "__rate_interval": "8s"}
    query = 'rate(x{namespace=~"$namespace"}[$__rate_interval]) + ${namespace:regex} + [[namespace]]'
    assert fill(query, values) == 'rate(x{namespace=~".*"}[8s]) + .* + .*'
    with pytest.raises(DashboardError, match=r"\$node has no value"):
        fill("x{node='$node'}", values)


def test_a_variable_with_all_stands_for_everything() -> None:
    """The data source is what it is, a variable with All matches all, and one without a value is refused."""
    variables: dict[str, dict[str, Any]] = {
        "datasource": {"name": "datasource", "type": "datasource", "query": "prometheus"},
        "node": {"name": "node", "type": "query", "includeAll": True},
    }
    values = values_of(Dashboard("uid", "title", variables, ()), 60)
    assert (values["datasource"], values["node"], values["__range"]) == ("prometheus", ".*", "60s")
    one = {"pod": {"name": "pod", "type": "query", "includeAll": False}}
    with pytest.raises(DashboardError, match="'pod' of type query"):
        values_of(Dashboard("uid", "title", one, ()), 60)


def test_panels_of_a_collapsed_row_are_panels() -> None:
    """A row holds panels and is none itself."""
    text = """{"uid": "u", "title": "t", "panels": [{"type": "row", "panels": [
        {"id": 1, "type": "stat", "title": "inner", "gridPos": {"x": 0, "y": 0, "w": 1, "h": 1}}]}]}"""
    assert [it.title for it in parse_dashboard(text).panels] == ["inner"]


def test_queries_of_a_table_are_joined_named_and_sorted() -> None:
    """Rows with the same labels become one, columns get the file's names, what is missing is None."""
    sort = {"sortBy": [{"displayName": "Pod", "desc": False}]}
    assert table_of(table(options=sort)) == Table(("Pod", "Groups", "Free"), (("a", 64.0, 0.0), ("b", 32.0, None)))


def test_a_table_that_is_not_understood_is_an_error() -> None:
    """A transformation that is skipped in silence would show another table than Grafana."""
    with pytest.raises(DashboardError, match="groupBy is not understood"):
        table_of(table(transformations=({"id": "groupBy", "options": {}},)))
    with pytest.raises(DashboardError, match="need the transformation merge"):
        table_of(table(transformations=()))


def test_a_table_is_drawn_with_escaped_words_and_gauges() -> None:
    """A gauge is as long as the value's share of the range; no name can become markup."""
    gauge = {"id": "custom.cellOptions", "value": {"type": "gauge"}}
    limits = [{"id": "min", "value": 0}, {"id": "max", "value": 128}]
    held = {"matcher": {"id": "byName", "options": "Groups"}, "properties": [gauge, *limits]}
    query = Query("A", "x", "", instant=True)
    organize = {"id": "organize", "options": {"renameByName": {"Value": "Groups"}}}
    shown = panel("table", [query], overrides=(held,), transformations=(organize,))
    drawn = draw_panel(Answered(shown, (Answer(query, (Sample({"pod": "<b>"}, 32.0),)),)), WINDOW, 400, 200)
    assert "width:25.0%" in drawn
    assert "&lt;b&gt;" in drawn


def test_lines_of_a_stack_lie_on_each_other() -> None:
    """The axis reaches the sum, and the second line begins where the first one is."""
    stacked = {"unit": "none", "custom": {"stacking": {"mode": "normal", "group": "A"}, "fillOpacity": 20}}
    points = tuple((1000.0 + second, 60.0) for second in range(3))
    drawn = draw_panel(
        course("timeseries", Series({"pod": "a"}, points), Series({"pod": "b"}, points), defaults=stacked),
        WINDOW,
        400,
        222,
    )
    assert ">120<" in drawn
    assert drawn.count("<path") == 4
    assert 'd="M44.0 93.0' in drawn  # 60 of 120, between 8 and 178 pixels
    assert 'd="M44.0 8.0' in drawn


def test_a_line_breaks_where_prometheus_had_no_value() -> None:
    """A gap of more than one step is a gap in the drawing."""
    points = ((0.0, 1.0), (1.0, 1.0), (5.0, 1.0))
    assert list(unbroken(points, 1.0)) == [slice(0, 2), slice(2, 3)]


@pytest.mark.parametrize(
    ("highest", "whole", "step"), [(1024.0, True, 200.0), (1.0, False, 0.2), (1.0, True, 1.0), (0.03, False, 0.005)]
)
def test_an_axis_has_few_round_levels(highest: float, whole: bool, step: float) -> None:  # noqa: FBT001 - a table
    """Steps are 1, 2 or 5 times a power of ten; counts have no halves."""
    assert level_step(highest, whole=whole) == pytest.approx(step)


def test_a_time_lies_in_its_place() -> None:
    """The window fills the width between the axis and the edge."""
    frame = Frame(width=212, height=100, left=100, window=WINDOW)
    assert [frame.x(at) for at in (1000.0, 1030.0, 1060.0)] == [100.0, 150.0, 200.0]


def test_states_are_bars_with_their_words() -> None:
    """A state that lasts is one bar; a change begins another one in its colour."""
    options = {"0": {"text": "not ready", "color": "red"}, "1": {"text": "ready", "color": "green"}}
    points = tuple((1000.0 + second, float(second >= 30)) for second in range(60))
    settings = {"mappings": [{"type": "value", "options": options}]}
    drawn = draw_panel(course("state-timeline", Series({"pod": "a"}, points), defaults=settings), WINDOW, 500, 200)
    assert drawn.count("<rect") == 2
    assert all(word in drawn for word in (">not ready<", ">ready<", COLOURS["red"], COLOURS["green"]))


def test_a_panel_that_cannot_be_drawn_is_an_error() -> None:
    """No kind is left out in silence."""
    with pytest.raises(DashboardError, match="type heatmap"):
        draw_panel(Answered(panel("heatmap"), ()), WINDOW, 100, 100)


@pytest.mark.parametrize("kind", ["table", "timeseries", "state-timeline"])
def test_a_panel_without_data_says_so(kind: str) -> None:
    """An empty panel is seen as empty."""
    query = Query("A", "x", "", instant=kind == "table")
    assert "No data" in draw_panel(Answered(panel(kind, [query]), (Answer(query),)), WINDOW, 100, 100)


def test_a_legend_without_a_template_names_the_labels() -> None:
    """As Grafana does it."""
    assert legend(Query("A", "x", "{{node}} GPU {{gpu}}", instant=False), {"node": "n", "gpu": "0"}) == "n GPU 0"
    assert legend(Query("A", "x", "", instant=False), {"__name__": "x", "pod": "a"}) == 'pod="a"'
    assert legend(Query("A", "x", "", instant=False), {}) == "A"


def test_a_page_has_the_panels_in_their_places() -> None:
    """Twelve of 24 columns are half of the page; the height is that of the grid's rows."""
    query = Query("A", "x", "", instant=True)
    shown = Answered(panel("stat", [query]), (Answer(query, (Sample({}, 7.0),)),))
    page, height = draw_page(Dashboard("uid", "A dashboard", {}, (shown.panel,)), [shown], WINDOW, "from here")
    assert "left:16px;top:0px;width:680px;height:296px" in page
    assert height == 52 + 8 * 38 + 40
    assert all(text in page for text in ("A dashboard", "A title", ">7<", "from here", "last 1 min"))


def test_the_terminal_has_numbers_and_tables() -> None:
    """The first panels in words; a table without rows says none."""
    query = Query("A", "x", "", instant=True)
    number = Answered(panel("stat", [query]), (Answer(query, (Sample({}, 160.0),)),))
    empty = Answered(panel("table", [query]), (Answer(query),))
    lines = dashboard_text([number, table(), empty]).splitlines()
    assert lines[:2] == ["A title", "160"]
    assert lines[3:7] == ["A title", "Pod   Groups   Free", "b         32   -", "a         64   0"]
    assert lines[-1] == "A title: none"
