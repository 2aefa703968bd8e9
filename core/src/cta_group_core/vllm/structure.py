"""What vLLM makes of the model among its arguments, and which combinations it refuses."""

import re
from collections.abc import Sequence

from cta_group_core.vllm.flags import Flag
from cta_group_core.vllm.scan import Occurrence, Problem, Scan
from cta_group_core.vllm.word import Word

_SERVED_NAME = re.compile(r"--served[-_]model[-_]name(=.*)?", re.DOTALL)


def model_words(found: Scan, *, serves: bool) -> tuple[str | None, bool]:
    """Return the model as written, and whether it is known; the first is None where none is given.

    ``vllm serve`` takes the first ``--model`` of the command line for the positional model, and that one wins.
    """
    named = [one for one in found.occurrences if one.flag is Flag.MODEL]
    if found.positionals and (serves or not named):
        return found.positionals[0].text, not found.positionals[0].unresolved
    if not named:
        return None, True
    first = next((one for one in named if serves and one.word.place is not None), named[-1])
    return first.text, not first.unresolved


def structural_problems(words: Sequence[Word], found: Scan, *, serves: bool) -> list[Problem]:
    """Return what vLLM refuses or ignores although each word by itself is right."""
    return [*_extra_words(found), *_model_twice(found, serves=serves), *_name_without_model(words, serves=serves)] + [
        Problem(
            one.word.text,
            "vLLM ignores the file in this spelling; write two words, --config and the file",
            rejected=False,
        )
        for one in found.occurrences
        if one.flag is Flag.CONFIG and one.word.text != "--config"
    ]


def _extra_words(found: Scan) -> list[Problem]:
    return [
        Problem(word.text, "vLLM takes one model and no other word without a flag", rejected=True)
        for word in found.positionals[1:]
    ]


def _model_twice(found: Scan, *, serves: bool) -> list[Problem]:
    flags = [one for one in found.occurrences if _is_exact_model(one)]
    if not serves or not flags or not found.positionals:
        return []
    return [
        Problem(found.positionals[0].text, "vllm serve takes the model once, with --model or without", rejected=True)
    ]


def _is_exact_model(one: Occurrence) -> bool:
    return one.flag is Flag.MODEL and one.spelling == "--model" and one.word.place is not None


def _name_without_model(words: Sequence[Word], *, serves: bool) -> list[Problem]:
    texts = [word.text for word in words]
    if not serves or not texts or not texts[0].startswith("-"):
        return []
    if any(text in {"--model", "--config"} or text.startswith(("--model=", "--config=")) for text in texts):
        return []
    return [
        Problem(text, "vllm serve wants the model as its first word where this flag is given", rejected=True)
        for text in texts
        if _SERVED_NAME.fullmatch(text)
    ][:1]
