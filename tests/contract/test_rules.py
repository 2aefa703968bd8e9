"""The chart's alerts: each fires where it must, none where all is well, and each says what to do."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from chart_rendering import CHART, ROOT, of_kind, render

RULES = sorted((CHART / "rules").glob("*.yaml"))
WORLDS = Path(__file__).parent / "alerts"


def _promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = ["promtool", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def _alerts() -> dict[str, dict[str, Any]]:
    groups = [group for path in RULES for group in yaml.safe_load(path.read_text())["groups"]]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def test_prometheus_reads_the_rules() -> None:
    """Syntax, names and templates, checked by Prometheus' own tool."""
    done = _promtool("check", "rules", *RULES)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("worlds", ["firing", "quiet"])
def test_alerts_in_simulated_worlds(worlds: str) -> None:
    """firing.yaml: each alert with its labels and words; quiet.yaml: an hour without any."""
    done = _promtool("test", "rules", WORLDS / f"{worlds}.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_world_in_which_it_fires() -> None:
    """An alert that can never fire is worse than none."""
    tests = yaml.safe_load((WORLDS / "firing.yaml").read_text())["tests"]
    cases = [case for test in tests for case in test["alert_rule_test"]]
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == set(_alerts())


@pytest.mark.parametrize("name", _alerts())
def test_every_alert_says_what_it_is_and_what_to_do(name: str) -> None:
    """A severity, a time to wait, a summary, a description and a runbook of the same name."""
    rule = _alerts()[name]
    assert rule["labels"]["severity"] in {"info", "warning", "critical"}
    assert rule["for"]
    assert set(rule["annotations"]) == {"summary", "description"}
    runbook = (ROOT / "docs" / "runbooks" / f"{name}.md").read_text()
    assert runbook.startswith(f"# {name}\n")
    assert "**What to do**" in runbook


def test_no_runbook_is_left_over() -> None:
    """A runbook without an alert would never be read."""
    assert {path.stem for path in (ROOT / "docs" / "runbooks").glob("*.md")} == set(_alerts())


def test_the_chart_carries_labels_and_addresses_of_the_user_and_drops_what_is_disabled() -> None:
    """Values: labels of every alert, address of the runbooks, alerts that are not wanted."""
    (made,) = of_kind(render("monitoring"), "PrometheusRule").values()
    rules = {rule["alert"]: rule for group in made["spec"]["groups"] for rule in group["rules"]}
    assert set(_alerts()) - set(rules) == {"CTAGroupOperatorHasNoLeader"}
    for name, rule in rules.items():
        assert rule["expr"] == _alerts()[name]["expr"]
        assert rule["labels"] == {**_alerts()[name]["labels"], "team": "platform"}
        assert rule["annotations"]["runbook_url"] == f"https://runbooks.example.com/cta-group/{name}.md"


def test_templates_of_prometheus_pass_helm_untouched() -> None:
    """Braces in the rules are Prometheus', not Helm's."""
    text = RULES[0].read_text()
    (made,) = of_kind(render("monitoring"), "PrometheusRule").values()
    rendered = yaml.safe_dump(made, width=10_000)
    assert set(re.findall(r"\{\{.*?\}\}", rendered)) <= set(re.findall(r"\{\{.*?\}\}", text))
