"""When a daemon that is in trouble is killed and started anew. Pure: the time comes in.

A daemon is in trouble while it does not answer, or while a server of its is in state FAULT. Its groups are not ready
then, and mostly it recovers: a silent one answers again, a server in FAULT is well once its clients have gone (NVIDIA,
"Multi-Process Service", server states). Killing it kills its clients too. Therefore:

- as long as a client lives, a silent daemon is left alone, for ever: its clients may well be working;
- without a client it is killed after ``wedged_seconds``;
- in state FAULT every client has a sticky error and newcomers are refused, so nothing is lost by the end of a client
  that does not notice: after ``fault_seconds`` it is killed whoever lives.
"""

from dataclasses import dataclass, field

from cta_group_core.plurals import counted
from cta_group_plugin.mps_trouble import MpsTrouble


@dataclass(slots=True)
class TroubleWatch:
    """Knows since when a daemon has been in which trouble."""

    wedged_seconds: float
    fault_seconds: float
    _trouble: MpsTrouble | None = field(default=None, init=False)
    _since: float = field(default=0.0, init=False)

    def over(self) -> None:
        """Note that the daemon is well, or another one."""
        self._trouble = None

    def seen(self, trouble: MpsTrouble, now: float) -> None:
        """Note the trouble it is in."""
        if trouble is not self._trouble:
            self._trouble, self._since = trouble, now

    def is_to_be_killed(self, now: float, *, living_clients: int) -> bool:
        """Tell whether waiting is over."""
        if self._trouble is None:
            return False
        lasted = now - self._since
        in_fault = self._trouble is MpsTrouble.FAULT
        return lasted >= self.wedged_seconds if not living_clients else in_fault and lasted >= self.fault_seconds

    def outlook(self, living_clients: int) -> str:
        """Say what is waited for, in words that do not change while it is waited."""
        if not living_clients:
            return f"without a client it is started anew after {self.wedged_seconds:g} s"
        living, have = counted(living_clients, "client"), "has" if living_clients == 1 else "have"
        if self._trouble is MpsTrouble.FAULT:
            return f"it is started anew when {living} {have} ended, at the latest after {self.fault_seconds:g} s"
        return f"it is left alone as long as {living} may live"
