"""How many GPUs vLLM's ranks in one pod need, against the GPUs that its request for groups is.

NCCL refuses two ranks of one communicator on the same device, and a slice is on one GPU: parallelism needs whole GPUs.
"""

from dataclasses import dataclass

from cta_group_core.vllm.arguments import Arguments
from cta_group_core.vllm.flags import Flag


@dataclass(frozen=True, slots=True)
class Ranks:
    """GPU processes that vLLM starts in the pod."""

    tensor: int
    pipeline: int
    data: int

    @property
    def total(self) -> int:
        """GPUs that the pod needs, one a rank."""
        return self.tensor * self.pipeline * self.data

    def __str__(self) -> str:
        sizes = {"tensor": self.tensor, "pipeline": self.pipeline, "data": self.data}
        return ", ".join(f"{kind} parallel size {size}" for kind, size in sizes.items() if size > 1) or "one rank"


def ranks_of(arguments: Arguments) -> Ranks:
    """Return the ranks that the arguments ask for in this pod; a size that cannot be read counts as 1."""
    return Ranks(
        tensor=_size(arguments, Flag.TENSOR_PARALLEL_SIZE),
        pipeline=_size(arguments, Flag.PIPELINE_PARALLEL_SIZE),
        data=_local_data_size(arguments),
    )


def _local_data_size(arguments: Arguments) -> int:
    # With a rank of its own a pod runs one engine of a larger group.
    if arguments.last(Flag.DATA_PARALLEL_RANK) is not None:
        return 1
    local = arguments.last(Flag.DATA_PARALLEL_SIZE_LOCAL)
    return _size(arguments, Flag.DATA_PARALLEL_SIZE if local is None else Flag.DATA_PARALLEL_SIZE_LOCAL)


def _size(arguments: Arguments, flag: Flag) -> int:
    value = arguments.whole_number(flag).value
    return value if value is not None and value > 0 else 1


def parallel_objection(ranks: Ranks, groups: int, capacity: int) -> str | None:
    """Say why the ranks cannot run on ``groups`` of GPUs with ``capacity`` each; None when they can."""
    if groups < capacity:
        if ranks.total == 1:
            return None
        return (
            f"vLLM asks for {ranks}, and a slice of {groups} groups is on one GPU, where only one rank runs: "
            f"use size 1, or ask for {ranks.total} whole GPUs ({ranks.total * capacity} groups)"
        )
    gpus = groups // capacity
    if ranks.total <= gpus:
        return None
    return (
        f"vLLM asks for {ranks}, which needs {ranks.total} GPUs, and {groups} groups are {gpus}: "
        f"ask for {ranks.total * capacity} groups"
    )
