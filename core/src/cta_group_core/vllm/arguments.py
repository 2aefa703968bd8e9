"""What the arguments of a vLLM container say, as vLLM's parser would read them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from cta_group_core.errors import InvalidText
from cta_group_core.vllm.flags import Flag
from cta_group_core.vllm.scan import Occurrence, Problem, Scan, scan
from cta_group_core.vllm.values import Utilization, human_int, is_reference, model_length, plain_int
from cta_group_core.vllm.words import CommandLine, Form, Word, command_line

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
    positionals: tuple[str, ...]
    problems: tuple[Problem, ...]
    end_of_options: Word | None = None

    @property
    def form(self) -> Form:
        """How they are written."""
        return self.line.form

    @property
    def model(self) -> str | None:
        """The model: ``--model`` where given, otherwise the positional one, otherwise None (vLLM's default)."""
        named = self.last(Flag.MODEL)
        if named is not None:
            return named.text
        return self.positionals[0] if self.positionals else None

    @property
    def hidden(self) -> tuple[str, ...]:
        """Where more flags may come from that cannot be seen here: a config file, a word that kubelet fills in."""
        files = [
            f"--config {one.text}" for one in self.occurrences if one.flag is Flag.CONFIG and one.value is not None
        ]
        return (*files, *(word for word in self.positionals if is_reference(word)))

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
        if is_reference(text):
            return Reading(found, unreadable=f"{found.spelling} {text}: kubelet fills it in when the container starts")
        try:
            return Reading(found, parse(text))
        except InvalidText as invalid:
            return Reading(found, unreadable=f"{found.spelling}: {invalid}")


_HUMAN = frozenset({Flag.MAX_NUM_BATCHED_TOKENS, Flag.KV_CACHE_MEMORY_BYTES})


def read_arguments(command: Sequence[str] | None, args: Sequence[str] | None) -> Arguments:
    """Read a container's ``command`` and ``args``. Never raises: what is not understood is in ``problems``."""
    line = command_line(command, args)
    found = scan(line.words)
    return Arguments(
        line=line,
        occurrences=tuple(found.occurrences),
        positionals=tuple(word.text for word in found.positionals),
        problems=(*found.problems, *_structural_problems(found)),
        end_of_options=found.end_of_options,
    )


def _structural_problems(found: Scan) -> list[Problem]:
    extra = [
        Problem(word.text, "vLLM takes one model and no other word without a flag", rejected=True)
        for word in found.positionals[1:]
        if not is_reference(word.text)
    ]
    ignored = [
        Problem(one.word.text, "vLLM ignores the file in this spelling; write two words", rejected=False)
        for one in found.occurrences
        if one.flag is Flag.CONFIG and one.value is None
    ]
    return extra + ignored
