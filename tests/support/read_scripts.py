"""vLLM's arguments as they are read from shell strings."""

from cta_group_core.vllm.arguments import Arguments, read_arguments
from cta_group_core.vllm.surroundings import Surroundings


def script(text: str, *parameters: str, **variables: str | None) -> Arguments:
    """Read `bash -c TEXT -- PARAMETERS` with variables in its environment."""
    return read_arguments(["bash", "-c", text, "--"], parameters, Surroundings(variables))


def share(found: Arguments) -> str | None:
    """Return the share of memory that is read, None when it is not known."""
    value = found.utilization().value
    return None if value is None else str(value)
