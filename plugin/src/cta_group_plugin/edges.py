"""The world outside of the device plugin, behind its ports: the real one, or a simulation where the settings say so."""

from dataclasses import dataclass, field

from cta_group_core.profiles import profile_named
from cta_group_plugin.adapters.api_server import ApiServer
from cta_group_plugin.adapters.checkpoint import KubeletCheckpoint
from cta_group_plugin.adapters.host_processes import HostProcesses
from cta_group_plugin.adapters.kube_api import KubeNodeApi
from cta_group_plugin.adapters.kube_events import KubeEvents
from cta_group_plugin.adapters.pod_resources import KubeletPodResources
from cta_group_plugin.adapters.simulated_mps import SimulatedMpsControl
from cta_group_plugin.adapters.state_folder import StateFolder
from cta_group_plugin.adapters.supervisor_client import SupervisorClient
from cta_group_plugin.errors import BadSetting
from cta_group_plugin.gpu_source import GpuSource, Processes
from cta_group_plugin.health_record import HealthStore
from cta_group_plugin.id_book import IdBook
from cta_group_plugin.lookout import Record
from cta_group_plugin.pod_events import EventApi, UidOf
from cta_group_plugin.ports import MpsControl, NodeApi, PodResources
from cta_group_plugin.settings import RunSettings, SourceKind


@dataclass(frozen=True, slots=True)
class Edges:
    """The world outside, behind its ports."""

    gpus: GpuSource
    mps: MpsControl
    pod_resources: PodResources
    node_api: NodeApi | None
    """``None``: nothing is published."""
    events: EventApi | None = None
    """``None``: no pod is told anything."""
    uid_of: UidOf | None = None
    """``None``: nobody knows the UIDs of pods."""
    processes: Processes | None = None
    """``None``: those of the host cannot be seen."""
    record: Record | None = None
    """``None``: nobody tells which pod, by its UID, holds what."""
    health_store: HealthStore | None = None
    """``None``: nothing outlives this process."""
    ids: IdBook = field(default_factory=IdBook)
    """How groups are written on this node."""


def edges_of(settings: RunSettings) -> Edges:
    """Return the real world, or its simulation where the settings say so. Raises BadSetting.

    Reads what is kept of the ids.
    """
    api = _api_server(settings) if settings.publish else None
    store = StateFolder(settings.health.state_dir) if settings.health.state_dir else None
    ids = IdBook(settings.device_ids, store)
    checkpoint = KubeletCheckpoint(settings.device_plugin_dir, settings.resource_name, ids.meaning_of)
    ids.recall(checkpoint.pod_devices() or (), checkpoint.registered())
    return Edges(
        gpus=_gpu_source(settings),
        mps=SupervisorClient(settings.mps_socket) if settings.mps_socket else SimulatedMpsControl(),
        pod_resources=KubeletPodResources(settings.pod_resources_socket, settings.resource_name, ids.meaning_of),
        node_api=KubeNodeApi(api, settings.node_name) if api else None,
        events=KubeEvents(api, settings.node_name) if api else None,
        uid_of=checkpoint.uid_of,
        health_store=store,
        record=checkpoint.pod_devices,
        ids=ids,
        processes=_processes(settings),
    )


def _gpu_source(settings: RunSettings) -> GpuSource:
    # Each imports its source only: a simulated node needs no NVML, a real one no simulation.
    if settings.source is SourceKind.SIMULATED:
        from cta_group_plugin.adapters.simulated import SimulatedSource  # noqa: PLC0415

        return SimulatedSource(profile_named(settings.profile), settings.count, settings.node_name)
    from cta_group_plugin.adapters.driver_root import preload  # noqa: PLC0415
    from cta_group_plugin.adapters.nvml import NvmlSource  # noqa: PLC0415

    if settings.driver_root is not None:
        preload(settings.driver_root)
    return NvmlSource()


def _processes(settings: RunSettings) -> Processes | None:
    """Return the host's processes; on a simulated GPU there are none. Raises BadSetting."""
    folder = settings.health.processes_dir
    if folder is None or settings.source is SourceKind.SIMULATED:
        return None
    if not (folder / "self").exists():
        # Every process would be taken for one that has ended.
        raise BadSetting(f"--processes-dir {folder}: this is no proc file system; give the host's, or leave it empty")
    return HostProcesses(folder)


def _api_server(settings: RunSettings) -> ApiServer:
    if not settings.api_server:
        raise BadSetting("--publish: no API server is known outside a pod; give --api-server, or --no-publish")
    return ApiServer(settings.api_server, settings.service_account_dir)
