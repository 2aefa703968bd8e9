"""A fake node with programs on its GPUs, as the driver, the kernel, kubelet and MPS tell of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from cta_group_core.ids import GpuUuid
from cta_group_plugin.gpu_source import ProcessFacts
from cta_group_plugin.ports import MpsDemand, MpsState, PodDevices
from cta_group_plugin.testing import FakeMpsControl
from gpu_looks import Program, seen_of, use_of
from plugin_running import FakeNode


class ClientTellingMps(FakeMpsControl):
    """A supervisor whose daemons tell their clients."""

    def __init__(self) -> None:
        super().__init__()
        self.clients: dict[GpuUuid, tuple[int, ...]] = {}

    def _state(self, demand: MpsDemand) -> MpsState:
        return replace(super()._state(demand), client_pids=self.clients.get(demand.gpu, ()))


@dataclass
class BusyNode:
    """A fake node, and the programs on its GPUs as the driver, the kernel and kubelet tell of them."""

    node: FakeNode
    mps: ClientTellingMps = field(default_factory=ClientTellingMps)
    pods: tuple[PodDevices, ...] | None = ()
    sees_all: bool = True
    _seen: dict[int, ProcessFacts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.node.mps = self.mps
        self.node.processes = self
        self.node.read_record = lambda: self.pods

    def runs(self, gpu: GpuUuid, *programs: Program, extra_mib: int = 0) -> None:
        """Let exactly these programs be on a GPU from now on."""
        self._seen = dict(seen_of(programs))
        self.node.gpus.used[gpu] = use_of(programs, extra_mib=extra_mib)

    def look(self, pids: Iterable[int]) -> Mapping[int, ProcessFacts]:
        """Answer as the host's kernel does."""
        seen = self._seen
        return {pid: seen[pid] for pid in pids if pid in seen}
