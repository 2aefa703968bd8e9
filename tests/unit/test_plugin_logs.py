"""The form of the logs."""

import json
import logging

import pytest

from cta_group_plugin.logs import EventLog, LogFormat, set_up_logs
from own_logs import own_logs


def logged(log_format: LogFormat, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the line of one event."""
    set_up_logs("info", log_format)
    log = EventLog("cta_group_plugin.test")
    log.debug("not_shown")
    log.info("registered", socket="a.sock", reason='two words and a "quote"', count=3)
    return capsys.readouterr().err


def test_text_is_an_event_and_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    """One line: time, level, event, fields; values with spaces are quoted."""
    line = logged("text", capsys)
    assert line.endswith('info    registered socket=a.sock reason="two words and a \\"quote\\"" count=3\n')
    assert line.count("\n") == 1


def test_json_has_every_field_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    """One JSON object a line for collectors."""
    line = json.loads(logged("json", capsys))
    assert (line["event"], line["level"], line["socket"], line["count"]) == ("registered", "info", "a.sock", 3)


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_error_carries_its_traceback(log_format: LogFormat, capsys: pytest.CaptureFixture[str]) -> None:
    """An unexpected failure shows where it came from."""
    set_up_logs("error", log_format)
    try:
        int("many")
    except ValueError as failure:
        EventLog("cta_group_plugin.test").error("part_failed", cause=failure)
    assert "ValueError: invalid literal" in capsys.readouterr().err


def test_text_of_others_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Line ends of any kind and escape sequences are written out; letters of any language are not."""
    set_up_logs("info", "text")
    EventLog("cta_group_plugin.test").info("told", name="a\rb", clear="\x1b[2J", c1="\x9b1m", u="\u2028", word="größer")
    line = capsys.readouterr().err
    assert line.rstrip("\n").isprintable()
    assert line.endswith('name="a\\rb" clear="\\u001b[2J" c1="\\u009b1m" u="\\u2028" word=größer\n')


def test_nothing_of_it_stays_for_other_tests() -> None:
    """Another test's logs would go to a stream that is closed, each with a traceback of that."""
    root = logging.getLogger()
    before = root.level
    with own_logs():
        set_up_logs("error", "text")
        assert root.level == logging.ERROR
        assert any(type(handler) is logging.StreamHandler for handler in root.handlers)
    assert root.level == before
    assert not any(type(handler) is logging.StreamHandler for handler in root.handlers)
