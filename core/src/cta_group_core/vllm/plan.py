"""Which of vLLM's settings fit a slice, decided from what was asked, the slices that are possible, and the model.

The share of memory decides whether a server starts. Where the user's own share fits, nothing else is touched: who
fitted it has fitted the rest. Otherwise the settings that vLLM would take from the physical card are set with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cta_group_core.errors import SliceTooSmall
from cta_group_core.vllm.arguments import Arguments
from cta_group_core.vllm.flags import Flag
from cta_group_core.vllm.memory import (
    MEASURED_SEQUENCES,
    Load,
    SliceMemory,
    context_mib,
    for_weights_and_cache_mib,
    largest_utilization,
    reserve_mib,
)
from cta_group_core.vllm.model_size import ModelSize
from cta_group_core.vllm.prompts import cannot_split, may_need_whole_prompts
from cta_group_core.vllm.releases import fits_length_itself, splits_prompts
from cta_group_core.vllm.scan import Occurrence
from cta_group_core.vllm.values import Utilization

_MIB = 2**20
# vLLM's arg_utils: what a server takes from the physical card when it is not told.
_LARGE_CARD_MIB = 70 * 1024
_LARGE_CARD_SEQUENCES, _LARGE_CARD_TOKENS = 1024, 8192
_SMALL_CARD_SEQUENCES = 256
_FEWEST_SEQUENCES, _SEQUENCE_STEP = 16, 8
_FEWEST_TOKENS, _TOKEN_STEP = 2048, 256
"""The fewest is what vLLM takes on an ordinary card."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A value that a flag should have."""

    flag: Flag
    given: Occurrence | None
    """Where the flag is given now; None where it is not."""
    value: str
    why: str
    necessary: bool
    """True where the server cannot start without it."""


@dataclass(frozen=True, slots=True)
class Server:
    """What is known of the server that the settings are for."""

    arguments: Arguments
    shares: Sequence[SliceMemory]
    """The slice on each kind of GPU that the pod can land on, at least one."""
    version: str | None = None
    size: ModelSize | None = None

    @property
    def eager(self) -> bool:
        """Whether CUDA graphs are off."""
        return self.arguments.switch(Flag.ENFORCE_EAGER)

    @property
    def completed(self) -> bool:
        """Whether flags that are not given are set: they can be added, and none is given where it is not seen."""
        line = self.arguments.line
        return not self.arguments.unseen_file and (line.args_end is not None or line.variable_end is not None)

    def load(self, *, planned: bool) -> Load:
        """Return what decides how much it takes: with the sequences of a plan, or with those that it has now."""
        return Load(
            self.eager,
            _sequences(self, planned=planned),
            None if self.size is None else self.size.layers,
            None if self.size is None else self.size.vocabulary,
        )

    def fits(self, *, planned: bool) -> tuple[Utilization, SliceMemory]:
        """Return the share that starts everywhere, and the slice that decides it; may raise SliceTooSmall."""
        load = self.load(planned=planned)
        return min(((largest_utilization(one, load), one) for one in self.shares), key=lambda pair: pair[0])


def _sequences(server: Server, *, planned: bool) -> int:
    reading = server.arguments.whole_number(Flag.MAX_NUM_SEQS)
    if reading.given is not None:
        return max(1, reading.value) if reading.value is not None else MEASURED_SEQUENCES
    if planned and server.completed:
        return _planned_sequences(server)
    return MEASURED_SEQUENCES


def plan(server: Server) -> list[Setting]:
    """Return the settings that have to change, the share of memory first; raise SliceTooSmall."""
    asked = server.arguments.utilization()
    if asked.value is not None and _starts_as_it_is(server, asked.value):
        return _kv_cache(server)
    fits, share = server.fits(planned=True)
    why = f"at most {fits} of the whole GPU's memory starts in {share}"
    settings = _kv_cache(server)
    if not server.arguments.unseen_file:
        settings += [*_concurrency(server), *_length(server)]
    if asked.value is None:
        return [Setting(Flag.GPU_MEMORY_UTILIZATION, asked.given, str(fits), why, necessary=True), *settings]
    if asked.value <= fits:
        return settings  # fewer sequences are enough
    why += f", {asked.value} does not"
    return [Setting(Flag.GPU_MEMORY_UTILIZATION, asked.given, str(fits), why, necessary=True), *settings]


