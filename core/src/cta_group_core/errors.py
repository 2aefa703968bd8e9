"""Errors of the rules, one tree, so that a caller can catch at the level it can answer.

::

    CtaGroupError
    ├── InvalidText            text from outside that does not parse (an id, a name of a profile)
    ├── GpuRefused             this GPU cannot be offered; the others can
    │   ├── UnknownComputeCapability
    │   ├── ContradictoryGpu   numbers told of this GPU cannot all be true
    │   ├── SmCountConflict    two sources of the SM count disagree
    │   └── SmCountUnknown     no source of the SM count answered
    └── RequestRefused         this request cannot be served
        ├── RequestNotAllowed  it can never be: minimum, step, a mixture of GPUs
        │   └── SliceTooSmall  vLLM's fixed costs alone fill the slice
        └── DoesNotFit         it could be, but no GPU has room for it now

Each message names the object, what was given and what is allowed, and is meant for a person: it reaches pod
events, ``kubectl cta explain`` and the command line unchanged.
"""


class CtaGroupError(Exception):
    """Root of every error that the rules raise on purpose."""


class InvalidText(CtaGroupError, ValueError):
    """Text from outside does not have the form it must have."""


class GpuRefused(CtaGroupError):
    """One GPU cannot be offered. The message says why and which setting helps."""


class UnknownComputeCapability(GpuRefused):
    """The compute capability is in no table; its granularity is never guessed."""


class ContradictoryGpu(GpuRefused, ValueError):
    """Numbers told of a GPU (by an object, by a setting) contradict each other. A ValueError for pydantic's sake."""


class SmCountConflict(GpuRefused):
    """NVML's sources of the SM count answered differently."""


class SmCountUnknown(GpuRefused):
    """NVML has no source of the SM count for this GPU."""


class RequestRefused(CtaGroupError):
    """A request for groups cannot be served."""


class RequestNotAllowed(RequestRefused):
    """The request is of a size or shape that no GPU here can ever serve."""


class SliceTooSmall(RequestNotAllowed):
    """Nothing is left for vLLM in the slice once its fixed costs are taken off."""


class DoesNotFit(RequestRefused):
    """The request is allowed, but nothing has room for it now."""
