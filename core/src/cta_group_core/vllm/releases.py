"""Which release of vLLM an image has, and what of the flags that the project sets that release knows.

Looked up in the source distributions of 0.9.2, 0.10.2, 0.11.0, 0.11.2, 0.12.0, 0.13.0, 0.14.0, 0.16.0, 0.20.2, 0.25.0
and 0.33.0. The share of memory, the sequences, the tokens, the length and eager mode are in every one of them.
"""

import re

Release = tuple[int, ...]

_AUTOMATIC_LENGTH_SINCE = (0, 14, 0)
# The engine before it refused to start with fewer tokens a step than the longest context, unless told to split prompts.
_SPLITS_PROMPTS_SINCE = (0, 11, 0)
# No release of vLLM has such a number: it is a date, or somebody's own, and says nothing of what is inside.
_NONE_SINCE = (1, 0, 0)


def release_of(version: str | None) -> Release | None:
    """Return ``0.27.1`` as numbers that can be compared; None where the version is not known."""
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)", version or "")
    return tuple(map(int, match.groups())) if match else None


def fits_length_itself(version: str | None) -> bool:
    """Tell whether ``--max-model-len auto`` is known: the longest context that the KV cache holds."""
    return _is_since(version, _AUTOMATIC_LENGTH_SINCE)


def splits_prompts(version: str | None) -> bool:
    """Tell whether a prompt longer than one step's tokens is split without being told to."""
    return _is_since(version, _SPLITS_PROMPTS_SINCE)


def _is_since(version: str | None, since: Release) -> bool:
    release = release_of(version)
    return release is not None and since <= release < _NONE_SINCE