def _starts_as_it_is(server: Server, asked: Utilization) -> bool:
    try:
        return asked <= server.fits(planned=False)[0]
    except SliceTooSmall:
        return False


def _is_large_card(share: SliceMemory) -> bool:
    return share.total_mib >= _LARGE_CARD_MIB and "A100" not in share.product


def _scaled(whole: int, share: SliceMemory, step: int, fewest: int) -> int:
    """Return the part of ``whole`` that the slice is of the card, rounded to a step."""
    return max(fewest, (whole * share.limit_mib + share.total_mib * step // 2) // (share.total_mib * step) * step)


def _planned_sequences(server: Server) -> int:
    """Return the slice's part of the sequences that vLLM takes; it refuses more of them than tokens a step."""
    tokens = server.arguments.whole_number(Flag.MAX_NUM_BATCHED_TOKENS).value
    found = min(
        _scaled(
            _LARGE_CARD_SEQUENCES if _is_large_card(one) else _SMALL_CARD_SEQUENCES,
            one,
            _SEQUENCE_STEP,
            _FEWEST_SEQUENCES,
        )
        for one in server.shares
    )
    return found if tokens is None else max(1, min(found, tokens))


def _concurrency(server: Server) -> list[Setting]:
    found = []
    sequences = _planned_sequences(server)
    given = server.arguments.last(Flag.MAX_NUM_SEQS)
    if given is None:
        why = "vLLM sizes it for the physical card; this is the slice's part"
        found.append(Setting(Flag.MAX_NUM_SEQS, None, str(sequences), why, necessary=True))
    tokens = _tokens(server, sequences)
    if tokens is not None:
        why = f"vLLM takes {_LARGE_CARD_TOKENS} from the physical card; this is the slice's part"
        found.append(Setting(Flag.MAX_NUM_BATCHED_TOKENS, None, str(tokens), why, necessary=False))
    return found


def _tokens(server: Server, sequences: int) -> int | None:
    """Return ``--max-num-batched-tokens`` for the slice; None where vLLM's own number is right or might be needed."""
    arguments = server.arguments
    if arguments.last(Flag.MAX_NUM_BATCHED_TOKENS) is not None or not splits_prompts(server.version):
        return None
    if not all(_is_large_card(one) for one in server.shares) or cannot_split(arguments):
        return None
    given = arguments.whole_number(Flag.MAX_NUM_SEQS)
    if given.given is not None and given.value is None:
        return None
    fewest = max(_FEWEST_TOKENS, given.value or sequences)
    if may_need_whole_prompts(arguments):
        fewest = max(fewest, arguments.model_length().value or _LARGE_CARD_TOKENS)
    found = min(_scaled(_LARGE_CARD_TOKENS, one, _TOKEN_STEP, fewest) for one in server.shares)
    return found if found < _LARGE_CARD_TOKENS else None


def _length(server: Server) -> list[Setting]:
    if server.arguments.last(Flag.MAX_MODEL_LEN) is not None or not fits_length_itself(server.version):
        return []
    why = "the model's own context may need more KV cache than the slice has; this takes the longest that fits"
    return [Setting(Flag.MAX_MODEL_LEN, None, "auto", why, necessary=False)]


def _kv_cache(server: Server) -> list[Setting]:
    """Lower a KV cache of a given size that leaves no room for the rest; its size is not limited by the share."""
    reading = server.arguments.whole_number(Flag.KV_CACHE_MEMORY_BYTES)
    room = cache_room_mib(server)
    if reading.value is None or reading.value <= room * _MIB or server.size is None or room <= 0:
        return []
    why = f"{reading.value // _MIB} MiB of KV cache beside the model's weights do not fit the slice, {room} MiB do"
    return [Setting(Flag.KV_CACHE_MEMORY_BYTES, reading.given, str(room * _MIB), why, necessary=True)]


def cache_room_mib(server: Server, *, planned: bool = False) -> int:
    """Return the MiB that are left for the KV cache in the smallest slice, the weights taken off where known.

    ``planned``: with the sequences of the plan.
    """
    load = server.load(planned=planned)
    if server.size is None:
        return min(one.limit_mib - context_mib(one.groups) - reserve_mib(one, load) for one in server.shares)
    try:
        return min(for_weights_and_cache_mib(one, load) for one in server.shares) - server.size.weights_mib
    except SliceTooSmall:
        return 0
