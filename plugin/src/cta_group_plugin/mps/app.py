"""The process ``cta-group-plugin mps``: puts the supervisor, its socket and its probes together."""

import asyncio
import fcntl
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from cta_group_core.ids import GpuUuid
from cta_group_plugin import __version__
from cta_group_plugin.adapters.driver_root import DriverRoot, driver_words, preload
from cta_group_plugin.adapters.simulated_compute_modes import SimulatedComputeModes
from cta_group_plugin.errors import BadSetting, MpsUnavailable
from cta_group_plugin.logs import EventLog
from cta_group_plugin.mps.cgroups import DaemonCgroups, join_host_cgroup_namespace
from cta_group_plugin.mps.compute_mode import ModeKeeper
from cta_group_plugin.mps.control import MpsControlClient
from cta_group_plugin.mps.folders import MpsFolders, gpus_with_folders
from cta_group_plugin.mps.keeper import DaemonKeeper
from cta_group_plugin.mps.launcher import Launcher
from cta_group_plugin.mps.life import DaemonLife
from cta_group_plugin.mps.metrics import MpsMetrics
from cta_group_plugin.mps.percentage import PercentageBackend
from cta_group_plugin.mps.program import SERVER_NAME, ControlProgram, simulated_program
from cta_group_plugin.mps.socket import serving
from cta_group_plugin.mps.steps import KeeperParts
from cta_group_plugin.mps.supervisor import MpsSupervisor
from cta_group_plugin.mps.timing import SIMULATED, Timing
from cta_group_plugin.plain_files import open_to_write
from cta_group_plugin.ports import ComputeModes
from cta_group_plugin.probes import ProbeChecks, ProbeServer, on_loop
from cta_group_plugin.settings import MpsSettings

_LOG = EventLog(__name__)
_LOCK_NAME: Final = "supervisor.lock"


def run(settings: MpsSettings) -> int:
    """Keep the daemons of this node until SIGTERM or SIGINT; return the exit code. Raises BadSetting."""
    with _only_supervisor(settings.mps_root):
        asyncio.run(_run(settings))
    return 0


async def _run(settings: MpsSettings) -> None:
    stop = _stop_signal()
    metrics = MpsMetrics(__version__)
    supervisor = build_supervisor(settings, metrics, SIMULATED if settings.simulated else Timing())
    await supervisor.adopt(gpus_with_folders(settings.mps_root))
    try:
        async with serving(supervisor, settings.mps_socket):
            with _probes(settings.metrics_address, metrics):
                _LOG.info("mps_supervisor_serves", socket=settings.mps_socket, simulated=settings.simulated)
                await stop.wait()
    finally:
        await supervisor.stop()
    _LOG.info("mps_supervisor_ended")


def build_supervisor(
    settings: MpsSettings, metrics: MpsMetrics, timing: Timing, modes: ComputeModes | None = None
) -> MpsSupervisor:
    """Return the supervisor of a node; it does nothing before it is asked. ``modes`` replaces the driver."""
    launcher = Launcher(_program(settings), _cgroups(settings), metrics)
    modes = modes or _compute_modes(settings)

    def make_keeper(gpu: GpuUuid) -> DaemonKeeper:
        folders = MpsFolders.under(settings.mps_root, gpu)
        life = DaemonLife(
            gpu,
            record=folders.record,
            start=partial(launcher.start, folders),
            find=partial(launcher.find, folders),
            tidy=partial(launcher.tidy, folders),
            timing=timing,
            metrics=metrics,
        )
        control = MpsControlClient(launcher.program, folders, timeout_seconds=timing.command_seconds)
        mode = ModeKeeper(folders, modes, settings.compute_mode, timing)
        parts = KeeperParts(folders, control, life, mode, PercentageBackend(driver_words()))
        return DaemonKeeper(parts, timing=timing, metrics=metrics)

    return MpsSupervisor(make_keeper, forget=metrics.forget_state)


def _program(settings: MpsSettings) -> ControlProgram:
    if settings.simulated:
        return simulated_program(settings.environment)
    root = settings.driver_root
    return ControlProgram(
        settings.control_binary,
        environment=settings.environment,
        driver_root=None if root is None else DriverRoot(root, settings.mps_root / "driver-libraries"),
        server=SERVER_NAME,
    )


def _cgroups(settings: MpsSettings) -> DaemonCgroups | None:
    if settings.cgroup_root is None:
        return None
    try:
        join_host_cgroup_namespace()
    except OSError as error:
        _LOG.warning("host_cgroup_namespace_not_joined", reason=error)
    try:
        return DaemonCgroups.below(settings.cgroup_root)
    except MpsUnavailable as error:
        raise BadSetting(str(error)) from error


def _compute_modes(settings: MpsSettings) -> ComputeModes:
    if settings.simulated:
        return SimulatedComputeModes(settings.mps_root)
    from cta_group_plugin.adapters.nvml_compute_modes import NvmlComputeModes  # noqa: PLC0415 - see _program

    if settings.driver_root is not None:
        preload(settings.driver_root)
    return NvmlComputeModes()


@contextmanager
def _only_supervisor(mps_root: Path) -> Iterator[None]:
    """Hold the node's lock: two supervisors would start two daemons for one GPU."""
    try:
        mps_root.mkdir(parents=True, exist_ok=True)
        lock = open_to_write(mps_root / _LOCK_NAME, "ascii")
    except OSError as error:
        raise BadSetting(f"--mps-root={mps_root}: cannot be used: {error}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadSetting(f"--mps-root={mps_root}: another supervisor keeps the daemons there") from None
        yield


@contextmanager
def _probes(address: str, metrics: MpsMetrics) -> Iterator[None]:
    if not address:
        yield
        return
    turns = on_loop(_answers)
    with ProbeServer(address, ProbeChecks(metrics.registry, live=turns, ready=turns)):
        yield


async def _answers() -> str:
    """Say that the event loop turns; the probes begin when the socket is served, so that is all there is to check."""
    return ""


def _stop_signal() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop
