"""Whether a vLLM image runs on a driver."""

from collections.abc import Iterator

from cta_group_core.compatibility.findings import Finding, Severity
from cta_group_core.compatibility.images import image_cuda, least_driver_release
from cta_group_core.compatibility.versions import CudaVersion, DriverVersion


def image_findings(
    image: str, *, driver: DriverVersion | None, cuda: CudaVersion | None, built_with: CudaVersion | None = None
) -> tuple[Finding, ...]:
    """Return what keeps an image from running on a driver with that version and CUDA.

    ``built_with`` is the image's CUDA where it is known better than by its tag. Nothing is said about an image whose
    CUDA is not known.
    """
    wanted = built_with or image_cuda(image)
    return tuple(_of_cuda(image, wanted, driver, cuda)) if wanted else ()


def _of_cuda(
    image: str, wanted: CudaVersion, driver: DriverVersion | None, cuda: CudaVersion | None
) -> Iterator[Finding]:
    least = least_driver_release(wanted)
    if driver and least and driver.release < least:
        yield Finding(
            Severity.ERROR,
            image,
            f"it is built with CUDA {wanted}, which needs driver R{least} or newer; this node has R{driver.release}",
            f"install R{least} or newer, or use an image of an older CUDA",
        )
    elif cuda and cuda.major < wanted.major:
        yield Finding(
            Severity.ERROR,
            image,
            f"it is built with CUDA {wanted}, and this node's driver supports CUDA {cuda}",
            "install a newer driver, or use an image of an older CUDA",
        )
    elif cuda and cuda < wanted:
        yield Finding(
            Severity.WARNING,
            image,
            f"it is built with CUDA {wanted}, and this node's driver supports {cuda}: the container toolkit may refuse "
            f"it with 'unsatisfied condition: cuda>={wanted}', and what is new in {wanted} does not work",
            f"install a driver that supports CUDA {wanted}, or use an image of an older CUDA",
        )
