"""The A100's largest MIG instance has fewer SMs than the GPU; the SM count must not come from there."""

import pytest

from cta_group_core.errors import SmCountConflict, SmCountUnknown
from cta_group_core.units import ComputeCapability, SmCountSources, sm_count_of

AMPERE = ComputeCapability(8, 0)
HOPPER = ComputeCapability(9, 0)


def test_a100_has_the_sms_of_its_cores() -> None:
    """An A100 has 108 SMs although its largest instance has 98."""
    assert sm_count_of(AMPERE, SmCountSources(profile_sms=98, cuda_cores=6912)) == 108


def test_ampere_without_cores_is_not_guessed() -> None:
    """On Ampere the profile alone is no source, so the GPU is refused."""
    with pytest.raises(SmCountUnknown):
        sm_count_of(AMPERE, SmCountSources(profile_sms=98, cuda_cores=None))


def test_from_hopper_on_both_sources_must_agree() -> None:
    """An H100 whose profile says fewer SMs than its cores is refused, with both numbers told."""
    with pytest.raises(SmCountConflict, match="98 by the whole-GPU instance profile, 132 by the CUDA cores"):
        sm_count_of(HOPPER, SmCountSources(profile_sms=98, cuda_cores=16896))


def test_from_hopper_on_the_profile_alone_is_enough() -> None:
    """A Hopper GPU that does not tell its cores has the SMs of its largest instance."""
    assert sm_count_of(HOPPER, SmCountSources(profile_sms=132, cuda_cores=None)) == 132
