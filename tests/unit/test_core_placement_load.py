"""Containers that come and go on one node: nobody ever shares, whatever the order."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from cta_group_core.errors import RequestRefused
from cta_group_core.ids import GroupId, by_gpu
from cta_group_core.placement import check_ids, choose_ids
from cta_group_core.rooms import GpuRoom
from gpu_strategies import ids_of, indexed, nodes, requests_on, units_only


class NodeUnderLoad(RuleBasedStateMachine):
    """Containers of one node, each given what the rules choose; the model is who holds which ids."""

    holders: Bundle[frozenset[GroupId]] = Bundle("holders")

    def __init__(self) -> None:
        super().__init__()
        self.gpus: list[GpuRoom] = []
        self.held: list[frozenset[GroupId]] = []

    @initialize(gpus=nodes(max_gpus=4))
    def begin(self, gpus: list[GpuRoom]) -> None:
        """Start with nothing held."""
        self.gpus = gpus

    def available(self) -> list[GroupId]:
        """Return every group of the node that nobody holds."""
        taken = frozenset[GroupId]().union(*self.held)
        every = [group_id for gpu in self.gpus for group_id in ids_of(gpu.index, range(gpu.units.capacity))]
        return [group_id for group_id in every if group_id not in taken]

    @rule(target=holders, data=st.data())
    def allocate(self, data: st.DataObject) -> frozenset[GroupId]:
        """Let a container ask; it gets what is chosen, or nothing when refused."""
        groups = data.draw(requests_on(self.gpus))
        try:
            chosen = choose_ids(indexed(self.gpus), available=self.available(), must_include=[], groups=groups)
        except RequestRefused:
            return frozenset()
        check_ids(units_only(self.gpus), chosen)
        self.held.append(frozenset(chosen))
        return self.held[-1]

    @rule(holder=consumes(holders))
    def free(self, holder: frozenset[GroupId]) -> None:
        """Let a container end and give back what it held."""
        if holder:
            self.held.remove(holder)

    @invariant()
    def nobody_shares_a_group(self) -> None:
        """Check that no group is held twice."""
        assert sum(map(len, self.held)) == len(frozenset[GroupId]().union(*self.held))

    @invariant()
    def everybody_is_on_one_gpu_or_on_whole_ones(self) -> None:
        """Check that each container holds groups of one GPU, or all groups of several."""
        capacity = {gpu.uuid: gpu.units.capacity for gpu in self.gpus}
        for holder in self.held:
            held = by_gpu(holder)
            assert len(held) == 1 or all(len(members) == capacity[gpu] for gpu, members in held.items())


TestNodeUnderLoad = NodeUnderLoad.TestCase
TestNodeUnderLoad.settings = settings(max_examples=30, stateful_step_count=30)
