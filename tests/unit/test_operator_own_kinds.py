"""The lists of the project's own kinds: one that fails does not keep the others from being listed."""

from collections.abc import Mapping
from typing import Any

import pytest

from cta_group_operator.errors import Forbidden
from cta_group_operator.handlers.own_kinds import OwnKinds
from cta_group_operator.metrics import Metrics
from operator_world import FakeClock, FakeKube, a_node, a_quota, a_view


class ListedKube(FakeKube):
    """Lists nothing of any kind, and refuses CTAQuotas."""

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return an empty list."""
        del query
        if path.endswith("/ctaquotas"):
            raise Forbidden("403: quotas are not for you")
        return {"items": [], "metadata": {"resourceVersion": "900"}}


async def test_a_kind_that_cannot_be_listed_keeps_no_other_from_it() -> None:
    """Nodes that were deleted unseen are noticed though quotas may not be read; that they may not is raised."""
    view = a_view()
    a_node(view, "gone", 128)
    view.quotas.put(a_quota("stays", 64))
    kinds = OwnKinds(view, ListedKube(), FakeClock(), Metrics("test"))
    with pytest.raises(Forbidden, match="quotas are not for you"):
        await kinds.list_all()
    assert len(view.cta_nodes) == 0
    assert len(view.quotas) == 1
