"""Values and fakes for unit tests of the operator: a clock that is set, an API that remembers, objects in short."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cta_group_core.ids import NodeName
from cta_group_core.names import GATE_PLACEMENT, QUOTA_OBJECT_NAME
from cta_group_core.nodes import Allocation, Condition, GpuStatus, NodeStatus
from cta_group_core.quota import QuotaSpec, QuotaStatus
from cta_group_core.scheduling import NodeFacts, NodeTerm, PodTerms
from cta_group_core.selectors import Operator, Requirement
from cta_group_core.workload import ServerStatus
from cta_group_operator.adapters.convert import Converter
from cta_group_operator.adapters.convert_cluster import LimitConverter
from cta_group_operator.errors import Conflict, NotFound
from cta_group_operator.ports import (
    ControllerView,
    CtaNodeView,
    LimitView,
    NamespaceView,
    NodeView,
    ObjectRef,
    PodView,
    QuotaView,
)
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.events import EventWriter
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.reconcile.workload import WorkloadReconciler

RESOURCE = "nvidia.com/cta-group"
SPACE = "team-a"
READ_LIMIT = LimitConverter(RESOURCE).read
READ_POD = Converter(RESOURCE).read_pod


@dataclass
class FakeClock:
    """A clock that only tests move."""

    now: float = 1000.0

    def monotonic(self) -> float:
        """Return the set time."""
        return self.now

    def utc_text(self) -> str:
        """Return the set time as a moment."""
        return f"2026-01-01T00:{int(self.now) // 60 % 60:02}:{int(self.now) % 60:02}Z"


@dataclass
class FakeKube:
    """Objects by path with versions, behind the port ``KubeApi``; merge patches replace whole top-level parts."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    writes: list[tuple[str, str]] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    """Raised by the next calls, one each."""
    broken: dict[str, Exception] = field(default_factory=dict)
    """Raised by every write whose path contains the key."""
    version: int = 100
    hold: asyncio.Event | None = None
    """While set, JSON patches wait for it, and may fail only then."""
    held: int = 0
    """JSON patches that waited."""

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Read one object, or a list of the one that is asked for by name; other lists are empty."""
        name = (query or {}).get("fieldSelector", "").partition("metadata.name=")[2]
        if name:
            self._fail()
            found = self.objects.get(f"{path}/{name}")
            return {"items": [found] if found is not None else [], "metadata": {}}
        if query and "limit" in query:
            return {"items": [], "metadata": {}}
        self._fail()
        if path not in self.objects:
            raise NotFound(path)
        return self.objects[path]

    async def create(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create; Conflict when it exists."""
        full = f"{path}/{body['metadata']['name']}"
        self._fail(full)
        if full in self.objects:
            raise Conflict(full)
        return self._store("create", full, dict(body))

    async def update(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Replace, if the version is the newest."""
        self._fail(path)
        self._check(path, body)
        return self._store("update", path, dict(body))

    async def merge_patch(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Merge the top-level parts."""
        self._fail(path)
        self._check(path, body)
        return self._store("merge", path, {**self.objects.get(path, {"metadata": {}}), **body})

    async def json_patch(self, path: str, operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Remember the operations."""
        self._fail(path)
        if self.hold is not None:
            self.held += 1
            await self.hold.wait()
            self._fail(path)
        return self._store("json", path, {"metadata": {}, "operations": list(operations)})

    async def delete(self, path: str, resource_version: str | None = None) -> None:
        """Delete."""
        del resource_version
        self._fail(path)
        self.writes.append(("delete", path))
        if self.objects.pop(path, None) is None:
            raise NotFound(path)

    def _fail(self, written: str = "") -> None:
        if self.failures:
            raise self.failures.pop(0)
        for part, failure in self.broken.items():
            if part in written:
                raise failure

    def _check(self, path: str, body: Mapping[str, Any]) -> None:
        asked = body.get("metadata", {}).get("resourceVersion")
        known = self.objects.get(path)
        if asked is not None and known is not None and known["metadata"]["resourceVersion"] != asked:
            raise Conflict(path)

    def _store(self, verb: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        body["metadata"] = {**body.get("metadata", {}), "resourceVersion": str(self.version)}
        self.objects[path] = body
        self.writes.append((verb, path))
        return body


@dataclass
class FakeServers:
    """Finds in every template the server that is given, and none while none is."""

    found: tuple[ServerStatus, Condition] | None = None

    def missed(self, pod: Mapping[str, Any]) -> str:  # noqa: ARG002 - part of the interface
        """Say nothing."""
        return ""

    def read(self, template: bytes) -> tuple[ServerStatus, Condition] | None:
        """Return it, for a template that is there."""
        return self.found if template else None


def ref(kind: str, name: str, namespace: str = SPACE, api_version: str = "apps/v1") -> ObjectRef:
    """Return a reference whose uid is made of kind and name."""
    return ObjectRef(api_version, kind, namespace, name, f"{kind}-{name}".lower())


def a_pod(name: str, groups: int = 32, **changes: Any) -> PodView:
    """Return a gated pod; ``changes`` are fields of the view."""
    return replace(
        PodView(ref("Pod", name, api_version="v1"), "1", (groups,), gates=(GATE_PLACEMENT,), created=f"2026-{name}"),
        **changes,
    )


def on(*nodes: str) -> PodTerms:
    """Return the terms of a pod that was released to nodes."""
    named = (Requirement(key="metadata.name", operator=Operator.IN, values=(node,)) for node in nodes)
    return PodTerms(node_terms=tuple(NodeTerm(fields=(one,)) for one in named))


def a_controller(
    kind: str, name: str, *, owner: ObjectRef | None = None, wanted: int = 1, **more: Any
) -> ControllerView:
    """Return a controller whose pods ask for 32 groups."""
    return ControllerView(ref(kind, name), "1", (32,), owner=owner, wanted=wanted, **more)


def a_limit(namespace: str, quota: str | None, hard: int | None, **more: Any) -> LimitView:
    """Return a ResourceQuota that is enforced as it is written."""
    name = more.pop("name", QUOTA_OBJECT_NAME)
    numbers = {"enforced": hard, "used": 0, **more}
    return LimitView(ref("ResourceQuota", name, namespace, "v1"), "1", quota, hard, **numbers)


def a_quota(name: str, groups: int, *namespaces: str, created: str = "2026-01-01") -> QuotaView:
    """Return a CTAQuota."""
    spec = QuotaSpec(groups=groups, namespaces=namespaces)
    return QuotaView(ref("CTAQuota", name, "", "ctagroup.dev/v1alpha1"), "1", created, 1, spec, QuotaStatus())


def a_node(view: ClusterView, name: str, *free: int, tenants: Sequence[Allocation] = ()) -> None:
    """Put a node of H100s with these free groups into the view; ``tenants`` are on the first GPU."""
    facts = NodeFacts(NodeName(name), pods=100, groups=1024)
    view.nodes.put(NodeView(facts, str(len(view.nodes) + 1)))
    gpus = tuple(
        GpuStatus(
            uuid=f"GPU-{name}-{index}",
            index=index,
            product="H100",
            compute_capability="9.0",
            sm_count=132,
            capacity=128,
            minimum=8,
            step=8,
            free=room,
            allocations=tuple(tenants) if index == 0 else (),
        )
        for index, room in enumerate(free)
    )
    view.cta_nodes.put(CtaNodeView(NodeName(name), "1", NodeStatus(resource_name=RESOURCE, gpus=gpus)))


def a_view(*namespaces: str) -> ClusterView:
    """Return a view with namespaces, the usual one when none is named."""
    view = ClusterView()
    for name in namespaces or (SPACE,):
        view.namespaces.put(NamespaceView(name, "1", {}))
    return view


def a_reconciler(
    view: ClusterView,
    kube: FakeKube,
    servers: FakeServers | None = None,
    refusals: Mapping[str, str] | None = None,
) -> WorkloadReconciler:
    """Return a reconciler of that view."""
    return WorkloadReconciler(
        view,
        kube,
        FakeClock(),
        events=EventWriter(kube, FakeClock(), "me"),
        denials=Denials(view, RESOURCE),
        refusals=refusals or {},
        servers=servers or FakeServers(),
    )
