"""What is wrong with a node, out of what was answered. Pure."""

from collections.abc import Iterator
from typing import Final

from cta_group_core.compatibility.driver_findings import driver_findings, enforcement_findings, subject_of
from cta_group_core.compatibility.findings import Finding, Severity, worst_first
from cta_group_core.compatibility.gpu_findings import gpu_findings
from cta_group_core.compatibility.host_findings import HostFacts, host_findings
from cta_group_core.compatibility.node_findings import node_findings
from cta_group_core.compatibility.versions import CudaVersion, DriverVersion, parsed_or_none
from cta_group_core.health.recovery_action import recovery_action_of
from cta_group_core.names import LEFT_OUT
from cta_group_core.nodes import GpuHealth, GpuStatus, NodeStatus
from cta_group_plugin.doctor.gather import DoctorSettings, Examination
from cta_group_plugin.doctor.processes import GpuUsers
from cta_group_plugin.doctor.socket_findings import kubelet_findings, mps_findings
from cta_group_plugin.gpu_source import Vitals
from cta_group_plugin.ports import GpuFacts
from cta_group_plugin.settings import ComputeModeUse, DeviceList

_LIBRARIES_REMEDY: Final = (
    "give the plugin's container the driver's libraries: nodes.runtimeClassName: nvidia where that runtime is not the "
    "default one, or nodes.driverRoot with the folder of the driver"
)


def findings_of(found: Examination, status: NodeStatus, settings: DoctorSettings) -> tuple[Finding, ...]:
    """Return what is wrong, the worst first. ``status`` is the node as the plugin would publish it now."""
    exclusive = settings.compute_mode is ComputeModeUse.EXCLUSIVE
    host = HostFacts(toolkit_mps_mount=found.host.toolkit_mps_mount)
    told = [*_driver(found), *kubelet_findings(found, settings), *mps_findings(found, status, settings)]
    if status.simulated:
        return worst_first([*told, *node_findings(status, host)])
    told += [*_enforcement(status, settings), *_cdi(found, settings), *_owners(found, status), *host_findings(host)]
    for gpu in status.gpus:
        users = GpuUsers() if _is_whole(gpu) else found.users.get(gpu.gpu_uuid, GpuUsers())
        pending = next((each.mig_pending for each in _inventory(found) if each.uuid == gpu.uuid), None)
        mode = None if pending is None else "Enabled" if pending else "Disabled"
        told += gpu_findings(gpu, exclusive_mode=exclusive, mig_pending=mode, processes=users.foreign)
        told += _unlimited(gpu, users, status)
        told += [*_withheld(gpu), *_vitals(gpu, found.driver.vitals.get(gpu.gpu_uuid))]
    return worst_first(told)


def _inventory(found: Examination) -> tuple[GpuFacts, ...]:
    return found.driver.inventory.gpus if found.driver.inventory else ()


def _driver(found: Examination) -> Iterator[Finding]:
    driver = found.driver
    if driver.inventory is not None:
        if not driver.inventory.simulated:
            yield from driver_findings(driver.inventory.driver_version)
            yield from _broken(found)
    elif not driver.is_absent:
        yield Finding(
            Severity.ERROR, "driver", driver.problem, "look at the kernel's log (dmesg) for XIDs; restart the node"
        )
    elif found.host.driver_is_loaded:
        words = f"it is loaded, and cannot be used here: {driver.problem}"
        yield Finding(Severity.ERROR, "driver", words, _LIBRARIES_REMEDY)
    elif found.host.gpus_on_bus:
        yield Finding(
            Severity.ERROR,
            "driver",
            f"{found.host.gpus_on_bus} NVIDIA GPUs are on the PCI bus and no driver is loaded",
            "install NVIDIA's driver, or bind the GPUs to vfio-pci where they belong to virtual machines",
        )
    else:
        yield Finding(
            Severity.INFO,
            "driver",
            "neither a driver nor an NVIDIA GPU is here, so this node offers nothing",
            "nothing, unless there should be a GPU; nodes.selector of the chart's values keeps the plugin away",
        )


