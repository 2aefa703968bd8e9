"""Which of vLLM's arguments do not fit a slice, and what to change: decided here, applied by who owns the pod.

A user's lower value stays, a higher one is lowered, an absent one is added. Only arguments in list form are edited;
for every other form the result says the exact flag to add by hand.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cta_group_core.vllm.arguments import Arguments
from cta_group_core.vllm.flags import Flag
from cta_group_core.vllm.memory import SliceMemory, largest_utilization
from cta_group_core.vllm.scan import Occurrence
from cta_group_core.vllm.values import Utilization
from cta_group_core.vllm.word import Word
from cta_group_core.vllm.words import Form


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of one flag. ``before`` is None when the flag was not given."""

    flag: str
    before: str | None
    after: str
    why: str

    def as_json(self) -> dict[str, str | None]:
        """Return the form that the pod's annotation has."""
        return {"flag": self.flag, "from": self.before, "to": self.after, "why": self.why}


@dataclass(frozen=True, slots=True)
class Alignment:
    """What to do with the arguments of one container."""

    edits: tuple[Edit, ...] = ()
    """Changes that are in ``command`` and ``args``, or that would be (see ``not_patchable``)."""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    not_patchable: str = ""
    """Why nothing was changed although ``edits`` says what fits, with the flag to add by hand; empty otherwise."""
    warnings: tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        """Tell whether ``command`` or ``args`` differ from what was given."""
        return bool(self.edits) and not self.not_patchable


def align(
    command: Sequence[str], args: Sequence[str], arguments: Arguments, shares: Sequence[SliceMemory]
) -> Alignment:
    """Decide the edits for a container whose ``arguments`` were read from ``command`` and ``args``.

    ``shares``: the slice on each kind of GPU that the pod can land on, at least one. The value chosen starts on all of
    them. Raises :class:`~cta_group_core.errors.SliceTooSmall` when vLLM cannot start on one of them.
    """
    unchanged = Alignment(command=tuple(command), args=tuple(args), warnings=_warnings(arguments))
    edit, winner = _utilization_edit(arguments, shares)
    if edit is None:
        return unchanged
    obstacle = _obstacle(arguments)
    if obstacle:
        return Alignment(
            edits=(edit,),
            command=unchanged.command,
            args=unchanged.args,
            not_patchable=f"{obstacle}; add {edit.flag}={edit.after} to vLLM's arguments",
            warnings=unchanged.warnings,
        )
    edited = _Words(list(command), list(args))
    if winner is None:
        edited.add(f"{edit.flag}={edit.after}", before=arguments.end_of_options)
    else:
        edited.replace(winner, edit.after)
    return Alignment((edit,), tuple(edited.command), tuple(edited.args), warnings=unchanged.warnings)


def _warnings(arguments: Arguments) -> tuple[str, ...]:
    hidden = [
        f"values from {source} are not seen; flags on the command line win over it" for source in arguments.hidden
    ]
    return (*hidden, *(f"vLLM arguments: {problem}" for problem in arguments.problems))


def _utilization_edit(arguments: Arguments, shares: Sequence[SliceMemory]) -> tuple[Edit | None, Occurrence | None]:
    eager = arguments.switch(Flag.ENFORCE_EAGER)
    fits, share = min(((largest_utilization(one, eager=eager), one) for one in shares), key=lambda pair: pair[0])
    asked = arguments.utilization()
    if asked.value is not None and asked.value <= fits:
        return None, asked.given
    before = asked.given.text if asked.given is not None else None
    flag = Flag.GPU_MEMORY_UTILIZATION.value
    return Edit(flag, before, str(fits), _why(asked.value, fits, share)), asked.given


def _why(asked: Utilization | None, fits: Utilization, share: SliceMemory) -> str:
    most = f"at most {fits} of the whole GPU's memory starts in {share}"
    return f"{most}, {asked} does not" if asked is not None else most


def _obstacle(arguments: Arguments) -> str:
    """Say why the arguments may not be edited; empty when they may."""
    if arguments.form is not Form.LIST:
        return arguments.line.reason
    rejected = [str(problem) for problem in arguments.problems if problem.rejected]
    if rejected:
        return f"vLLM will not accept these arguments ({rejected[0]})"
    return arguments.utilization().unreadable


@dataclass(slots=True)
class _Words:
    """The two lists of a container while they are edited."""

    command: list[str]
    args: list[str]

    def replace(self, winner: Occurrence, value: str) -> None:
        """Put the value in the occurrence that wins, in the user's own spelling."""
        if winner.value is not None:
            self._set(winner.value, value)
        else:
            self._set(winner.word, f"{winner.spelling}={value}")

    def add(self, word: str, before: Word | None) -> None:
        """Add a word where vLLM reads it as a flag: at the end, or before a bare ``--``."""
        if before is None:
            self.args.append(word)
        else:
            words, index = self._at(before)
            words.insert(index, word)

    def _set(self, word: Word, text: str) -> None:
        words, index = self._at(word)
        words[index] = text

    def _at(self, word: Word) -> tuple[list[str], int]:
        if word.place is None:  # only words of a shell string have none, and those are never edited
            raise ValueError(f"{word.text!r} has no place in command or args")
        return (self.command if word.place.field == "command" else self.args), word.place.index
