"""What a CTAWorkload shows of its vLLM server: what was found, the memory of its slice, whether its arguments fit."""

import pytest

from cta_group_core.nodes import ConditionStatus
from cta_group_core.units import GpuUnits
from cta_group_core.vllm.account import args_condition, condition_of_annotations, server_status
from cta_group_core.vllm.detect import ContainerFacts, detect
from cta_group_core.vllm.gpu import GpuKind
from cta_group_core.vllm.judge import Case

H100 = GpuKind("NVIDIA H100 80GB HBM3", 81079, 1024, GpuUnits(132, 128, 8, 8), limits_memory=True)
T4 = GpuKind("Tesla T4", 15360, 1024, GpuUnits(40, 40, 2, 2), limits_memory=True)
MODEL = "--model=Qwen/Qwen3-4B"
IMAGE = "vllm/vllm-openai:v0.27.1"


def a_case(*args: str, groups: int = 32, command: tuple[str, ...] = (), kinds: tuple[GpuKind, ...] = (H100,)) -> Case:
    """Return a server with these arguments."""
    found = detect([ContainerFacts("vllm", IMAGE, command, args)], {}).found
    assert found is not None
    return Case(found, groups, kinds)


def test_what_is_shown_of_a_server() -> None:
    """Engine, version, the arguments that decide, their form, and the memory plan of each product."""
    status = server_status(a_case(MODEL, "--max-model-len", "8192", "--api-key=secret"))
    assert (status.engine, status.version, status.container) == ("vLLM", "0.27.1", "vllm")
    assert status.arguments == ("--model=Qwen/Qwen3-4B", "--max-model-len=8192")
    assert status.arguments_form == "list"
    (plan,) = status.memory
    assert (plan.product, plan.slice_mib, plan.context_mib) == (H100.product, 20013, 148)
    assert plan.weights_mib is not None
    assert plan.cache_mib is not None
    used = float(plan.utilization) * 81079 + plan.context_mib + plan.reserve_mib
    assert plan.slice_mib - 9 < used <= plan.slice_mib
    assert plan.weights_mib + plan.cache_mib < float(plan.utilization) * 81079


def test_no_plan_where_there_is_no_room_or_no_limit() -> None:
    """A slice too small for vLLM and a whole GPU have no plan; a model without a known size has no weights."""
    assert server_status(a_case(MODEL, groups=2, kinds=(T4,))).memory == ()
    assert server_status(a_case(groups=128)).memory == ()
    (plan,) = server_status(a_case("--model=/models/mine")).memory
    assert (plan.weights_mib, plan.cache_mib) == (None, None)


SET = "--gpu-memory-utilization=0.2071 --max-num-seqs=256 --max-num-batched-tokens=2048 --max-model-len=auto"


@pytest.mark.parametrize(
    ("case", "mode", "status", "reason", "begins"),
    [
        (a_case(MODEL), "on", "True", "Changed", f"set when a pod is admitted: {SET}"),
        (a_case(MODEL), "report", "False", "ReportedOnly", f"alignment is report; they would be changed to: {SET}"),
        (a_case(MODEL), "off", "False", "AlignmentOff", f"alignment is off; they would be changed to: {SET}"),
        (a_case(MODEL, "--gpu-memory-utilization=0.15"), "on", "True", "Fit", "they fit the slice as they are"),
        (a_case(MODEL, "--gpu-memory-utilization=0.15"), "off", "True", "Fit", "they fit the slice as they are"),
        (a_case(MODEL, groups=128), "on", "True", "WholeGpu", "whole GPUs have all their memory; nothing is changed"),
        (
            a_case(MODEL, groups=2, kinds=(T4,)),
            "on",
            "False",
            "SliceTooSmall",
            "2 groups of Tesla T4 (716 of 15360 MiB): ",
        ),
        (a_case(MODEL, kinds=()), "on", "Unknown", "NoGpuKnown", "no GPU of this cluster is known yet"),
        (a_case(MODEL, "-tp=2"), "on", "False", "Refused", "vLLM asks for tensor parallel size 2, "),
        (
            a_case("vllm serve Qwen/Qwen3-4B", command=("sh", "-c")),
            "on",
            "False",
            "ArgsNotPatchable",
            "the arguments are inside a shell string, which is never edited; add ",
        ),
    ],
)
def test_whether_the_arguments_fit(case: Case, mode: str, status: str, reason: str, begins: str) -> None:
    """False wherever a server of the template would not start, or not as it should, with what to do."""
    found = args_condition(case, mode=mode)
    assert (found.type, found.status.value, found.reason) == ("ArgsAligned", status, reason)
    assert found.message
    assert found.message.startswith(begins)


def test_words_that_name_the_flags_to_add() -> None:
    """Arguments that are never edited are told with the flags that they lack."""
    found = args_condition(a_case("vllm serve Qwen/Qwen3-4B", command=("sh", "-c")), mode="on")
    assert found.message.endswith(f"; add {SET} to vLLM's arguments"), found.message


@pytest.mark.parametrize(
    ("alignment", "advice", "expected"),
    [
        ("", "", None),
        ("nonsense", "", None),
        ('[{"flag": "--x", "from": null, "to": "1", "why": "w"}]', "", (ConditionStatus.TRUE, "--x=1")),
        ("", "a shell string; add --x=1", (ConditionStatus.FALSE, "a shell string; add --x=1")),
    ],
)
def test_what_admission_wrote_on_a_pod(
    alignment: str, advice: str, expected: tuple[ConditionStatus, str] | None
) -> None:
    """A pod that no known template made is told by its annotations; those that are not ours say nothing."""
    found = condition_of_annotations(alignment, advice)
    assert (found and (found.status, found.message.removeprefix("set when the pod was admitted: "))) == expected
