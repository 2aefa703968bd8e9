"""Versions are read as they are written, and what each backend and image needs of them is what was published."""

import pytest

from cta_group_core.compatibility.enforcement import (
    Backend,
    missing_of_driver,
    missing_of_gpu,
    most_mps_clients,
)
from cta_group_core.compatibility.images import image_cuda, least_driver_release
from cta_group_core.compatibility.versions import CudaVersion, DriverVersion, KubernetesVersion, parsed_or_none
from cta_group_core.errors import InvalidText
from cta_group_core.units import ComputeCapability

HOPPER, AMPERE, VOLTA, PASCAL = (ComputeCapability.parse(text) for text in ("9.0", "8.0", "7.0", "6.1"))


def test_versions_compare_as_numbers() -> None:
    """580.95 is older than 580.159, and 12.10 newer than 12.9."""
    assert DriverVersion.parse("580.95.05") < DriverVersion.parse("580.159.04") < DriverVersion.parse("615.10")
    assert CudaVersion.parse("12.9") < CudaVersion.parse("12.10") < CudaVersion.parse("13.0")
    assert KubernetesVersion.parse("v1.37.2") == KubernetesVersion.parse("v1.37.0+k3s1") == KubernetesVersion(1, 37)
    assert str(CudaVersion.parse("13.0")) == "13.0"
    assert str(KubernetesVersion.parse("1.36")) == "1.36"


@pytest.mark.parametrize("text", ["", "580", "R580.1", "580.159.04.1", "580.x", "580.159.04\n", "٥٨٠.1"])
def test_texts_that_are_no_driver_version(text: str) -> None:
    """A text of another form is refused with an example."""
    with pytest.raises(InvalidText, match=r"must look like 580\.159\.04"):
        DriverVersion.parse(text)
    assert parsed_or_none(DriverVersion.parse, text) is None


@pytest.mark.parametrize("text", ["", "13", "13.0.1", "013.0", "13.x"])
def test_texts_that_are_no_cuda_version(text: str) -> None:
    """The same for CUDA."""
    with pytest.raises(InvalidText, match=r"must look like 13\.0"):
        CudaVersion.parse(text)


@pytest.mark.parametrize("text", ["", "latest", "v1", "1.37x"])
def test_texts_that_are_no_kubernetes_version(text: str) -> None:
    """The same for Kubernetes, except that what follows the version is each distribution's own."""
    assert (parsed_or_none(KubernetesVersion.parse, text) is None) is (text != "1.37x")


def test_nothing_told_is_no_version() -> None:
    """A version that nobody told is None."""
    assert parsed_or_none(CudaVersion.parse, None) is None


@pytest.mark.parametrize(
    ("cuda", "clients"), [(None, 48), ("12.4", 48), ("13.0", 48), ("13.1", 60), ("13.4", 60), ("14.0", 60)]
)
def test_most_mps_clients(cuda: str | None, clients: int) -> None:
    """One GPU's MPS server takes 48 clients up to CUDA 13.0 and 60 from 13.1 on."""
    assert most_mps_clients(parsed_or_none(CudaVersion.parse, cuda)) == clients


@pytest.mark.parametrize(
    ("driver", "cuda", "capability", "backends"),
    [
        ("535.10", "12.2", VOLTA, ["percentage"]),
        ("580.159.04", "13.0", HOPPER, ["percentage"]),
        ("590.48.01", "13.1", HOPPER, ["percentage", "partitions"]),
        ("590.48.01", "13.1", VOLTA, ["percentage"]),
        ("615.71.01", "13.4", HOPPER, ["percentage", "partitions", "namespaces"]),
        ("615.71.01", "13.3", AMPERE, ["percentage", "partitions"]),
        ("615.71.01", None, AMPERE, ["percentage", "partitions", "namespaces"]),
        ("615.71.01", "13.4", PASCAL, []),
        (None, None, HOPPER, ["percentage", "partitions", "namespaces"]),
    ],
)
def test_backends_of_a_gpu(
    driver: str | None, cuda: str | None, capability: ComputeCapability, backends: list[str]
) -> None:
    """Partitions need R590 and Ampere, namespaces R615; percentages Volta. What is untold is not missing."""
    release, version = parsed_or_none(DriverVersion.parse, driver), parsed_or_none(CudaVersion.parse, cuda)
    lacking = {one: (missing_of_driver(one, release, version), missing_of_gpu(one, capability)) for one in Backend}
    assert [one for one, missing in lacking.items() if not any(missing)] == backends


def test_what_is_missing_is_said() -> None:
    """What keeps a backend from working is told with what there is."""
    driver, cuda = DriverVersion.parse("580.159.04"), CudaVersion.parse("13.0")
    assert missing_of_driver(Backend.NAMESPACES, driver, cuda) == (
        "driver R615 or newer (here R580)",
        "CUDA 13.4 or newer in the driver (here 13.0)",
    )
    assert missing_of_driver(Backend.PERCENTAGE, driver, cuda) == ()
    assert missing_of_driver(Backend.PARTITIONS, None, None) == ()
    assert missing_of_gpu(Backend.PARTITIONS, VOLTA) == "compute capability 8.0 or newer (here 7.0)"
    assert missing_of_gpu(Backend.PARTITIONS, AMPERE) == ""


@pytest.mark.parametrize(
    ("image", "cuda"),
    [
        ("vllm/vllm-openai:v0.20.0", "13.0"),
        ("vllm/vllm-openai:v0.27.1", "13.0"),
        ("registry.example:5000/vllm/vllm-openai:v0.20.2-cu129@sha256:00", "12.9"),
        ("vllm/vllm-openai:v0.19.1-cu130", "13.0"),
        ("vllm/vllm-openai:v0.9.0", "12.8"),
        ("vllm/vllm-openai:v0.5.0", "12.4"),
        ("vllm/vllm-openai:v0.19.1", None),
        ("vllm/vllm-openai:v0.9.1", None),
        ("vllm/vllm-openai:latest", None),
        ("vllm/vllm-openai", None),
        ("vllm/vllm-openai@sha256:00", None),
        ("mycompany/serving:v0.27.1", None),
        ("mycompany/serving:v0.27.1-cu129", None),
    ],
)
def test_cuda_of_an_image(image: str, cuda: str | None) -> None:
    """An image's CUDA is what its tag says, or what was published for its version; nothing is guessed."""
    assert image_cuda(image) == parsed_or_none(CudaVersion.parse, cuda)


def test_drivers_by_the_major_of_cuda() -> None:
    """One driver release runs all programs of a CUDA major; for a major that is not published none is named."""
    versions = [CudaVersion.parse(text) for text in ("11.8", "12.0", "12.9", "13.0", "13.5", "14.0", "10.2")]
    assert [least_driver_release(version) for version in versions] == [450, 525, 525, 580, 580, None, None]
