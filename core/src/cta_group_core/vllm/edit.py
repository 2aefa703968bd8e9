"""Settings written into a container where vLLM reads them, without touching a shell string.

Ways in: words in list form; words that a script hands on with ``$@``; KServe's variable. What was written wins, since
vLLM takes the last value of a flag.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from cta_group_core.vllm.arguments import Arguments
from cta_group_core.vllm.plan import Setting
from cta_group_core.vllm.scan import Occurrence
from cta_group_core.vllm.word import Word


@dataclass(slots=True)
class Edited:
    """The container's words while they are edited, and what is added to the variable."""

    command: list[str]
    args: list[str]
    variable: list[str] = field(default_factory=list)
    _before_end: int = 0
    """Words that were put before a bare ``--``."""

    def write(self, setting: Setting, arguments: Arguments) -> bool:
        """Write one setting; False when there is no way in. Then nothing was changed."""
        given = setting.given
        if given is not None and given.word.place is not None:
            self._replace(given, setting.value)
            return True
        word = f"{setting.flag.value}={setting.value}"
        end = arguments.end_of_options
        if wins_at(arguments, given, arguments.line.args_end):
            if end is None:
                self.args.append(word)
                return True
            if end.place is not None:
                words, index = self._at(end)
                words.insert(index + self._before_end, word)
                self._before_end += 1
                return True
        elif end is None and wins_at(arguments, given, arguments.line.variable_end):
            self.variable.append(word)
            return True
        return False

    def _replace(self, given: Occurrence, value: str) -> None:
        """Put the value in the occurrence that wins, in the user's own spelling."""
        if given.value is None:
            self._set(given.word, f"{given.spelling}={value}")
        elif given.value.place is not None:
            self._set(given.value, value)

    def _set(self, word: Word, text: str) -> None:
        words, index = self._at(word)
        words[index] = text

    def _at(self, word: Word) -> tuple[list[str], int]:
        if word.place is None:
            raise ValueError(f"{word.text!r} has no place in command or args")
        return (self.command if word.place.field == "command" else self.args), word.place.index


def wins_at(arguments: Arguments, given: Occurrence | None, end: int | None) -> bool:
    """Tell whether a word that comes out at ``end`` of the words wins over the occurrence that wins now."""
    return end is not None and (given is None or given.index < end + arguments.config_words)


def ways_in(command: Sequence[str], args: Sequence[str]) -> Edited:
    """Return a container's words, to be edited."""
    return Edited(list(command), list(args))
