"""How many bytes one of a model's parameters takes, by what its name, its flags or its config say."""

import re

from cta_group_core.vllm.arguments import Arguments

FOUR_BITS_TENTHS = 6
"""Of the layers that every 4-bit format leaves in 16 bits, and of scales."""
_ONE_BYTE_TENTHS, _TWO_BYTES_TENTHS, _FOUR_BYTES_TENTHS = 10, 20, 40
# What is said of the weights stands beside what is said of activations or of the cache: `W4AFP8`, `NVFP4-KVFP8`.
_WEIGHTS_OF_FOUR_BITS = re.compile(r"w4a|nvfp4|mxfp4", re.IGNORECASE)
_ONE_BYTE = re.compile(r"fp8|int8|w8a|8bit|q[568]_", re.IGNORECASE)
# Kinds that are mostly of four bits, and say so where they are of eight: `GPTQ-Int8`, `Q8_0`.
_MOSTLY_FOUR_BITS = re.compile(
    r"awq|gptq|int4|4bit|fp4|bnb|bitsandbytes|gpt-oss|gguf|q[1-4]_|moe_wna16|auto-?round", re.IGNORECASE
)
_BITS = re.compile(r"'(?:num_)?bits': (\d{1,2})\b")


def tenths_of_bytes(arguments: Arguments) -> int:
    """Return tenths of bytes of one parameter, by the model's name and the flags; 20 where nothing says less."""
    said = {one.name: one.values[0] for one in arguments.others if one.values}
    words = f"{arguments.model or ''} {said.get('--quantization', '')}"
    if _WEIGHTS_OF_FOUR_BITS.search(words):
        return FOUR_BITS_TENTHS
    if _ONE_BYTE.search(words):
        return _ONE_BYTE_TENTHS
    if _MOSTLY_FOUR_BITS.search(words):
        return FOUR_BITS_TENTHS
    return _FOUR_BYTES_TENTHS if said.get("--dtype") in {"float32", "float"} else _TWO_BYTES_TENTHS


def tenths_of_config(quantization: object) -> int:
    """Return tenths of bytes of one parameter, by the ``quantization_config`` of a ``config.json``."""
    text = str(quantization)
    bits = [int(found) for found in _BITS.findall(text)]
    if bits:
        return FOUR_BITS_TENTHS if min(bits) <= 4 else _ONE_BYTE_TENTHS  # noqa: PLR2004 - four bits
    small = _WEIGHTS_OF_FOUR_BITS.search(text) or _MOSTLY_FOUR_BITS.search(text)
    return FOUR_BITS_TENTHS if small else _ONE_BYTE_TENTHS
