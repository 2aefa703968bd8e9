"""Asks the driver, kubelet, MPS and the host, each with a limit of time, and never changes anything."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cta_group_core.ids import GpuUuid
from cta_group_plugin.adapters.supervisor_look import look_at_supervisor
from cta_group_plugin.claims import claims_of
from cta_group_plugin.doctor.host import HostLook, look_at_host
from cta_group_plugin.doctor.processes import GpuUsers, tenants_of, users_of
from cta_group_plugin.edges import Edges, edges_of
from cta_group_plugin.errors import DriverAbsent, DriverError, DriverGone, KubeletUnavailable, MpsUnavailable
from cta_group_plugin.gpu_source import GpuSource, Vitals, inventory_of
from cta_group_plugin.mps.driver_calls import DriverCalls
from cta_group_plugin.ports import Account, BrokenGpu, GpuFacts, GpuProcess, Inventory, MpsState
from cta_group_plugin.settings import ComputeModeUse, RunSettings
from cta_group_plugin.sockets import SocketLook, SocketState, look_at


@dataclass(frozen=True, slots=True)
class DoctorSettings:
    """What is examined."""

    run: RunSettings
    """The settings of the plugin whose node this is."""
    host_root: Path = Path("/")
    """Root folder of the host, as far as it can be seen from here."""
    compute_mode: ComputeModeUse = ComputeModeUse.EXCLUSIVE
    driver_seconds: float = 15.0
    """How long the driver may take; one that is well answers everything within a second, also with eight GPUs."""


@dataclass(frozen=True, slots=True)
class DriverAnswer:
    """What the driver said."""

    inventory: Inventory | None = None
    problem: str = ""
    is_absent: bool = False
    """There is no driver, or none of its libraries here."""
    processes: Mapping[GpuUuid, tuple[GpuProcess, ...]] = field(default_factory=dict)
    vitals: Mapping[GpuUuid, Vitals] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Examination:
    """Everything that was answered."""

    driver: DriverAnswer
    host: HostLook
    kubelet: SocketLook
    """Its socket for device plugins."""
    pod_resources: SocketLook
    account: Account | None = None
    account_problem: str = ""
    owners: Mapping[GpuUuid, frozenset[str]] = field(default_factory=dict)
    """Resources of other plugins under which kubelet gives a GPU out."""
    supervisor: SocketLook | None = None
    """None: it is simulated inside the plugin's process."""
    mps: Mapping[GpuUuid, MpsState] = field(default_factory=dict)
    mps_problem: str = ""
    users: Mapping[GpuUuid, GpuUsers] = field(default_factory=dict)
    """Who is on each GPU beside tenants within their limits."""


async def examine(settings: DoctorSettings, edges: Edges | None = None) -> Examination:
    """Ask everybody, ``edges`` instead of the real world where they are given. Raises BadSetting."""
    run = settings.run
    edges = edges or edges_of(run)
    try:
        driver = await _driver(edges.gpus, settings.driver_seconds)
        pod_resources = look_at(run.pod_resources_socket)
        account, account_problem = await _account(edges, pod_resources)
        others = await _other_devices(edges) if account else {}
        supervisor = look_at(run.mps_socket) if run.mps_socket else None
        mps, mps_problem = await _mps(supervisor)
        tenants = tenants_of(edges.record() if edges.record else None, edges.ids.meaning_of)
    finally:
        await edges.pod_resources.close()
        await edges.mps.close()
    return Examination(
        driver=driver,
        host=look_at_host(settings.host_root, run.cdi.folder),
        kubelet=look_at(run.device_plugin_dir / "kubelet.sock"),
        pod_resources=pod_resources,
        account=account,
        account_problem=account_problem,
        owners=claims_of(others, driver.inventory.gpus) if driver.inventory else {},
        supervisor=supervisor,
        mps=mps,
        mps_problem=mps_problem,
        users=users_of(driver.processes, mps, settings.host_root, tenants),
    )


async def _driver(source: GpuSource, limit_seconds: float) -> DriverAnswer:
    try:
        return await DriverCalls(limit_seconds).ask(lambda: _ask_driver(source))
    except DriverError as silent:
        return DriverAnswer(problem=str(silent))


def _ask_driver(source: GpuSource) -> DriverAnswer:
    try:
        source.open()
        survey = source.survey()
        asked = [_ask_gpu(source, index) for index in range(survey.count)]
    except DriverAbsent as absent:
        return DriverAnswer(problem=str(absent), is_absent=True)
    except DriverError as error:
        return DriverAnswer(problem=str(error))
    finally:
        source.close()
    answered = [gpu for gpu in asked if isinstance(gpu, _GpuAnswer)]
    return DriverAnswer(
        inventory=inventory_of(survey, [gpu.facts if isinstance(gpu, _GpuAnswer) else gpu for gpu in asked]),
        processes={gpu.facts.uuid: gpu.processes for gpu in answered},
        vitals={gpu.facts.uuid: gpu.vitals for gpu in answered},
    )


@dataclass(frozen=True, slots=True)
class _GpuAnswer:
    facts: GpuFacts
    processes: tuple[GpuProcess, ...]
    vitals: Vitals


def _ask_gpu(source: GpuSource, index: int) -> _GpuAnswer | BrokenGpu:
    """Ask one GPU everything; what it fails at says why it is broken."""
    facts = source.read(index)
    if isinstance(facts, BrokenGpu):
        return facts
    try:
        return _GpuAnswer(facts, source.use(facts.uuid).processes, source.vitals(facts.uuid))
    except DriverGone:
        raise
    except DriverError as error:
        return BrokenGpu(index=index, uuid=facts.uuid, reason=str(error))


async def _account(edges: Edges, socket: SocketLook) -> tuple[Account | None, str]:
    if socket.state is not SocketState.ANSWERS:
        return None, socket.words
    try:
        return await edges.pod_resources.account(), ""
    except KubeletUnavailable as problem:
        return None, str(problem)


async def _other_devices(edges: Edges) -> Mapping[str, frozenset[str]]:
    try:
        return await edges.pod_resources.other_devices()
    except KubeletUnavailable:
        return {}  # kubelets of before 1.23 do not tell


async def _mps(socket: SocketLook | None) -> tuple[Mapping[GpuUuid, MpsState], str]:
    if socket is None or socket.state is not SocketState.ANSWERS:
        return {}, ""
    try:
        return await look_at_supervisor(socket.path), ""
    except MpsUnavailable as problem:
        return {}, str(problem)
