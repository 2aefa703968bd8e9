"""Which GPUs are ours, and what people know better than the driver."""

from dataclasses import replace

import pytest

from cta_group_core.errors import InvalidText
from cta_group_core.names import LEFT_OUT
from cta_group_core.units import ComputeCapability, Granularity, SmCountSources
from cta_group_plugin.gpu_choice import GpuChoice, GpuName, GpuOverride, parse_names, parse_overrides
from cta_group_plugin.inventory import Offer, offer_of
from cta_group_plugin.report import WithheldCause
from plugin_values import RESERVE_MIB, gpu, inventory, uuid_of, without_memory

TWO = inventory(gpu(0, "t4"), gpu(1, "h100-sxm"))
UNKNOWN_KIND = replace(gpu(0), capability=ComputeCapability(99, 0))


def chosen(choice: GpuChoice, **owners: str) -> Offer:
    """Return what a node with a T4 and an H100 offers; ``owners`` by ``gpu0`` and ``gpu1``."""
    named = {uuid_of(int(name[-1])): owner for name, owner in owners.items()}
    return offer_of(TWO, reserve_mib=RESERVE_MIB, choice=choice, owners=named)


def served(offer: Offer) -> list[int]:
    """Return the indexes of the GPUs that are offered."""
    return [each.facts.index for each in offer.served]


@pytest.mark.parametrize("text", [uuid_of(1), "1", "H100", "nvidia h100", "NVIDIA H100 80GB HBM3"])
def test_name_means_one_gpu(text: str) -> None:
    """By UUID, index, or whole words of the product in any case."""
    assert [facts.index for facts in TWO.gpus if GpuName.parse(text).means(facts)] == [1]


@pytest.mark.parametrize("text", ["10", "H10", "100", uuid_of(7), "A100"])
def test_name_means_no_gpu(text: str) -> None:
    """A part of a word is not the word, nor a number of the product an index."""
    assert not [facts for facts in TWO.gpus if GpuName.parse(text).means(facts)]


@pytest.mark.parametrize("text", ["", "  ", "MIG-5", "GPU-", "GPU-a/b"])
def test_names_that_name_no_gpu_are_refused(text: str) -> None:
    """MIG devices are not served, so naming one is a mistake."""
    with pytest.raises(InvalidText):
        GpuName.parse(text)


def test_lists_of_names() -> None:
    """Separated by commas; nothing is no name."""
    assert [str(name) for name in parse_names(f"0, H100,{uuid_of(3)}")] == ["0", "H100", uuid_of(3)]
    assert parse_names(" ") == ()
    with pytest.raises(InvalidText):
        parse_names("0,,1")


def test_excluded_gpu_is_withheld_by_name() -> None:
    """The reason says which setting and which name."""
    offer = chosen(GpuChoice(exclude=parse_names("T4")))
    assert served(offer) == [1]
    assert offer.withheld[0].reason == "left out by the setting gpus.exclude (T4)"
    assert offer.withheld[0].cause is WithheldCause.EXCLUDED


def test_included_gpus_are_the_only_ones() -> None:
    """And an exclusion wins over an inclusion."""
    offer = chosen(GpuChoice(include=parse_names("1")))
    assert served(offer) == [1]
    assert offer.withheld[0].reason.startswith(LEFT_OUT), "so that a doctor takes it for meant"
    assert served(chosen(GpuChoice(include=parse_names("0,1"), exclude=parse_names("1")))) == [0]


def test_gpu_of_another_plugin_is_withheld_unless_it_is_claimed() -> None:
    """Two plugins never hand out one GPU; a name in gpus.include says whose it is."""
    offer = chosen(GpuChoice(), gpu1="nvidia.com/gpu")
    assert served(offer) == [0]
    assert offer.withheld[0].cause is WithheldCause.OTHER_PLUGIN
    assert "serves this GPU as nvidia.com/gpu" in offer.withheld[0].reason
    assert "gpus.include" in offer.withheld[0].reason
    assert served(chosen(GpuChoice(include=parse_names("H100,T4")), gpu1="nvidia.com/gpu")) == [0, 1]


def test_overrides_replace_what_the_driver_says() -> None:
    """SM count and memory, for the GPUs that are meant; the first that means a GPU counts."""
    overrides = parse_overrides(
        '[{"gpu": "H100", "smCountOverride": 64, "memoryMiBOverride": 5000}, {"gpu": "1", "smCountOverride": 8}]'
    )
    offer = chosen(GpuChoice(overrides=overrides))
    assert (offer.served[1].units.sm_count, offer.served[1].units.capacity) == (64, 64)
    assert offer.served[1].memory_total_mib == 5000
    assert offer.served[0].units.capacity == 40


def test_conflict_of_sources_is_settled_by_an_override() -> None:
    """The GPU that was refused for two different counts serves the one that people say."""
    torn = inventory(replace(gpu(), sm_sources=SmCountSources(profile_sms=130, cuda_cores=16896)))
    override = GpuOverride(GpuName.parse("0"), sm_count=132)
    assert offer_of(torn, reserve_mib=0, choice=GpuChoice(overrides=(override,))).served[0].units.capacity == 128


def test_unknown_kind_needs_all_its_sizes() -> None:
    """An SM count alone does not tell which requests the hardware can take."""
    count_only = GpuOverride(GpuName.parse("0"), sm_count=200)
    refused = offer_of(inventory(UNKNOWN_KIND), reserve_mib=0, choice=GpuChoice(overrides=(count_only,)))
    assert "the override for 0 lacks some of them" in refused.withheld[0].reason
    whole = replace(count_only, granularity=Granularity(alignment=16, minimum=16, step=16))
    offer = offer_of(inventory(UNKNOWN_KIND), reserve_mib=0, choice=GpuChoice(overrides=(whole,)))
    assert (offer.served[0].units.capacity, offer.served[0].units.step) == (192, 16)


def test_memory_that_nobody_knows_is_named_with_its_setting() -> None:
    """Whether the GPU shares the host's or the driver is too old, the same setting helps."""
    old = offer_of(inventory(without_memory(gpu())), reserve_mib=0).withheld[0].reason
    assert "the driver does not tell it" in old
    assert "memoryMiBOverride in gpus.overrides" in old
    unified = replace(without_memory(gpu()), shares_host_memory=True)
    assert "shares the memory of the host" in offer_of(inventory(unified), reserve_mib=0).withheld[0].reason


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("{}", "expected"),
        ('[{"smCountOverride": 1}]', "each entry names a GPU"),
        ('[{"gpu": 0, "smCountOverride": 1}]', "each entry names a GPU"),
        ('[{"gpu": "0"}]', "nothing is said of '0'"),
        ('[{"gpu": "0", "smCount": 1}]', "'smCount' is no key"),
        ('[{"gpu": "0", "smCountOverride": 0}]', "from 1 to 1024"),
        ('[{"gpu": "0", "smCountOverride": true}]', "from 1 to 1024"),
        ('[{"gpu": "0", "memoryMiBOverride": 1.5}]', "memoryMiBOverride is 1.5"),
        ('[{"gpu": "0", "step": 8}]', "go together"),
        ('[{"gpu": "MIG-1", "step": 8}]', "go together|must be a UUID"),
    ],
)
def test_overrides_that_cannot_be_meant(text: str, words: str) -> None:
    """Each mistake is a sentence with what was given and what is allowed."""
    with pytest.raises(InvalidText, match=words):
        parse_overrides(text)


def test_no_text_is_no_override() -> None:
    """An unset value of a chart."""
    assert parse_overrides("") == ()
    assert parse_overrides("[]") == ()
