"""In how many parentheses the commands of a script stand: each is a shell of its own, whose variables end with it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from cta_group_core.vllm.shell_parts import RawCommand, RawWord

_CASE = "case"


@dataclass(slots=True)
class Nesting:
    """What is open where a script is cut."""

    opened: list[str] = field(default_factory=list)
    """``(`` and ``case``, whose patterns end with a parenthesis too."""
    depth: int = 0
    lowest: int = 0
    """The smallest depth since the command before."""

    def command(self, after: str, words: Sequence[RawWord]) -> RawCommand:
        """Return a command that stands here."""
        command = RawCommand(after, tuple(words), self.depth, self.lowest)
        self.lowest = self.depth
        keywords = [word.plain for word in words[:2]]
        if _CASE in keywords:
            self.opened.append(_CASE)
        elif "esac" in keywords and self.opened[-1:] == [_CASE]:
            self.opened.pop()
        return command

    def count(self, operator: str) -> None:
        """Take note of an operator."""
        if operator == "(":
            self.opened.append(operator)
            self.depth += 1
        elif operator == ")" and self.opened[-1:] == ["("]:
            self.opened.pop()
            self.depth -= 1
            self.lowest = min(self.lowest, self.depth)
