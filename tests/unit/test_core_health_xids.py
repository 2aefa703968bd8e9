"""Every XID has one class, the operator's own opinion wins, and a setting that cannot be meant is refused in words."""

import json
from collections import Counter
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.errors import InvalidText
from cta_group_core.health.evidence import Repair
from cta_group_core.health.xid_catalogue import RULES, XidClass
from cta_group_core.health.xid_policy import XidPolicy, overrides_of, parse_overrides

APPLICATION, REPORT, SUSPECT, FATAL = XidClass.APPLICATION, XidClass.REPORT, XidClass.SUSPECT, XidClass.FATAL

# NVIDIA's catalogue of October 2025 by its recommended immediate action; kept apart from the table under test.
CATALOGUE = {
    "restart the application": [
        *(8, 11, 13, 25, 31, 32, 39, 40, 41, 60, 68, 69, 70, 71, 72, 75, 76, 77, 80, 82, 83, 84, 85, 86, 88, 89, 94),
        *range(96, 106),
        *range(126, 136),
        139,
    ],
    "ignore": [14, 37, 38, 43, 44, 63, 66, 67, 92, 93, 106, 107, 108, 121, 137, 141, 152, 153, 157, 160, 161],
    "reset the GPU": [46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158],
    "restart the node": [79],
    "follow a workflow": [45, 48, 74, *range(144, 151)],
    "other": [54, 78, 151, 159, 154],
    "newer than the catalogue": [*range(162, 173), 174, 175, 176],
}
USUAL = {"restart the application": APPLICATION, "ignore": REPORT, "reset the GPU": FATAL, "restart the node": FATAL}
POLICY = XidPolicy()


def test_every_code_of_the_catalogue_has_exactly_one_rule() -> None:
    """No code of the catalogue is missing from the table, none is there twice, and nothing else is."""
    told = Counter(rule.code for rule in RULES)
    assert set(told.values()) == {1}
    assert sorted(told) == sorted(code for codes in CATALOGUE.values() for code in codes)


@pytest.mark.parametrize("bucket", USUAL)
def test_class_follows_the_recommended_action_or_says_why_not(bucket: str) -> None:
    """A code's class is the one its recommended action stands for; each exception gives its reason."""
    different = [POLICY.rule_of(code) for code in CATALOGUE[bucket] if POLICY.rule_of(code).xid_class != USUAL[bucket]]
    assert all(rule.why for rule in different)
    assert {rule.code for rule in different} <= {43, 109, 155}


@pytest.mark.parametrize(
    ("code", "xid_class"),
    [
        *((code, APPLICATION) for code in (13, 31, 43, 45, 68, 69, 94)),
        *((code, REPORT) for code in (63, 92, 154)),
        *((code, FATAL) for code in (48, 62, 64, 74, 79, 95, 119, 120, 140, 143)),
        *((code, SUSPECT) for code in (61, 109, 173, 999, 2**31)),
    ],
)
def test_where_the_sources_disagree(code: int, xid_class: XidClass) -> None:
    """The codes on which NVIDIA's plugin, its catalogue and DCGM differ have the class that was decided on."""
    assert POLICY.rule_of(code).xid_class is xid_class


def test_every_rule_can_be_told_to_a_person() -> None:
    """Each rule has a meaning in words that fits behind a colon, and what a GPU needs fits its class."""
    for rule in RULES:
        assert rule.meaning
        assert not rule.meaning.endswith(".")
        assert (rule.repair is Repair.NONE) or rule.xid_class in {SUSPECT, FATAL}
        assert (rule.xid_class is not FATAL) or rule.repair >= Repair.RESET
        assert not rule.calls_may_hang or rule.code in {119, 120}


def test_follow_ups() -> None:
    """A doubt and a changed recovery action ask the driver at once; a program's error asks the MPS daemon."""
    assert {code for code in (13, 63, 79, 94, 109, 154, 999) if POLICY.rule_of(code).asks_the_driver} == {109, 154, 999}
    assert {code for code in (13, 63, 79, 94, 109, 154, 999) if POLICY.rule_of(code).asks_mps} == {13, 94}


def test_overrides_replace_the_class() -> None:
    """A code takes the class that the setting gives it, says so, and needs no repair once it is harmless."""
    policy = XidPolicy(parse_overrides('{"fatal": [13, 777], "report": [119], "application": [48, 109]}'))
    assert [policy.rule_of(code).xid_class for code in (13, 777, 119, 48, 109)] == [
        *(FATAL, FATAL, REPORT, APPLICATION, APPLICATION)
    ]
    assert [policy.rule_of(code).repair for code in (13, 777, 119, 48)] == [Repair.RESET, Repair.RESET, 0, 0]
    assert not policy.rule_of(119).calls_may_hang
    assert policy.rule_of(13).why == "set to fatal on this node; the catalogue's class is application"
    assert policy.rule_of(79) == POLICY.rule_of(79)


def test_saying_what_is_so_already_changes_nothing() -> None:
    """An override that repeats the catalogue leaves the rule, its repair and its reason as they are."""
    policy = XidPolicy(parse_overrides('{"fatal": [79, 119], "application": [94]}'))
    assert [policy.rule_of(code) for code in (79, 119, 94)] == [POLICY.rule_of(code) for code in (79, 119, 94)]


@pytest.mark.parametrize("text", ["", "  \n", "{}", '{"fatal": []}'])
def test_nothing_set(text: str) -> None:
    """An empty setting overrides nothing."""
    assert parse_overrides(text) == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"fatal": [48], "report": [48]}', "48 is in both 'fatal' and 'report'; a code has one class"),
        ('{"ignore": [48]}', "'ignore' is no class that can be set; allowed: 'fatal', 'report', 'application'"),
        ('{"suspect": [48]}', "'suspect' is no class that can be set"),
        ('{"ignore": []}', "'ignore' is no class"),
        ('{"fatal": 48}', r"'fatal' must be a list of codes, such as \[48, 79\]; given 48"),
        ('{"fatal": ["48"]}', "'fatal' holds '48'; a code is a whole number above 0"),
        ('{"fatal": [48.0]}', "'fatal' holds 48.0"),
        ('{"fatal": [true]}', "'fatal' holds True"),
        ('{"fatal": [0]}', "'fatal' holds 0"),
        ('{"fatal": [-1]}', "'fatal' holds -1"),
        ('{"fatal": [4294967296]}', "'fatal' holds 4294967296"),
        ('{"fatal": [1], "fatal": [2]}', "'fatal' is there twice; put all its codes into one list"),
        ("[48]", "expected {"),
        ("48,79", "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_refused_in_words(text: str, words: str) -> None:
    """A setting that cannot be meant is refused with what was given and what is allowed."""
    with pytest.raises(InvalidText, match=words) as refusal:
        parse_overrides(text)
    assert str(refusal.value).startswith("XID classes")
    assert len(str(refusal.value)) < 300


def test_settings_file_is_read_like_json() -> None:
    """A document that was parsed already gives the same as its JSON."""
    document = {"fatal": [109], "report": [48, 48]}
    assert overrides_of(document) == parse_overrides(json.dumps(document)) == {109: FATAL, 48: REPORT}


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_any_codes_are_taken_or_refused(codes: object) -> None:
    """Whatever stands where the codes should be is read or refused, and never an error of another kind."""
    means_codes = isinstance(codes, list) and all(type(code) is int and 0 < code < 2**32 for code in codes)
    with nullcontext() if means_codes else pytest.raises(InvalidText, match="'fatal'"):
        assert overrides_of({"fatal": codes}) == dict.fromkeys(codes if isinstance(codes, list) else [], FATAL)
