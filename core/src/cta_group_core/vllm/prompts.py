"""Whether a server may have to take a whole prompt in one step, so that fewer tokens a step keep it from starting.

vLLM (``SchedulerConfig.verify_max_model_len``) refuses fewer tokens a step than the longest context where prompts are
not split: models that make embeddings or scores from attention in both directions, and encoder-decoders. It knows
that from the model's files; here only its name is at hand. A few models take a whole picture or film in one step.
"""

import re

from cta_group_core.vllm.arguments import Arguments
from cta_group_core.vllm.flags import Flag

_FLAGS = frozenset(
    {
        "--runner",
        "--task",
        "--convert",
        "--pooler-config",
        "--override-pooler-config",
        "--disable-chunked-mm-input",
        "--speculative-config",
        "--speculative-model",
        "--spec-method",
        "--spec-model",
    }
)
_NAMES = re.compile(
    r"embed|rerank|reward|bert|minilm|colpali|colqwen|splade|simcse|siglip|sentence|classif|gemma-?4|paligemma|molmo"
    r"|(?<![a-z0-9])(?:bge|gte|e5|jina|mxbai|stella|clip|prm|ms-marco)(?![a-z])",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"\d")
_PLACE = re.compile(r"\w+://|[./]+")


def cannot_split(arguments: Arguments) -> bool:
    """Tell whether flags say that something must not be split, or that more slots are needed than tokens tell."""
    for other in arguments.others:
        if other.name.partition(".")[0] in _FLAGS or (other.name == "--enable-chunked-prefill" and not other.enabled):
            return True
    return False


def may_need_whole_prompts(arguments: Arguments) -> bool:
    """Tell whether the model's name says so, or says nothing: a folder such as ``/mnt/models`` holds any model."""
    model, served = arguments.model or "", arguments.last(Flag.SERVED_MODEL_NAME)
    place = _PLACE.match(model)
    told = f"{model[place.end() :] if place else model} {(served.text if served else None) or ''}"
    named = place is None or _DIGIT.search(told) is not None
    return not arguments.model_known or not named or _NAMES.search(told) is not None
