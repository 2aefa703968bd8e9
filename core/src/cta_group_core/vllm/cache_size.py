"""How many bytes of KV cache a token takes, where that is one number."""

from collections.abc import Mapping
from typing import Any, Final

_BYTES: Final = 2
_AS_THE_MODEL: Final = frozenset({"auto", "bfloat16", "float16"})
_SMALL_STATE: Final = ("sliding", "linear", "mamba", "recurrent", "chunked")


def cache_bytes_per_token(shape: Mapping[str, Any], layers: int, entries_per_layer: int) -> int | None:
    """Return the bytes for a model's shape in 16 bits; None where layers keep less than all of the context."""
    latent = shape.get("kv_lora_rank")
    if latent:  # multi-head latent attention keeps one compressed entry for all heads
        return layers * (int(latent) + int(shape.get("qk_rope_head_dim") or 0)) * _BYTES
    kinds = " ".join(map(str, shape.get("layer_types") or shape.get("layers_block_type") or ()))
    sliding = shape.get("sliding_window") and shape.get("use_sliding_window", True)
    if sliding or any(kind in kinds for kind in _SMALL_STATE):
        return None
    return layers * entries_per_layer * _BYTES


def with_cache_type(bytes_per_token: int | None, cache_type: str) -> int | None:
    """Return the bytes where ``--kv-cache-dtype`` is given; None where it is none of 16 or 8 bits."""
    if bytes_per_token is None or cache_type in _AS_THE_MODEL:
        return bytes_per_token
    if cache_type.startswith(("fp8", "int8")):
        return bytes_per_token // 2
    return None
