"""What is wrong with the host and its kubelet."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from cta_group_core.compatibility.findings import Finding, Severity
from cta_group_core.compatibility.versions import KubernetesVersion, parsed_or_none
from cta_group_core.errors import InvalidText

TOOLKIT_MPS_FOLDER: Final = "/tmp/nvidia-mps"  # noqa: S108 - the container toolkit's own name, never written by us
"""The container toolkit mounts this folder of the host, where it exists, into every GPU container."""

_STATUS_GATE: Final = "ResourceHealthStatus"
_MESSAGE_GATE: Final = "ResourceHealthStatusMessage"
_ON_SINCE: Final = KubernetesVersion(1, 36)
_SEEN_UNTIL: Final = KubernetesVersion(1, 37)


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What is known of a node beside its GPUs. ``None`` and an absent gate: not known."""

    toolkit_mps_mount: bool = False
    """:data:`TOOLKIT_MPS_FOLDER` exists on the host."""
    kubelet_version: str | None = None
    feature_gates: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))
    """The gates that kubelet's configuration sets."""
    long_ids: bool = True
    """Groups are named by the GPU's UUID rather than by a short name."""


def is_churning_version(text: str) -> bool:
    """Tell whether a kubelet of this version writes statuses again and again, unless its gates are off."""
    version = parsed_or_none(KubernetesVersion.parse, text)
    return version is not None and _ON_SINCE <= version <= _SEEN_UNTIL


def host_findings(host: HostFacts) -> tuple[Finding, ...]:
    """Return what is wrong with a host and its kubelet."""
    return (*_toolkit(host), *_kubelet(host))


def _toolkit(host: HostFacts) -> Iterator[Finding]:
    if host.toolkit_mps_mount:
        yield Finding(
            Severity.WARNING,
            TOOLKIT_MPS_FOLDER,
            "this folder exists on the host, so the container toolkit mounts it into every GPU container: whatever "
            "MPS daemon it belongs to can be reached from there, and none of this project's lives in it",
            f"stop that MPS daemon and remove {TOOLKIT_MPS_FOLDER}",
        )


def _kubelet(host: HostFacts) -> Iterator[Finding]:
    if host.kubelet_version is None:
        return
    try:
        KubernetesVersion.parse(host.kubelet_version)
    except InvalidText as problem:
        yield Finding(
            Severity.INFO,
            "kubelet",
            f"{problem}, so nothing that depends on it was checked",
            "report the version as a defect of this project",
        )
        return
    if is_churning_version(host.kubelet_version) and host.feature_gates.get(_STATUS_GATE, True):
        size = "about 80 bytes" if host.long_ids else "about 45 bytes"
        shorter = ", or take ids of half the size: deviceIds: short in the chart's values" if host.long_ids else ""
        yield Finding(
            Severity.WARNING,
            "kubelet",
            f"{host.kubelet_version} lists every group of a container in the pod's status, {size} each, in an order "
            "that changes: one write about every minute for each pod with groups (kubernetes#142293)",
            f"start kubelet with --feature-gates={_STATUS_GATE}=false,{_MESSAGE_GATE}=false (both: it does not start "
            f"with the first alone){shorter}",
        )
