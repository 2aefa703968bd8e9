"""Images that make vLLM's arguments from variables of their own, such as those of serverless workers."""

import shlex

from cta_group_core.vllm.surroundings import Surroundings
from cta_group_core.vllm.word import Word
from cta_group_core.vllm.words import CommandLine, Form

_FLAGS = {
    "MODEL_ID": "--model",
    "MODEL_NAME": "--model",
    "HF_MODEL_ID": "--model",
    "GPU_MEMORY_UTILIZATION": "--gpu-memory-utilization",
    "KV_CACHE_MEMORY_BYTES": "--kv-cache-memory-bytes",
    "MAX_MODEL_LEN": "--max-model-len",
    "MAX_NUM_SEQS": "--max-num-seqs",
    "MAX_NUM_BATCHED_TOKENS": "--max-num-batched-tokens",
    "TENSOR_PARALLEL_SIZE": "--tensor-parallel-size",
    "PIPELINE_PARALLEL_SIZE": "--pipeline-parallel-size",
    "DATA_PARALLEL_SIZE": "--data-parallel-size",
    "ENFORCE_EAGER": "--enforce-eager",
    "DTYPE": "--dtype",
    "QUANTIZATION": "--quantization",
}
_OWN = ("GPU_MEMORY_UTILIZATION", "MAX_MODEL_LEN", "MAX_NUM_SEQS", "KV_CACHE_MEMORY_BYTES")
_MORE_WORDS = ("EXTRA_ARGS", "VLLM_ARGS", "VLLM_EXTRA_ARGS", "VLLM_ADDITIONAL_ARGS")
_TRUE = frozenset({"1", "true", "yes", "on"})


def line_from_variables(surroundings: Surroundings) -> CommandLine | None:
    """Return the arguments that an image makes from the variables it is given; None without a sign of vLLM there."""
    known = surroundings.variables
    telling = [name for name in (*_OWN, *_MORE_WORDS) if name in known]
    if not telling:
        return None
    words = [word for name, flag in _FLAGS.items() if name in known for word in _words(name, flag, known[name])]
    for name in _MORE_WORDS:
        if name in known:
            words += _split(name, known[name])
    reason = f"the image makes its arguments from variables ({', '.join(telling)})"
    return CommandLine(Form.VARIABLES, tuple(words), readable=True, reason=reason)


def _words(name: str, flag: str, value: str | None) -> list[Word]:
    if flag == "--enforce-eager":
        return [Word(flag, None)] if value is not None and value.lower() in _TRUE else []
    if value is None:
        return [Word(flag, None), Word(f"${name}", None, (f"${name}",))]
    return [Word(f"{flag}={value}", None)] if value else []


def _split(name: str, value: str | None) -> list[Word]:
    try:
        return (
            [Word(f"${name}", None, (f"${name}",), quoted=False)]
            if value is None
            else [Word(text, None) for text in shlex.split(value)]
        )
    except ValueError:
        return [Word(f"${name}", None, (f"${name}",), quoted=False)]
