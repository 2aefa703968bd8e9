"""How large a model is: from its ``config.json`` where that is at hand, otherwise from the count in its name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cta_group_core.vllm.arguments import Arguments
from cta_group_core.vllm.cache_size import cache_bytes_per_token, with_cache_type
from cta_group_core.vllm.quantization import tenths_of_bytes, tenths_of_config
from cta_group_core.vllm.shown import shown

_MIB = 2**20
_BILLION = 1_000_000_000
# `8B`, `0.6b`, `8x7B`, `270m`; not the active part of a mixture (`A3B`), nor a part of a word (`v2beta`).
_COUNT = re.compile(r"(?<![A-Za-z0-9.])(?:(\d{1,4})x)?(\d{1,6}(?:\.\d{1,6})?)([bBmM])(?![A-Za-z0-9])", re.ASCII)
_ACTIVE_ONLY = re.compile(r"\d[bB]-\d{1,4}[eE](?![A-Za-z0-9])", re.ASCII)
"""`17B-16E` says what one token uses of the experts, and not how large they all are."""
_SHARED_BY_EXPERTS = 0.84
"""Of `8x7B`: attention is there once; 46.7B for 56, 141B for 176."""
_OFFLOADED_GIB = "--cpu-offload-gb"
_CHANGES_SIZE = frozenset({"--hf-overrides", "--offload-backend", "--offload-group-size", "--offload-num-in-group"})
"""Flags that make a model other than its config.json says, or keep an unknown part of it off the GPU."""
_LAYERS_BY_BILLIONS = ((5, 36), (9, 40), (16, 48), (35, 64), (80, 80))
_MOST_LAYERS = 96


@dataclass(frozen=True, slots=True)
class ModelSize:
    """What of a model decides whether it fits."""

    weights_mib: int
    layers: int
    known: str
    """Where it is known from, in words."""
    exact: bool
    """False: a count in a name, which may be rounded or mean something else."""
    kv_bytes_per_token: int | None = None
    """None where it is not known, or not the same for every token."""
    longest_context: int | None = None
    """The model's own, in tokens."""
    vocabulary: int | None = None


def size_of(arguments: Arguments, config: Mapping[str, Any] | None = None) -> ModelSize | None:
    """Return the size of the model that is served; None when nothing tells it."""
    size = _whole_size(arguments, config)
    return None if size is None else _on_gpu(size, arguments)


def _whole_size(arguments: Arguments, config: Mapping[str, Any] | None) -> ModelSize | None:
    tenths = tenths_of_bytes(arguments)
    if config is not None:
        try:
            return _from_config(config, tenths)
        except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError):
            pass  # not the shape of a decoder; the name may tell
    return _from_name(arguments.model, tenths) if arguments.model and arguments.model_known else None


def _on_gpu(size: ModelSize, arguments: Arguments) -> ModelSize:
    """Take off what the arguments leave in the host's memory; where they say no amount, nothing is exact any more."""
    given = {one.name: one.values for one in arguments.others}
    exact = size.exact and _CHANGES_SIZE.isdisjoint(name.partition(".")[0] for name in given)
    cache = with_cache_type(size.kv_bytes_per_token, (given.get("--kv-cache-dtype") or ("auto",))[0])
    size = replace(size, exact=exact, kv_bytes_per_token=cache)
    if _OFFLOADED_GIB not in given:
        return size
    text = (given[_OFFLOADED_GIB] or ("",))[0]
    try:
        offloaded_mib = max(0, int(float(text) * 1024))
    except (ValueError, OverflowError):
        return replace(size, exact=False)
    known = f"{size.known}, {_OFFLOADED_GIB}={shown(text)} leaves the rest to the host"
    return replace(size, weights_mib=max(0, size.weights_mib - offloaded_mib), known=known)


def _from_name(model: str, tenths: int) -> ModelSize | None:
    counts = [
        float(number)
        * (int(times) * _SHARED_BY_EXPERTS if times else 1)
        * (_BILLION if unit in "bB" else _BILLION / 1000)
        for times, number, unit in _COUNT.findall(model)
    ]
    if not counts or _ACTIVE_ONLY.search(model):
        return None
    parameters = int(max(counts))
    return ModelSize(
        weights_mib=parameters * tenths // 10 // _MIB,
        layers=next((layers for most, layers in _LAYERS_BY_BILLIONS if parameters <= most * _BILLION), _MOST_LAYERS),
        known=f"its name says {parameters / _BILLION:.3g}B parameters",
        exact=False,
    )


def _from_config(config: Mapping[str, Any], tenths: int) -> ModelSize:
    text = config.get("text_config")
    shape: Mapping[str, Any] = text if isinstance(text, Mapping) else config
    hidden, layers, vocabulary = (int(shape[key]) for key in ("hidden_size", "num_hidden_layers", "vocab_size"))
    heads = int(shape["num_attention_heads"])
    key_heads = int(shape.get("num_key_value_heads") or heads)
    width = int(shape.get("head_dim") or hidden // heads)
    attention = hidden * width * (2 * heads + 2 * key_heads)
    embeddings = vocabulary * hidden * (1 if shape.get("tie_word_embeddings") else 2)
    parameters = layers * (attention + _feed_forward(shape, hidden)) + embeddings
    if min(hidden, layers, vocabulary, heads, key_heads, width) <= 0:
        raise ValueError("a size is not above 0")
    longest = shape.get("max_position_embeddings")
    if "quantization_config" in config and tenths == 20:  # noqa: PLR2004 - nothing else said how small they are
        tenths = tenths_of_config(config["quantization_config"])
    return ModelSize(
        weights_mib=parameters * tenths // 10 // _MIB,
        layers=layers,
        known=f"its config.json gives {parameters / _BILLION:.3g}B parameters",
        exact=int(shape.get("interleave_moe_layer_step") or shape.get("decoder_sparse_step") or 1) == 1,
        kv_bytes_per_token=cache_bytes_per_token(shape, layers, 2 * key_heads * width),
        longest_context=int(longest) if longest else None,
        vocabulary=vocabulary,
    )


def _feed_forward(shape: Mapping[str, Any], hidden: int) -> int:
    experts = int(shape.get("num_experts") or shape.get("num_local_experts") or shape.get("n_routed_experts") or 0)
    if not experts:
        return 3 * hidden * int(shape["intermediate_size"])
    inner = int(shape.get("moe_intermediate_size") or shape["intermediate_size"])
    shared = int(shape.get("n_shared_experts") or 0)
    return 3 * hidden * inner * (experts + shared) + hidden * experts
