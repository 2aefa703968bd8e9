"""What vLLM makes of the model among its arguments, and which combinations it refuses."""

import re
from collections.abc import Mapping, Sequence

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
    model_last = serves and _model_is_not_first(words)
    return [
        *_extra_words(found),
        *_words_in_one(found),
        *_model_twice(found, serves=serves),
        *(_name_without_model(words) if model_last else ()),
        *_json_after_end(found),
    ] + [
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


def _words_in_one(found: Scan) -> list[Problem]:
    return [
        Problem(word.text, "vLLM takes all of it for the model: write each word as an item of its own", rejected=False)
        for word in found.positionals[:1]
        if len(word.text.split()) > 1 and not word.text.startswith("-") and not word.unresolved
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


def _model_is_not_first(words: Sequence[Word]) -> bool:
    """Tell whether ``vllm serve`` finds no model at the front, where it puts the one of ``--model`` too."""
    texts = [word.text for word in words]
    named = any(text == "--model" or text.startswith("--model=") for text in texts)
    return bool(texts) and texts[0].startswith("-") and not named


def _name_without_model(words: Sequence[Word]) -> list[Problem]:
    texts = [word.text for word in words]
    if any(text == "--config" or text.startswith("--config=") for text in texts):
        return []
    return [
        Problem(text, "vllm serve wants the model as its first word where this flag is given", rejected=True)
        for text in texts
        if _SERVED_NAME.fullmatch(text)
    ][:1]


def config_problem(words: Sequence[Word], content: Mapping[str, object] | None) -> list[Problem]:
    """Return the problem of ``vllm serve`` with a config file that names no model either; None is a file unseen."""
    if content is None or "model" in content or not _model_is_not_first(words):
        return []
    return [Problem("--config", "vllm serve wants the model as its first word, or in the file", rejected=True)]


def _json_after_end(found: Scan) -> list[Problem]:
    """VLLM puts flags with a key at the end, where after ``--`` they are flags no more."""
    keyed = [one.name for one in found.others if "." in one.name]
    if found.end_of_options is None or not keyed:
        return []
    return [Problem(keyed[0], "vLLM does not take a flag with a key together with --", rejected=True)]
