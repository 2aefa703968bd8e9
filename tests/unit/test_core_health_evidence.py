"""What proves that a GPU was repaired, what the driver asks for, and how health outlives the process."""

import ast
import json
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core import compatibility, health
from cta_group_core.errors import InvalidText
from cta_group_core.health.evidence import Epoch, Repair, ResetEvidence, evidence_between
from cta_group_core.health.record import HealthRecord, dump_record, load_record
from cta_group_core.health.recovery_action import recovery_action_of
from cta_group_core.health.state import Fault, FaultKind, GpuState, MpsTrouble
from cta_group_core.ids import GpuUuid

BOOT, LOAD, PERSON = ResetEvidence.BOOT, ResetEvidence.DRIVER_LOAD, ResetEvidence.PERSON
NOW = Epoch(boot_id="b1", driver_load="d1", repaired="2026-01-02")


@pytest.mark.parametrize(
    ("before", "now", "evidence"),
    [
        (NOW, NOW, ()),
        (Epoch(), NOW, (PERSON,)),
        (NOW, Epoch(), ()),
        (Epoch(boot_id="b0", driver_load="d1"), Epoch(boot_id="b1", driver_load="d1"), (BOOT,)),
        (Epoch(boot_id="b1", driver_load="d0"), Epoch(boot_id="b1", driver_load="d1"), (LOAD,)),
        (Epoch("b0", "d0", "monday"), Epoch("b1", "d1", "tuesday"), (BOOT, PERSON, LOAD)),
        (Epoch(repaired="monday"), Epoch(), ()),
    ],
)
def test_marks_that_differ_are_evidence(before: Epoch, now: Epoch, evidence: tuple[ResetEvidence, ...]) -> None:
    """A mark that is another one proves a repair; one that is not known proves nothing."""
    assert evidence_between(before, now) == evidence


def test_how_much_each_proves() -> None:
    """A boot and a person's word stand for everything, the others for a reset."""
    assert {evidence: evidence.proves for evidence in ResetEvidence} == {
        BOOT: Repair.REBOOT,
        PERSON: Repair.REBOOT,
        LOAD: Repair.RESET,
        ResetEvidence.GPU_UPTIME: Repair.RESET,
    }


@pytest.mark.parametrize(
    ("value", "repair"),
    [(1, Repair.RESET), (2, Repair.REBOOT), (3, 0), (4, Repair.RESET), (5, 0), (6, Repair.RESET), (7, Repair.REBOOT)],
)
def test_recovery_actions(value: int, repair: Repair) -> None:
    """Each value of NVML's field asks for what NVIDIA says it does."""
    action = recovery_action_of(value)
    assert action is not None
    assert action.repair == repair


def test_recovery_actions_from_outside_of_the_table() -> None:
    """Zero asks for nothing; a value of a newer driver asks for something, and says which it is."""
    assert recovery_action_of(0) is None
    unknown = recovery_action_of(42)
    assert unknown is not None
    assert "42" in unknown.asks_for


SECONDS = st.floats(min_value=0, max_value=2e11)
FAULTS = st.lists(st.sampled_from(FaultKind), unique=True).map(lambda kinds: sorted(kinds, key=list(FaultKind).index))


@st.composite
def states(draw: st.DrawFn) -> GpuState:
    """Return any state that can be built."""
    small = st.integers(0, 100)
    return GpuState(
        faults=tuple(
            Fault(
                kind,
                reason=draw(st.text(min_size=1)),
                since=draw(SECONDS),
                latest=draw(SECONDS),
                needs=draw(st.sampled_from(Repair)),
                is_open=draw(st.booleans()),
                calls_may_hang=draw(st.booleans()),
                driver_asks=draw(st.booleans()),
            )
            for kind in draw(FAULTS)
        ),
        clean_polls=draw(small),
        failed_polls=draw(small),
        relapses=draw(small),
        healed_at=draw(st.none() | SECONDS),
        double_bit_errors=draw(st.none() | small),
        mps=draw(st.none() | st.builds(MpsTrouble, st.text(), SECONDS, st.booleans())),
        notice=draw(st.text()),
    )


@given(st.dictionaries(st.integers(0, 7).map(lambda number: GpuUuid(f"GPU-{number}")), states()))
def test_record_survives_the_process(gpus: dict[GpuUuid, GpuState]) -> None:
    """Whatever is known is read back as it was written."""
    record = HealthRecord(NOW, gpus)
    assert load_record(dump_record(record)) == record


GOOD = json.loads(dump_record(HealthRecord(NOW, {GpuUuid("GPU-0"): GpuState()})))
FAULT = {"kind": "xid", "reason": "XID 79", "since": 1.0, "latest": 2.0}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "health record: the text: "),
        ("[]", "health record: the text: "),
        ('{"format": 1}', "health record: epoch: "),
        (json.dumps({**GOOD, "format": 2}), "format 2; this release reads 1"),
        (json.dumps({**GOOD, "gpus": {"MIG-1": {}}}), "MIG-1"),
        (json.dumps({**GOOD, "gpus": {"GPU-1": {"clean_polls": -1}}}), "counters begin at 0"),
        (json.dumps({**GOOD, "gpus": {"GPU-1": {"clean_polls": "3"}}}), r"gpus\.GPU-1\.clean_polls"),
        (json.dumps({**GOOD, "gpus": {"GPU-1": {"clean_polls": True}}}), "must be of type int, not bool"),
        (json.dumps({**GOOD, "gpus": {"GPU-1": {"faults": {}}}}), r"gpus\.GPU-1\.faults: must be a list"),
        (json.dumps({**GOOD, "gpus": {"GPU-1": {"faults": [{**FAULT, "kind": "gone"}]}}}), r"faults\.0\.kind: .*lost"),
        (
            json.dumps({**GOOD, "gpus": {"GPU-1": {"faults": [{**FAULT, "needs": 1.0}]}}}),
            "needs: must be one of 0, 1, 2",
        ),
        (json.dumps({**GOOD, "gpus": {"GPU-1": {"faults": [{**FAULT, "since": 1e300}]}}}), "GPU-1: 1e.300 is no time"),
        (json.dumps({**GOOD, "gpus": {"GPU-1": {"faults": [{**FAULT, "latest": float("nan")}]}}}), "nan is no time"),
        (json.dumps({**GOOD, "gpus": {"GPU-1": {"healed_at": float("inf")}}}), "inf is no time"),
        (json.dumps({**GOOD, "gpus": {"GPU-1": {"healed_at": -1.0}}}), "-1.0 is no time"),
        ("[" * 100_000, "health record: the text: not JSON"),
        (json.dumps({**GOOD, "epoch": []}), "epoch: must be an object"),
        (json.dumps({**GOOD, "surplus": 1}), "surplus"),
    ],
)
def test_records_that_cannot_be_read(text: str, words: str) -> None:
    """A file that is damaged or of another release is refused with the place, not half believed."""
    with pytest.raises(InvalidText, match=words):
        load_record(text)


@pytest.mark.parametrize("package", [health, compatibility])
def test_nothing_looks_at_a_clock_or_the_machine(package: ModuleType) -> None:
    """Time and facts come in as arguments: no module imports what could find them out by itself."""
    sources = [path for folder in package.__path__ for path in Path(folder).glob("*.py")]
    nodes = [node for path in sources for node in ast.walk(ast.parse(path.read_text()))]
    plain = {alias.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    parts = {node.module.split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    allowed = {"collections", "dataclasses", "enum", "functools", "json", "re", "types", "typing"}
    assert len(sources) > 5
    assert plain | parts <= allowed | {"cta_group_core"}
