"""What the arguments of a vLLM container say, as vLLM's parser would read them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from cta_group_core.errors import InvalidText
from cta_group_core.vllm.config_file import Config, config_of, with_config
from cta_group_core.vllm.flags import Flag
from cta_group_core.vllm.scan import Occurrence, Other, Problem, Scan, scan
from cta_group_core.vllm.shown import shown
from cta_group_core.vllm.structure import config_problem, model_words, structural_problems
from cta_group_core.vllm.surroundings import NOTHING, Surroundings
from cta_group_core.vllm.values import Utilization, human_int, model_length, plain_int
from cta_group_core.vllm.word import Word
from cta_group_core.vllm.words import CommandLine, Form, command_line

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class Reading(Generic[ValueT]):
    """The value that wins for one flag: given and readable, given and not readable, or not given."""

    given: Occurrence | None = None
    value: ValueT | None = None
    unreadable: str = ""
    """Why the value is not known; empty when it is, or when the flag is not given."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """vLLM's arguments in one container."""

    line: CommandLine
    occurrences: tuple[Occurrence, ...]
    """Flags of :class:`Flag` in the order written."""
    others: tuple[Other, ...]
    """All other flags."""
    model: str | None
    """The model as written; None where none is given (vLLM's default)."""
    model_known: bool
    """False when a part of ``model`` is put in by kubelet or a shell and not known here."""
    hidden: tuple[str, ...]
    """Where more flags may come from that cannot be seen here: a config file, a word that kubelet fills in."""
    problems: tuple[Problem, ...]
    end_of_options: Word | None = None
    config_words: int = 0
    """How many words of a config file stand before those of the line."""

    unseen_file: str = ""
    """The config file that vLLM reads and that is not at hand: it may give any flag, with a value that fits."""

    @property
    def form(self) -> Form:
        """How they are written."""
        return self.line.form

    def last(self, flag: Flag) -> Occurrence | None:
        """Return the occurrence that wins: the last one."""
        return next((one for one in reversed(self.occurrences) if one.flag is flag), None)

    def switch(self, flag: Flag) -> bool:
        """Tell whether a switch is on."""
        found = self.last(flag)
        return found is not None and found.enabled

    def utilization(self) -> Reading[Utilization]:
        """Return the share of the GPU's memory that is asked for."""
        return self._read(Flag.GPU_MEMORY_UTILIZATION, Utilization.parse)

    def whole_number(self, flag: Flag) -> Reading[int]:
        """Return a count: parallel sizes, sequences, tokens, bytes, port."""
        return self._read(flag, human_int if flag in _HUMAN else plain_int)

    def model_length(self) -> Reading[int | None]:
        """Return ``--max-model-len``; the value None is ``auto``."""
        return self._read(Flag.MAX_MODEL_LEN, model_length)

    def _read(self, flag: Flag, parse: Callable[[str], ValueT]) -> Reading[ValueT]:
        found = self.last(flag)
        if found is None:
            return Reading()
        text = found.text or ""
        if found.unresolved:
            who = "kubelet fills it in when the container starts" if "$(" in text else "a shell fills it in"
            return Reading(found, unreadable=f"{found.spelling} {shown(text)}: {who}")
        try:
            return Reading(found, parse(text))
        except InvalidText as invalid:
            return Reading(found, unreadable=f"{found.spelling}: {invalid}")


_HUMAN = frozenset({Flag.MAX_NUM_BATCHED_TOKENS, Flag.KV_CACHE_MEMORY_BYTES})


_CONVERSIONS: Mapping[Flag, Callable[[str], object]] = {
    Flag.GPU_MEMORY_UTILIZATION: float,
    Flag.MAX_MODEL_LEN: model_length,
    Flag.MAX_NUM_BATCHED_TOKENS: human_int,
    Flag.KV_CACHE_MEMORY_BYTES: human_int,
    **dict.fromkeys(
        (
            Flag.MAX_NUM_SEQS,
            Flag.PORT,
            Flag.TENSOR_PARALLEL_SIZE,
            Flag.PIPELINE_PARALLEL_SIZE,
            Flag.DATA_PARALLEL_SIZE,
            Flag.DATA_PARALLEL_SIZE_LOCAL,
            Flag.DATA_PARALLEL_RANK,
            Flag.PREFILL_CONTEXT_PARALLEL_SIZE,
        ),
        plain_int,
    ),
}


def read_arguments(
    command: Sequence[str] | None, args: Sequence[str] | None, surroundings: Surroundings = NOTHING
) -> Arguments:
    """Read a container's ``command`` and ``args``. Never raises: what is not understood is in ``problems``."""
    return arguments_of(command_line(command, args, surroundings), surroundings)


def arguments_of(line: CommandLine, surroundings: Surroundings = NOTHING) -> Arguments:
    """Read vLLM's words, with those of its config file where that is at hand."""
    config = config_of(line.words, surroundings)
    words = with_config(line.words, config)
    found = scan(words)
    model, known = model_words(found, serves=line.serves)
    return Arguments(
        line=line,
        occurrences=tuple(found.occurrences),
        others=tuple(found.others),
        model=model,
        model_known=known,
        hidden=(*([f"--config {config.unseen}"] if config.unseen else ()), *(word.text for word in found.hidden)),
        problems=() if line.offline else _problems(line, found, config),
        end_of_options=found.end_of_options,
        unseen_file=config.unseen,
        config_words=len(words) - len(line.words),
    )


def _problems(line: CommandLine, found: Scan, config: Config) -> tuple[Problem, ...]:
    return (
        *found.problems,
        *config.problems,
        *structural_problems(line.words, found, serves=line.serves),
        *_overridden_problems(found.occurrences),
        *(config_problem(line.words, config.content) if line.serves else ()),
    )


def _overridden_problems(occurrences: Sequence[Occurrence]) -> list[Problem]:
    """VLLM converts each value that is given, also one that a later one of the same flag replaces."""
    last = {one.flag: one for one in occurrences}
    return [
        Problem(one.word.text, f"{one.text!r} is refused, although a later value wins", rejected=True)
        for one in occurrences
        if one is not last[one.flag] and not one.unresolved and not _converts(one)
    ]


def _converts(one: Occurrence) -> bool:
    parse = _CONVERSIONS.get(one.flag)
    if parse is None or one.text is None:
        return True
    try:
        parse(one.text)
    except ValueError:  # InvalidText is one
        return False
    return True
