"""Which GPUs are served and why others are withheld."""

from dataclasses import replace

from cta_group_core.units import ComputeCapability, SmCountSources
from cta_group_plugin.inventory import offer_of
from cta_group_plugin.ports import GpuFacts
from plugin_values import RESERVE_MIB, gpu, inventory, offer, uuid_of, without_memory


def withheld_reason(facts: GpuFacts) -> str:
    """Return why the only GPU of a node is withheld."""
    made = offer_of(inventory(facts), reserve_mib=RESERVE_MIB)
    assert made.served == ()
    return made.withheld[0].reason


def test_eight_h100_offer_1024_groups_in_a_stable_order() -> None:
    """Groups are listed GPU by GPU in order of index, and their text form is the one kubelet records."""
    texts = list(offer(8).ids)
    assert len(texts) == 1024
    assert texts[:2] == [f"{uuid_of(0)}::0", f"{uuid_of(0)}::1"]
    assert texts[-1] == f"{uuid_of(7)}::127"


def test_order_follows_the_index_and_not_the_order_of_the_driver() -> None:
    """GPUs that the driver lists in another order are offered by index all the same."""
    made = offer_of(inventory(gpu(2), gpu(0), gpu(1)), reserve_mib=RESERVE_MIB)
    assert [served.facts.index for served in made.served] == [0, 1, 2]


def test_slack_sms_are_not_offered() -> None:
    """An H100 has 132 SMs and offers 128 groups."""
    served = offer(1).served[0]
    assert (served.units.sm_count, served.units.capacity) == (132, 128)


def test_gpu_in_mig_mode_is_withheld_and_the_others_serve() -> None:
    """MIG takes one GPU out and says how to get it back."""
    made = offer_of(inventory(gpu(0), replace(gpu(1), mig_enabled=True)), reserve_mib=RESERVE_MIB)
    assert [served.facts.index for served in made.served] == [0]
    assert "switch MIG off" in made.withheld[0].reason


def test_pending_mig_mode_changes_nothing_yet() -> None:
    """A GPU whose MIG mode waits for a reset works as before, its tenants too; it is told as a notice."""
    assert len(offer_of(inventory(replace(gpu(), mig_pending=True)), reserve_mib=RESERVE_MIB).served) == 1


def test_unknown_compute_capability_is_withheld() -> None:
    """The granularity of a GPU newer than this program is never guessed."""
    reason = withheld_reason(replace(gpu(), capability=ComputeCapability(99, 0)))
    assert "compute capability 99.0 is not known" in reason


def test_disagreeing_sm_sources_are_withheld() -> None:
    """Two sources that count different SMs leave no number to sell."""
    reason = withheld_reason(replace(gpu(), sm_sources=SmCountSources(profile_sms=130, cuda_cores=16896)))
    assert "130" in reason
    assert "132" in reason


def test_unknown_memory_is_withheld() -> None:
    """Without a memory size there is no share of it."""
    assert "memory" in withheld_reason(without_memory(gpu()))


def test_reserve_that_eats_the_memory_is_withheld() -> None:
    """A GPU smaller than the reserve offers nothing, and the sentence names both numbers."""
    reason = withheld_reason(replace(gpu(), memory_total_mib=1000))
    assert "1000 MiB" in reason
    assert "1024 MiB" in reason
