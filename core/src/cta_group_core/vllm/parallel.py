"""How many GPUs vLLM's ranks in one pod need, against the GPUs that its request for groups is.

NCCL refuses two ranks of one communicator on the same device, and a slice is on one GPU: parallelism needs whole GPUs.
"""

from dataclasses import dataclass

from cta_group_core.vllm.arguments import Arguments
from cta_group_core.vllm.flags import Flag

_SIZES = (
    Flag.TENSOR_PARALLEL_SIZE,
    Flag.PIPELINE_PARALLEL_SIZE,
    Flag.DATA_PARALLEL_SIZE,
    Flag.DATA_PARALLEL_SIZE_LOCAL,
    Flag.PREFILL_CONTEXT_PARALLEL_SIZE,
)
_ONE_NODE = ("1",)
_SPANNING = frozenset({"--nnodes", "--headless", "--master-addr"})


@dataclass(frozen=True, slots=True)
class Ranks:
    """GPU processes that vLLM starts in the pod."""

    tensor: int
    pipeline: int
    data: int
    prefill_context: int = 1
    certain: bool = True
    """False where a size may be given that cannot be read here."""
    spans_pods: bool = False
    """The arguments themselves say that the ranks are spread over several pods."""

    @property
    def total(self) -> int:
        """GPUs that the pod needs, one a rank."""
        return self.tensor * self.pipeline * self.data * self.prefill_context

    def __str__(self) -> str:
        sizes = {"tensor": self.tensor, "pipeline": self.pipeline, "data": self.data}
        sizes["prefill context"] = self.prefill_context
        return ", ".join(f"{kind} parallel size {size}" for kind, size in sizes.items() if size > 1) or "one rank"


def ranks_of(arguments: Arguments) -> Ranks:
    """Return the ranks that the arguments ask for in this pod; a size that cannot be read counts as 1."""
    readings = [arguments.whole_number(flag) for flag in _SIZES]
    backends = [
        one.values[0] for one in arguments.others if one.name == "--distributed-executor-backend" and one.values
    ]
    return Ranks(
        tensor=_size(arguments, Flag.TENSOR_PARALLEL_SIZE),
        pipeline=_size(arguments, Flag.PIPELINE_PARALLEL_SIZE),
        data=_local_data_size(arguments),
        prefill_context=_size(arguments, Flag.PREFILL_CONTEXT_PARALLEL_SIZE),
        certain=arguments.line.readable and not arguments.hidden and not any(one.unreadable for one in readings),
        spans_pods="ray" in backends
        or any(one.name in _SPANNING and one.values != _ONE_NODE for one in arguments.others),
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


def parallel_objection(ranks: Ranks, groups: int, capacity: int, *, spans_pods: bool = False) -> str | None:
    """Say why the ranks cannot run on ``groups`` of GPUs with ``capacity`` each; None when they can.

    ``spans_pods``: the pod is one of a group whose pods share the ranks, so its own number of them is not known.
    """
    if groups < capacity:
        if ranks.total == 1:
            return None
        return (
            f"vLLM asks for {ranks}, and a slice of {groups} groups is on one GPU, where only one rank runs: "
            f"use size 1, or ask for {ranks.total} whole GPUs ({ranks.total * capacity} groups)"
        )
    gpus = groups // capacity
    if spans_pods or ranks.spans_pods or ranks.total == gpus:
        return None
    if ranks.total > gpus:
        return (
            f"vLLM asks for {ranks}, which needs {ranks.total} GPUs, and {groups} groups are {gpus}: "
            f"ask for {ranks.total * capacity} groups"
        )
    if not ranks.certain:
        return None
    return (
        f"vLLM asks for {ranks}, which uses {ranks.total} of the {gpus} GPUs that {groups} groups are: "
        f"set --tensor-parallel-size={gpus}, or ask for {ranks.total * capacity} groups"
    )
