"""As :mod:`cta_group_operator.adapters.wire`, for the kinds of the project that programs write.

A status stays text: pydantic reads it as it is, and no objects are made of what nobody reads.
"""

from msgspec import Raw, Struct

from cta_group_operator.adapters.wire import Metadata


class Told(Struct):
    """A CTANode or a CTAWorkload."""

    metadata: Metadata
    status: Raw = Raw()
