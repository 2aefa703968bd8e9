"""Which CUDA a vLLM image was built with, as far as that was published, and which drivers run that CUDA.

Source for images: vLLM's release pipeline (vllm#39878: from 0.20.0 on a tag without suffix is CUDA 13.0, and other
variants carry ``-cuXYZ``), and what NVIDIA's container toolkit said when it refused older ones (vllm#5635: 0.5.0,
vllm#18813: 0.9.0). Other versions without a suffix are not known. Source for drivers: NVIDIA, "CUDA compatibility",
minor version compatibility.
"""

import re
from typing import Final

from cta_group_core.compatibility.versions import CudaVersion
from cta_group_core.vllm.detect import image_version

_SUFFIX: Final = re.compile(r"-cu([1-9][0-9])([0-9])(?![0-9])", re.ASCII)
_TOLD_BY_REFUSALS: Final = {(0, 5, 0): CudaVersion(12, 4), (0, 9, 0): CudaVersion(12, 8)}
_DEFAULT_SINCE: Final = (0, 20, 0)
_DEFAULT: Final = CudaVersion(13, 0)

_LEAST_DRIVER_RELEASE: Final = {11: 450, 12: 525, 13: 580}


def image_cuda(image: str) -> CudaVersion | None:
    """Return the CUDA of one of vLLM's own images by its tag; None where nothing says so."""
    version = image_version(image)
    if version is None:
        return None
    if suffix := _SUFFIX.search(image.partition("@")[0].rpartition(":")[2]):
        return CudaVersion(int(suffix[1]), int(suffix[2]))
    major, minor, patch = (int(part) for part in version.split("."))
    numbers = (major, minor, patch)
    return _DEFAULT if numbers >= _DEFAULT_SINCE else _TOLD_BY_REFUSALS.get(numbers)


def least_driver_release(cuda: CudaVersion) -> int | None:
    """Return the oldest driver release that runs programs built with this CUDA's major; None where not known."""
    return _LEAST_DRIVER_RELEASE.get(cuda.major)
