"""Errors of the node side, one tree.

::

    PluginError
    ├── BadSetting             a setting has a value that is not allowed
    ├── DriverError            the GPU driver's library
    │   ├── DriverAbsent       no library or no driver on this node: idle, not broken
    │   ├── DriverGone         it answered before and cannot any more: exit, so that a fresh process loads it
    │   ├── GpuLost            one GPU cannot work any more; the others can
    │   └── DriverHangs        a question has not been answered for so long that nobody waits for it any more
    ├── CdiUnavailable         a CDI specification cannot be written
    ├── KubeletUnavailable     a socket of kubelet does not answer
    ├── StateUnavailable       the folder in which this process keeps things cannot be read or written
    ├── ApiUnavailable         the Kubernetes API does not answer, or refuses
    ├── ApiRefused             the Kubernetes API will never take this request
    ├── MemoryNotBack          a GPU still holds memory of a process that has ended
    └── MpsUnavailable         the MPS control daemon or its supervisor does not answer
"""


class PluginError(Exception):
    """Root of what the plugin raises on purpose."""


class BadSetting(PluginError):
    """A setting has a value that is not allowed; names the setting, the value and what is allowed."""


class DriverError(PluginError):
    """The GPU driver's library failed."""


class DriverAbsent(DriverError):
    """This node has no driver, or its library is not visible here."""


class DriverGone(DriverError):
    """The library answered before and never will again in this process."""


class GpuLost(DriverError):
    """The GPU that was asked is gone or needs a reset; the others go on."""


class DriverHangs(DriverError):
    """A question was not answered in time; its thread is left to it."""


class CdiUnavailable(PluginError):
    """A CDI specification cannot be written or made; names the file or the GPU."""


class KubeletUnavailable(PluginError):
    """A socket of kubelet does not answer; names the path."""


class StateUnavailable(PluginError):
    """The folder in which this process keeps things cannot be read or written; names the file."""


class ApiUnavailable(PluginError):
    """The Kubernetes API does not answer or refuses; names the object."""


class ApiRefused(PluginError):
    """The Kubernetes API will never take this request; names the object and its sentence."""


class MemoryNotBack(PluginError):
    """A GPU still holds memory of a process that has ended; names the GPU and how much."""


class MpsUnavailable(PluginError):
    """The MPS control daemon does not answer; names the GPU and the command."""
