"""Why waiting pods wait: the words, made anew only as often as people read them."""

from collections.abc import Callable, Hashable
from typing import Final

from cta_group_core.errors import RequestRefused
from cta_group_operator.ports import Clock

_WORDS_SECONDS: Final = 1.0


class RefusalWords:
    """Words for pods that are alike. ``again``: called with the seconds until words that were not made are due."""

    def __init__(self, clock: Clock, again: Callable[[float], None]) -> None:
        self._clock = clock
        self._again = again
        self._made: dict[Hashable, tuple[float, str]] = {}

    def clear(self) -> None:
        """Forget all of them."""
        self._made.clear()

    def of(self, alike: Hashable, make: Callable[[], RequestRefused]) -> str:
        """Return why pods that are alike wait.

        The words are made anew once a second at most: they cost more than the decision, and rounds follow each other
        quickly while a cluster is busy.
        """
        now = self._clock.monotonic()
        made, words = self._made.get(alike, (now - _WORDS_SECONDS, ""))
        if now - made < _WORDS_SECONDS:
            self._again(made + _WORDS_SECONDS - now)
            return words
        words = str(make())
        self._made = {key: told for key, told in self._made.items() if now - told[0] < _WORDS_SECONDS}
        self._made[alike] = (now, words)
        return words
