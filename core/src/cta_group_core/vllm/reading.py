"""vLLM's arguments as a mapping, for people and programs: what is given, with the value that wins."""

from cta_group_core.vllm.arguments import Arguments, Reading
from cta_group_core.vllm.flags import ARITIES, Arity, Flag
from cta_group_core.vllm.scan import Other

Value = str | int | float | bool | list[str] | None

_COUNTS = (
    Flag.PORT,
    Flag.KV_CACHE_MEMORY_BYTES,
    Flag.MAX_NUM_SEQS,
    Flag.MAX_NUM_BATCHED_TOKENS,
    Flag.TENSOR_PARALLEL_SIZE,
    Flag.PIPELINE_PARALLEL_SIZE,
    Flag.DATA_PARALLEL_SIZE,
    Flag.DATA_PARALLEL_SIZE_LOCAL,
    Flag.DATA_PARALLEL_RANK,
    Flag.PREFILL_CONTEXT_PARALLEL_SIZE,
)


def reading_of(arguments: Arguments) -> dict[str, Value]:
    """Return each flag that is given, by its full spelling, with its value; None where that cannot be known.

    Numbers are numbers (human sizes are multiplied out), a switch is a truth value, ``auto`` is ``"auto"``. The model
    is ``--model``, however it was given.
    """
    found: dict[str, Value] = {}
    if arguments.model is not None:
        found[Flag.MODEL] = arguments.model if arguments.model_known else None
    share = arguments.utilization()
    if share.given is not None:
        found[Flag.GPU_MEMORY_UTILIZATION] = None if share.value is None else float(share.given.text or "")
    length = arguments.model_length()
    if length.given is not None:
        found[Flag.MAX_MODEL_LEN] = length.value if length.value is not None or length.unreadable else "auto"
    for flag in _COUNTS:
        count: Reading[int] = arguments.whole_number(flag)
        if count.given is not None:
            found[flag] = count.value
    if arguments.last(Flag.ENFORCE_EAGER) is not None:
        found[Flag.ENFORCE_EAGER] = arguments.switch(Flag.ENFORCE_EAGER)
    for flag in (Flag.SERVED_MODEL_NAME, Flag.CONFIG):
        last = arguments.last(flag)
        if last is not None:
            found[flag] = None if last.unresolved else last.text
    for other in arguments.others:
        found[other.name] = _value(other)
    return {str(flag): value for flag, value in found.items()}


def _value(other: Other) -> Value:
    if other.unresolved:
        return None
    if not other.values:
        return other.enabled
    if ARITIES.get(other.name) is Arity.MANY:
        return list(other.values)
    return other.values[0]
