"""``kubectl cta plan``: what a request would get, from the table of known GPUs. Needs no cluster and starts at once."""

import json
from collections.abc import Mapping

from cta_group_cli.errors import BadInput
from cta_group_cli.exits import Exit
from cta_group_cli.table import table
from cta_group_cli.terminal import say
from cta_group_core.errors import InvalidText, RequestNotAllowed
from cta_group_core.names import DEFAULT_RESOURCE_NAME
from cta_group_core.plan import SlicePlan, plan_slice
from cta_group_core.profiles import PROFILES, GpuProfile, profile_named


def show_plan(gpu: str, groups: int, *, reserve_mib: int, as_json: bool) -> Exit:
    """Print the slice that ``groups`` are on a GPU; raise BadInput where no such slice exists."""
    try:
        profile = profile_named(gpu)
        plan = plan_slice(profile, groups, reserve_mib=reserve_mib)
    except (InvalidText, RequestNotAllowed) as refused:
        raise BadInput(str(refused)) from refused
    say(json.dumps(plan.as_json()) if as_json else _text(plan, profile))
    return Exit.FINE


def _text(plan: SlicePlan, profile: GpuProfile) -> str:
    header = ("GPU", "GROUPS", "CAPACITY", "SMS", "PERCENT", "MEMORY MiB", "MINIMUM", "STEP")
    sms = f"{plan.sm_granted} of {plan.sm_count}"
    row = (plan.gpu, plan.groups, plan.capacity, sms, plan.sm_percent, plan.memory_mib, plan.minimum, plan.step)
    return "\n".join(
        (
            _sentence(plan, profile),
            "",
            table(header, [row]),
            "",
            f"Ask for it with   resources: {{limits: {{{DEFAULT_RESOURCE_NAME}: {plan.groups}}}}}",
        )
    )


def _sentence(plan: SlicePlan, profile: GpuProfile) -> str:
    if plan.groups == plan.capacity:
        return (
            f"All {plan.capacity} groups of one {profile.product}: the whole GPU, all of its {plan.sm_count} SMs, "
            "without MPS and without a memory limit."
        )
    return (
        f"{plan.groups} of the {plan.capacity} groups of one {profile.product}: {plan.sm_granted} SMs "
        f"and {plan.memory_mib} MiB, limited by the driver."
    )


def show_profiles(*, as_json: bool) -> Exit:
    """Print every GPU that a plan can be made for."""
    profiles = [_facts(profile) for profile in PROFILES.values()]
    if as_json:
        say(json.dumps(profiles))
    else:
        header = ("GPU", "PRODUCT", "COMPUTE", "SMS", "CAPACITY", "MINIMUM", "STEP", "MEMORY MiB")
        say(table(header, [tuple(facts.values()) for facts in profiles]))
    return Exit.FINE


def _facts(profile: GpuProfile) -> Mapping[str, str | int]:
    units = profile.units
    return {
        "gpu": profile.name,
        "product": profile.product,
        "computeCapability": str(profile.capability),
        "smCount": units.sm_count,
        "capacity": units.capacity,
        "minimum": units.minimum,
        "step": units.step,
        "memoryMiB": profile.memory_total_mib,
    }
