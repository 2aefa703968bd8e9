"""What kubelet is answered: preference, check, environment."""

from dataclasses import replace

import pytest

from cta_group_core.errors import DoesNotFit, InvalidText, RequestNotAllowed
from cta_group_core.health.evidence import ResetEvidence
from cta_group_core.health.inputs import PollOk, ResetSeen, Seen, Suspected, XidSeen
from cta_group_core.ids import GroupId
from cta_group_core.profiles import PROFILES
from cta_group_plugin.allocation import (
    check_clients,
    check_start,
    checked_gpus,
    clients_allowed,
    largest_fractions,
    parse_ids,
    preferred_ids,
)
from cta_group_plugin.answers import ContainerAnswer, Rules, answer_for
from cta_group_plugin.inventory import Offer
from cta_group_plugin.ledger import Holder, HolderKind
from cta_group_plugin.settings import EnforcementSettings
from plugin_values import RULES, faults, groups, node_of, offer, uuid_of

PIPE = f"/run/cta-group/mps/{uuid_of(0)}/pipe"


def answer(made: Offer, ids: frozenset[GroupId], rules: Rules = RULES) -> ContainerAnswer:
    """Return the answer for ``ids`` on a healthy node."""
    return answer_for(checked_gpus(made, {}, ids), ids, rules)


def enforcing(*, compute: bool, memory: bool) -> Rules:
    """Return the rules with these switches."""
    return replace(RULES, enforcement=EnforcementSettings(compute=compute, memory=memory))


def holder(ids: frozenset[GroupId], kind: HolderKind = HolderKind.LISTED) -> Holder:
    """Return somebody who holds ``ids``."""
    return Holder(kind, ids, frozenset(group_id.gpu for group_id in ids))


def test_quarter_of_an_h100() -> None:
    """32 groups of an H100 are 25 % of its SMs and a quarter of its memory less the reserve."""
    assert answer(offer(1), groups(0, range(32))).environment == {
        "NVIDIA_VISIBLE_DEVICES": uuid_of(0),
        "CUDA_MPS_PIPE_DIRECTORY": PIPE,
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"{uuid_of(0)}=19996M",
        "CTA_GROUP_GPU_UUID": uuid_of(0),
        "CTA_GROUP_COUNT": "32",
        "CTA_GROUP_CAPACITY": "128",
        "CTA_GROUP_SM_COUNT": "32",
        "CTA_GROUP_MEMORY_MIB": "19996",
    }


def test_fraction_sees_the_pipe_folder_at_the_same_path() -> None:
    """The daemon's sockets are mounted, read-only, where the environment says they are."""
    assert [str(path) for path in answer(offer(1), groups(0, range(8))).read_only_mounts] == [PIPE]


def test_whole_gpu_has_no_mps() -> None:
    """A whole GPU gets every SM, no limit and no mount."""
    whole = answer(offer(1), groups(0, range(128)))
    assert whole.environment["NVIDIA_VISIBLE_DEVICES"] == uuid_of(0)
    assert whole.environment["CTA_GROUP_SM_COUNT"] == "132"
    assert not [name for name in whole.environment if name.startswith("CUDA_")]
    assert whole.read_only_mounts == ()


def test_two_whole_gpus_are_named_in_order_of_index() -> None:
    """Several whole GPUs come with all their UUIDs and their sums."""
    both = answer(offer(3), groups(2, range(128)) | groups(1, range(128)))
    assert both.environment["NVIDIA_VISIBLE_DEVICES"] == f"{uuid_of(1)},{uuid_of(2)}"
    assert both.environment["CTA_GROUP_COUNT"] == "256"
    assert both.environment["CTA_GROUP_SM_COUNT"] == "264"


@pytest.mark.parametrize(
    ("compute", "memory", "limits"),
    [
        (True, True, {"PIPE_DIRECTORY", "ACTIVE_THREAD_PERCENTAGE", "PINNED_DEVICE_MEM_LIMIT"}),
        (True, False, {"PIPE_DIRECTORY", "ACTIVE_THREAD_PERCENTAGE"}),
        (False, True, {"PIPE_DIRECTORY", "PINNED_DEVICE_MEM_LIMIT"}),
        (False, False, set()),
    ],
)
def test_each_limit_can_be_switched_off(compute: bool, memory: bool, limits: set[str]) -> None:  # noqa: FBT001 - a table
    """Only the limits that are on are set; with both off nothing of MPS is left, not even the mount."""
    given = answer(offer(1), groups(0, range(32)), enforcing(compute=compute, memory=memory))
    names = {name.removeprefix("CUDA_MPS_") for name in given.environment if name.startswith("CUDA_")}
    assert names == limits
    assert bool(given.read_only_mounts) == bool(limits)


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_no_variable_is_one_that_breaks_programs(name: str) -> None:
    """CUDA_VISIBLE_DEVICES with a UUID kills older vLLM, and VLLM_* belongs to vLLM."""
    made = offer(1, name)
    ids = groups(0, range(made.served[0].units.minimum))
    given = answer(made, ids).environment
    assert not {"CUDA_VISIBLE_DEVICES"} & given.keys()
    assert not [variable for variable in given if variable.startswith("VLLM_")]


