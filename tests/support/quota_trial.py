"""CTAQuotas on a real API server under random changes, and an operator that may be ended between any two writes.

The operator is its real reconciler over its real client and lists; only the port in between is ours, and raises instead
of writing when its time has come. After each write, and after each change by somebody else, everything is looked at.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cluster_harness.api_client import ApiClient
from cta_group_core.names import LABEL_QUOTA
from cta_group_core.quota import QuotaSpec, quota_key
from cta_group_operator.adapters.convert_cluster import LimitConverter
from cta_group_operator.adapters.followed import what_to_follow
from cta_group_operator.adapters.kube import KubeClient
from cta_group_operator.adapters.list_watch import ListWatch
from cta_group_operator.clock import SystemClock
from cta_group_operator.handlers.quotas import Quotas
from cta_group_operator.metrics import Metrics
from cta_group_operator.ports import Json, KubeApi
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.quota import QuotaReconciler
from cta_group_operator.reconcile.quota_scope import cohort_key
from cta_group_operator.reconcile.view import ClusterView
from gpu_cluster import OURS
from operator_world import RESOURCE

KEY = quota_key(RESOURCE)
TRIAL_LABEL = "trial"
"""On a namespace: the CTAQuota that selects it."""


class Killed(Exception):
    """Not an error: the operator ends here."""


@dataclass
class MortalApi:
    """The API server as an operator sees it that ends after some writes.

    ``before_write`` and ``after_write`` are called with the path of each write, so that it can be made to come too
    late, and looked at.
    """

    real: KubeApi
    before_write: Callable[[str], None]
    after_write: Callable[[str], None]
    left: int
    writes: list[str] = field(default_factory=list)

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """Read."""
        return await self.real.get(path, query)

    async def create(self, path: str, body: Json) -> Json:
        """Create."""
        self._live(path)
        return self._done(path, await self.real.create(path, body))

    async def update(self, path: str, body: Json) -> Json:
        """Replace."""
        self._live(path)
        return self._done(path, await self.real.update(path, body))

    async def merge_patch(self, path: str, body: Json) -> Json:
        """Merge."""
        self._live(path)
        return self._done(path, await self.real.merge_patch(path, body))

    async def json_patch(self, path: str, operations: Sequence[Json]) -> Json:
        """Patch."""
        self._live(path)
        return self._done(path, await self.real.json_patch(path, operations))

    async def delete(self, path: str, resource_version: str | None = None) -> None:
        """Delete."""
        self._live(path)
        await self.real.delete(path, resource_version)
        self._done(path, {})

    def _live(self, path: str) -> None:
        if self.left == 0:
            raise Killed
        self.left -= 1
        self.writes.append(path)
        self.before_write(path)

    def _done(self, path: str, answer: Json) -> Json:
        self.after_write(path)
        return answer


@dataclass
class FreshOperator:
    """What an operator knows that has just listed everything."""

    view: ClusterView
    reconciler: QuotaReconciler

    @classmethod
    async def start(cls, client: KubeClient, api: MortalApi, stale: ClusterView | None = None) -> "FreshOperator":
        """List everything. ``stale``: an older view whose ResourceQuotas are believed, as if their watch was behind."""
        view, clock, metrics = ClusterView(), SystemClock(), Metrics("trial")
        await Quotas(view.quotas, client, clock, metrics).list_all()
        for followed in what_to_follow(view, RESOURCE):
            if stale is None or followed.store is not view.limits:
                await ListWatch(client, followed, clock, metrics)._list()
        for limit in stale.limits if stale is not None else ():
            view.limits.put(limit)
        reconciler = QuotaReconciler(
            view,
            api,
            clock,
            metrics=metrics,
            events=EventWriter(api, clock, "trial"),
            denials=Denials(view, RESOURCE),
            read_limit=LimitConverter(RESOURCE).read,
            resource_name=RESOURCE,
        )
        return cls(view, reconciler)

    def keys(self, names: Sequence[str]) -> list[str]:
        """Return the keys of work about these CTAQuotas, also of those that are gone."""
        found = {one.ref.name: cohort_key(one) for one in self.view.quotas if one.ref.name in names}
        return sorted({*found.values(), *(name for name in names if name not in found)})


@dataclass(frozen=True)
class Seen:
    """One ResourceQuota of a CTAQuota."""

    uid: str
    namespace: str
    quota: str
    hard: int
    enforced: int | None
    used: int | None

    @property
    def held(self) -> int:
        """What it allows now, or soon."""
        return max(self.hard, self.enforced or 0)

    @property
    def is_below_use(self) -> bool:
        """Whether its pods hold more than it allows."""
        return (
            self.used is not None and min(self.hard, self.hard if self.enforced is None else self.enforced) < self.used
        )


@dataclass
class Watcher:
    """Looks at all ResourceQuotas of some CTAQuotas in one list, and compares with what was before."""

    api: ApiClient
    names: Sequence[str]
    sums: dict[str, int] = field(default_factory=dict)
    below: set[str] = field(default_factory=set)
    counted: set[str] = field(default_factory=set)
    looks: int = 0
    strict_looks: int = 0
    """Looks at a moment when no quota held too much, so that nothing was excused."""
    excused: set[str] = field(default_factory=set)
    """CTAQuotas that held too much at any look since the operator that writes now began to decide."""
    miscounted: set[str] = field(default_factory=set)
    """Namespaces of which Kubernetes told less than their pods ask for, when something was about to be written."""

    def limits(self) -> list[Seen]:
        """Return the ResourceQuotas."""
        found = self.api.items(f"/api/v1/resourcequotas?labelSelector={LABEL_QUOTA}")
        return [one for one in map(_seen, found) if one.quota in self.names]

    def specs(self) -> dict[str, QuotaSpec]:
        """Return what people want now."""
        found = self.api.items(f"{OURS}/ctaquotas")
        wanted = {one["metadata"]["name"]: QuotaSpec.model_validate(one["spec"]) for one in found}
        return {name: spec for name, spec in wanted.items() if name in self.names}

    def accept(self) -> None:
        """Take what is there as it is: somebody else changed a quota or a namespace, which no write of ours did."""
        limits = self.limits()
        self.sums = _sums(limits, self.specs())
        self.below = {one.uid for one in limits if one.is_below_use}

    def begin(self) -> None:
        """Forget what was excused: somebody is about to decide afresh, on what is there now."""
        specs = self.specs()
        self.excused = self._overcommitted(specs, self.limits(), self._keepers(specs))
        self.miscounted = set()

    def note_counts(self) -> None:
        """Note where the use that is told is too small, by which somebody is about to write.

        Admission counts a pod before it is there. The controller manager counts all anew by its own list of pods, which
        may be behind: for a moment the use is then what it was, and a limit may be lowered to it.
        """
        told = {one.namespace: one.used for one in self.limits() if one.used is not None}
        self.miscounted |= {space for space, used in told.items() if _asked(self.api, space) > used}

    def look(self) -> None:
        """Fail when a sum is too large and larger than before, or a limit fell below its use without a reason."""
        specs, limits = self.specs(), self.limits()
        bounds = _bounds(specs)
        sums = _sums(limits, specs)
        for name, held in sums.items():
            most = max(bounds.get(name, 0), self.sums.get(name, 0))
            assert held <= most, f"{name} holds {held} of {bounds.get(name)}, before {self.sums.get(name)}: {limits}"
        keepers = self._keepers(specs)
        excused = self._overcommitted(specs, limits, keepers)
        self.excused |= excused
        below = {one.uid for one in limits if one.is_below_use}
        for one in limits:
            if one.uid in below - self.below and one.uid in self.counted:
                told = f"limit below its use: {one}; {limits}; {keepers}; {specs}"
                is_excused = bool({one.quota, keepers.get(one.namespace)} & self.excused)
                assert is_excused or one.namespace in self.miscounted, told
        self.looks += 1
        self.strict_looks += not excused
        self.sums, self.below = sums, below
        self.counted |= {one.uid for one in limits if one.used is not None}

    def _keepers(self, specs: Mapping[str, QuotaSpec]) -> dict[str, str]:
        """Return the CTAQuota that selects each namespace."""
        labels = {one["metadata"]["name"]: one["metadata"]["labels"] for one in self.api.items("/api/v1/namespaces")}
        kept = {name: found.get(TRIAL_LABEL) for name, found in labels.items()}
        return {name: keeper for name, keeper in kept.items() if keeper in specs}

    def _overcommitted(
        self, specs: Mapping[str, QuotaSpec], limits: Sequence[Seen], keepers: Mapping[str, str]
    ) -> set[str]:
        """Return the CTAQuotas whose pods hold more than may be, alone or with their cohort."""
        charged = {one.namespace: one.used or 0 for one in limits}
        used = dict.fromkeys(specs, 0)
        for space, keeper in keepers.items():
            used[keeper] += max(_asked(self.api, space), charged.get(space, 0))
        bounds, cohorts = _bounds(specs), _cohorts(specs)
        total = {cohort: sum(used[name] for name in names) for cohort, names in cohorts.items()}
        return {
            name
            for cohort, names in cohorts.items()
            for name in names
            if used[name] > bounds[name] or total[cohort] > bounds[cohort]
        }


def _seen(found: dict[str, Any]) -> Seen:
    meta, status = found["metadata"], found.get("status", {})
    amounts = [status.get(part, {}).get(KEY) for part in ("hard", "used")]
    enforced, used = (None if amount is None else int(amount) for amount in amounts)
    hard = int(found["spec"]["hard"][KEY])
    return Seen(meta["uid"], meta["namespace"], meta["labels"][LABEL_QUOTA], hard, enforced, used)


def _cohorts(specs: Mapping[str, QuotaSpec]) -> dict[str, list[str]]:
    """Return the names of the quotas of each cohort; a quota of none is its own."""
    found: dict[str, list[str]] = {}
    for name, spec in specs.items():
        found.setdefault(f"cohort of {spec.cohort or name}", []).append(name)
    return found


def _bounds(specs: Mapping[str, QuotaSpec]) -> dict[str, int]:
    """Return the most of each quota and of each cohort."""
    bounds = {cohort: sum(specs[name].groups for name in names) for cohort, names in _cohorts(specs).items()}
    for cohort, names in _cohorts(specs).items():
        for name in names:
            borrowed = specs[name].most_borrowed
            own = bounds[cohort] if borrowed is None else specs[name].groups + borrowed
            bounds[name] = min(bounds[cohort], own)
    return bounds


def _sums(limits: Sequence[Seen], specs: Mapping[str, QuotaSpec]) -> dict[str, int]:
    held = {name: sum(one.held for one in limits if one.quota == name) for name in {one.quota for one in limits}}
    together = {cohort: sum(held.get(name, 0) for name in names) for cohort, names in _cohorts(specs).items()}
    return held | together


def _asked(api: ApiClient, space: str) -> int:
    pods = api.items(f"/api/v1/namespaces/{space}/pods")
    return sum(int(pod["spec"]["containers"][0]["resources"]["requests"][RESOURCE]) for pod in pods)
