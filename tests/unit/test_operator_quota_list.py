"""The list of CTAQuotas, which makes complete what kopf's watch tells."""

from collections.abc import Mapping
from typing import Any

import pytest

from cta_group_operator.errors import Forbidden
from cta_group_operator.handlers.quotas import Quotas
from cta_group_operator.metrics import Metrics
from operator_world import FakeClock, FakeKube, a_quota, a_view


def listed(name: str, groups: object) -> dict[str, Any]:
    """Return a CTAQuota as the API server lists it."""
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "900"}, "spec": {"groups": groups}}


class ListedKube(FakeKube):
    """Lists what is given, a page for each."""

    pages: tuple[dict[str, Any], ...] = ()

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the page that the last one named."""
        assert path.endswith("/ctaquotas")
        if self.failures:
            raise self.failures.pop()
        at = int((query or {}).get("continue") or 0)
        more = str(at + 1) if at + 1 < len(self.pages) else ""
        return {"items": [self.pages[at]], "metadata": {"resourceVersion": "901", "continue": more}}


async def test_a_quota_that_was_deleted_unseen_is_noticed() -> None:
    """What the list lacks is gone; what it has is taken, from all pages, but for one that nobody can read."""
    view, kube, metrics = a_view(), ListedKube(), Metrics("test")
    view.quotas.put(a_quota("gone", 64))
    kube.pages = (listed("first", 8), listed("odd", "many"), listed("last", 16))
    await Quotas(view.quotas, kube, FakeClock(), metrics).list_all()
    assert {one.ref.name: one.spec.groups for one in view.quotas} == {"first": 8, "last": 16}
    assert metrics.registry.get_sample_value("cta_group_decode_errors_total", {"kind": "CTAQuota"}) == 1


async def test_quotas_that_may_not_be_listed_stay() -> None:
    """A refusal is no empty list; it is told to whoever asked, and when a list was begun last is known."""
    view, kube, clock = a_view(), ListedKube(), FakeClock()
    view.quotas.put(a_quota("stays", 64))
    quotas = Quotas(view.quotas, kube, clock, Metrics("test"))
    clock.now += 100
    kube.failures.append(Forbidden("403: quotas are not for you"))
    with pytest.raises(Forbidden, match="quotas are not for you"):
        await quotas.list_all()
    assert len(view.quotas) == 1
    assert (quotas.idle_seconds(), quotas.event_age_seconds()) == (0, 100)
