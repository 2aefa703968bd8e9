"""What NVML's return codes mean here.

Four classes, because four different things are done about them: a fact that this GPU or driver does not tell is
recorded as unknown, a GPU that is gone is reported, a library that can never answer again ends the process, and
everything else is retried by the caller.
"""

from collections.abc import Callable
from typing import TypeVar

import pynvml

from cta_group_plugin.errors import DriverAbsent, DriverError, DriverGone, GpuLost

T = TypeVar("T")

NOT_TOLD = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,  # the driver is older than the call
        pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,  # the driver is older than the structure
    }
)
"""This GPU or this driver has no answer to the question; that is a fact, not a failure."""

GPU_GONE = frozenset(
    {
        pynvml.NVML_ERROR_GPU_IS_LOST,
        pynvml.NVML_ERROR_RESET_REQUIRED,
        pynvml.NVML_ERROR_NOT_FOUND,  # a UUID that was there before
    }
)
"""The one GPU that was asked cannot work; the others can."""

NO_DRIVER = frozenset({pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED})
"""No library or no driver."""

# UNINITIALIZED happens only when the library lost its state under us, for instance when the driver was unloaded.
LIBRARY_GONE = NO_DRIVER | {pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, pynvml.NVML_ERROR_UNINITIALIZED}
"""After an earlier success: the library was loaded once for all and will not answer again in this process."""


def driver_error(error: Exception, doing: str, *, answered_before: bool) -> DriverError:
    """Return the project's error for one of NVML's, saying what was being done.

    :class:`DriverAbsent` for a driver that never answered, :class:`DriverGone` for one that did or whose library does
    not belong to the loaded driver, :class:`GpuLost` for a GPU that is gone, plain :class:`DriverError` for what may
    work when tried again.
    """
    code = code_of(error)
    text = f"NVML could not {doing}: {error}"
    if code in NO_DRIVER and not answered_before:
        return DriverAbsent(f"{text}; without a driver, or without its libraries in this container, no GPU is served")
    if code == pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH or (code in LIBRARY_GONE and answered_before):
        return DriverGone(f"{text}; the driver was changed or unloaded, and only a new process can load it again")
    return GpuLost(text) if code in GPU_GONE else DriverError(text)


def code_of(error: Exception) -> int | None:
    """Return NVML's return code; None for an error that is not NVML's."""
    code = getattr(error, "value", None)
    return code if isinstance(code, int) else None


def told(ask: Callable[[], T]) -> T | None:
    """Return the answer, or None where this GPU or driver does not tell. Other errors pass."""
    try:
        return ask()
    except pynvml.NVMLError as error:
        if code_of(error) in NOT_TOLD:
            return None
        raise


def told_if_possible(ask: Callable[[], T]) -> T | None:
    """Return an answer that nothing depends on; None for every error but those that make all answers worthless."""
    try:
        return ask()
    except pynvml.NVMLError as error:
        if code_of(error) in GPU_GONE | LIBRARY_GONE:
            raise
        return None