def test_preference_is_the_fullest_gpu_that_fits() -> None:
    """Of a GPU with 40 free, one with 96 free and an empty one, 32 groups go to the first."""
    made = offer(3)
    free = [*groups(0, range(32, 128)), *groups(1, range(88, 128)), *groups(2, range(128))]
    chosen = preferred_ids(made, (), available=map(str, free), must_include=(), groups=32)
    assert parse_ids(made, chosen) == groups(1, range(88, 120))


def test_preference_leaves_closed_gpus_out() -> None:
    """A GPU that nothing new goes to is not chosen, although kubelet still offers it."""
    made = offer(2)
    chosen = preferred_ids(made, {uuid_of(0)}, available=made.ids, must_include=(), groups=8)
    assert parse_ids(made, chosen) == groups(1, range(8))


def test_preference_ignores_ids_it_does_not_know() -> None:
    """Devices of a GPU that is gone do not disturb."""
    made = offer(1)
    chosen = preferred_ids(made, (), available=[*map(str, groups(9, range(8))), *made.ids], must_include=(), groups=8)
    assert parse_ids(made, chosen) == groups(0, range(8))


def test_refusal_tells_asked_free_and_fit() -> None:
    """96 groups while every GPU has 64 free are refused with all three numbers."""
    made = offer(8)
    free = [str(group_id) for index in range(8) for group_id in groups(index, range(64))]
    with pytest.raises(DoesNotFit) as refused:
        preferred_ids(made, (), available=free, must_include=(), groups=96)
    assert str(refused.value) == (
        "asked for 96 groups, but no GPU has room: free per GPU: GPU 0-7: 64 of 128 each; "
        "the largest request that fits now is 64 on one GPU"
    )


def test_twelve_groups_of_an_h100_are_never_allowed() -> None:
    """A size off the step is refused with the sizes that are allowed."""
    with pytest.raises(RequestNotAllowed, match="ask for 8 to 128 in steps of 8"):
        checked_gpus(offer(1), {}, groups(0, range(12)))


def test_groups_on_two_gpus_are_refused() -> None:
    """A set that kubelet filled up at random is never accepted."""
    with pytest.raises(RequestNotAllowed, match="several GPUs"):
        checked_gpus(offer(2), {}, groups(0, range(16)) | groups(1, range(16)))


def test_groups_of_an_unhealthy_gpu_are_refused_with_its_reason() -> None:
    """The reason of the GPU reaches the pod."""
    with pytest.raises(DoesNotFit, match="is unhealthy: XID 48"):
        checked_gpus(offer(1), faults(0, XidSeen(48)), groups(0, range(8)))


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ((Suspected("memory of an ended process"),), "is suspect: memory of an ended process"),
        ((XidSeen(48), ResetSeen(ResetEvidence.BOOT), PollOk()), "is recovering: XID 48"),
    ],
)
def test_gpu_that_is_held_back_is_allocated_and_not_started(seen: tuple[Seen, ...], words: str) -> None:
    """What may get better does not fail a pod: its container waits before it starts, with the reason."""
    gpus = checked_gpus(offer(1), faults(0, *seen), groups(0, range(8)))
    with pytest.raises(DoesNotFit, match=words):
        check_start(gpus, faults(0, *seen))


def test_healthy_gpu_is_started_on() -> None:
    """A fault of one GPU holds no container of another one back."""
    check_start(checked_gpus(offer(2), faults(0, XidSeen(48)), groups(1, range(8))), faults(0, XidSeen(48)))


def test_text_that_is_no_group_is_refused() -> None:
    """An id of another form names itself in the error."""
    with pytest.raises(InvalidText, match="g3-017"):
        parse_ids(offer(1), ["g3-017"])


def test_more_clients_than_allowed_are_refused_with_the_number() -> None:
    """The third container on a GPU for two is refused; on another GPU it is not."""
    made = offer(2)
    holders = [holder(groups(0, range(8))), holder(groups(0, range(8, 16)), HolderKind.GRANTED)]
    with pytest.raises(DoesNotFit, match=r"has 2 containers, and no more than 2 may share a GPU"):
        check_clients(made.served[0], groups(0, range(16, 24)), holders, 2)
    check_clients(made.served[1], groups(1, range(8)), holders, 2)


@pytest.mark.parametrize(
    ("setting", "cuda", "allowed"), [(0, None, 48), (0, "13.0", 48), (0, "13.1", 60), (0, "?", 48), (7, "13.1", 7)]
)
def test_the_driver_says_how_many_may_share_a_gpu(setting: int, cuda: str | None, allowed: int) -> None:
    """An MPS server takes 48 clients up to CUDA 13.0 and 60 later; a setting goes before."""
    assert clients_allowed(setting, replace(node_of(1), cuda_version=cuda)) == allowed
    assert clients_allowed(0, None) == 48


def test_pod_that_reuses_groups_is_not_a_second_client() -> None:
    """An app container with the groups of its init container does not count twice."""
    holders = [holder(groups(0, range(16)), HolderKind.GRANTED)]
    check_clients(offer(1).served[0], groups(0, range(8)), holders, 1)


def test_largest_share_of_each_shared_gpu() -> None:
    """Whole GPUs and groups that nobody is known to use demand nothing of a daemon."""
    holders = [
        holder(groups(0, range(8))),
        holder(groups(0, range(32, 64))),
        holder(groups(1, range(128))),
        holder(groups(2, range(64)), HolderKind.UNEXPLAINED),
    ]
    assert largest_fractions(offer(3), holders) == {uuid_of(0): 32}