def _broken(found: Examination) -> Iterator[Finding]:
    for gpu in found.driver.inventory.broken if found.driver.inventory else ():
        yield Finding(
            Severity.ERROR,
            f"GPU {gpu.index} ({gpu.uuid or 'unknown UUID'})",
            f"it does not answer: {gpu.reason}",
            f"nvidia-smi --gpu-reset -i {gpu.uuid or gpu.index} when nothing runs on it, or restart the node",
        )


def _enforcement(status: NodeStatus, settings: DoctorSettings) -> tuple[Finding, ...]:
    return enforcement_findings(
        status.enforcement,
        driver=parsed_or_none(DriverVersion.parse, status.driver_version),
        cuda=parsed_or_none(CudaVersion.parse, status.cuda_version),
        gpus=status.gpus,
        max_clients=settings.run.max_clients,
    )


def _withheld(gpu: GpuStatus) -> Iterator[Finding]:
    # Of MIG the rules about GPUs tell, of a GPU that does not answer what it failed at; settings mean what they say.
    told = gpu.mig_mode == "Enabled" or gpu.health is not GpuHealth.HEALTHY
    if gpu.withheld and not told and not gpu.withheld.startswith(LEFT_OUT):
        yield Finding(
            Severity.WARNING,
            subject_of(gpu),
            f"it offers no groups: {gpu.withheld}",
            "what the sentence names; every setting is a value of the chart",
        )


def _vitals(gpu: GpuStatus, vitals: Vitals | None) -> Iterator[Finding]:
    if vitals is None:
        return
    if vitals.recovery_action is not None and (action := recovery_action_of(vitals.recovery_action)):
        yield Finding(
            Severity.ERROR,
            subject_of(gpu),
            f"the driver asks {action.asks_for}",
            f"end what runs there and do it: nvidia-smi --gpu-reset -i {gpu.uuid}, or restart the node",
        )
    if vitals.remap_failed:
        yield Finding(
            Severity.ERROR,
            subject_of(gpu),
            "a broken row of its memory could not be replaced: it has no spare rows left there",
            "have the card replaced",
        )


def _is_whole(gpu: GpuStatus) -> bool:
    """Tell whether one tenant has all of it; its processes are not ours to count."""
    return bool(gpu.capacity) and any(held.groups == gpu.capacity for held in gpu.allocations)


def _unlimited(gpu: GpuStatus, users: GpuUsers, status: NodeStatus) -> Iterator[Finding]:
    if users.unlimited and (status.enforcement.compute or status.enforcement.memory):
        named = ", ".join(f"{one.name} (pid {one.pid}, {one.memory_mib} MiB)" for one in users.unlimited)
        yield Finding(
            Severity.ERROR,
            subject_of(gpu),
            f"processes of its tenants are no clients of its MPS daemon, so nothing limits them: {named}",
            "restart their pods; they must leave CUDA_MPS_PIPE_DIRECTORY and the folder that it names as they are",
        )


def _owners(found: Examination, status: NodeStatus) -> Iterator[Finding]:
    for gpu in status.gpus:
        if (others := found.owners.get(gpu.gpu_uuid)) and gpu.capacity and gpu.withheld is None:
            yield Finding(
                Severity.ERROR,
                subject_of(gpu),
                f"another device plugin gives it out too, as {', '.join(sorted(others))}: its memory is sold twice",
                "keep the other plugin off this GPU or this node, or leave the GPU out here (gpus.exclude)",
            )


def _cdi(found: Examination, settings: DoctorSettings) -> Iterator[Finding]:
    kind = settings.run.cdi.gpu_kind
    needed = settings.run.device_list is DeviceList.CDI and kind
    if not needed or kind in found.host.cdi_kinds or not found.host.cdi_is_visible:
        return
    yield Finding(
        Severity.ERROR,
        "CDI",
        f"no specification describes devices of kind {kind}, which bring GPU and driver into containers: those that "
        "get a slice cannot be made",
        "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml on the node (the toolkit's nvidia-cdi-refresh does it "
        "at boot), or another cdi.gpuKind",
    )
