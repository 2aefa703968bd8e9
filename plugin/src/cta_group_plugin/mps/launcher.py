"""Starts daemons so that they outlive the container of the supervisor, and finds them again."""

from dataclasses import dataclass

from cta_group_plugin.errors import MpsUnavailable
from cta_group_plugin.logs import EventLog
from cta_group_plugin.mps.cgroups import DaemonCgroups
from cta_group_plugin.mps.daemon import DaemonProcess
from cta_group_plugin.mps.folders import MpsFolders
from cta_group_plugin.mps.metrics import MpsMetrics
from cta_group_plugin.mps.program import ControlProgram

_LOG = EventLog(__name__)


@dataclass(frozen=True, slots=True)
class Launcher:
    """One for all GPUs of the node."""

    program: ControlProgram
    cgroups: DaemonCgroups | None
    """None: daemons stay where this process is."""
    metrics: MpsMetrics

    def start(self, folders: MpsFolders) -> DaemonProcess:
        """Start the daemon of a GPU. Raises MpsUnavailable.

        One that cannot leave our cgroup serves all the same; it is told that it will end with this container.
        """
        daemon = DaemonProcess.start(self.program, folders)
        own = False
        if self.cgroups is not None:
            try:
                # It starts servers for its clients, and has none of either yet.
                self.cgroups.take_out(daemon.process.pid, folders.gpu)
                own = True
            except MpsUnavailable as error:
                _LOG.warning("mps_daemon_ends_with_this_container", gpu=folders.gpu, reason=error)
        self.metrics.observe_cgroup(folders.gpu, own=own)
        return daemon

    def find(self, folders: MpsFolders) -> DaemonProcess | None:
        """Return the daemon that an earlier supervisor started for a GPU, if it runs. Raises MpsUnavailable."""
        daemon = DaemonProcess.found(folders)
        if daemon is not None:
            _LOG.info("mps_daemon_adopted", gpu=folders.gpu, pid=daemon.process.pid)
            own = self.cgroups is not None and self.cgroups.has(daemon.process.pid, folders.gpu)
            self.metrics.observe_cgroup(folders.gpu, own=own)
        return daemon

    def tidy(self, folders: MpsFolders) -> None:
        """Remove the cgroup of a daemon that has ended."""
        if self.cgroups is not None:
            self.cgroups.forget(folders.gpu)
