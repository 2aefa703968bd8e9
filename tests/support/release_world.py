"""A cluster in memory as ``check-release`` sees it: CTANodes, Nodes, and a webhook that sees pods. For its tests."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from cta_group_core.names import GATE_PLACEMENT, LABEL_REQUESTS
from cta_group_operator.errors import ApiError
from cta_group_operator.ports import Json

RESOURCE = "nvidia.com/cta-group"


def condition(kind: str, status: str = "True", message: str = "") -> dict[str, str]:
    """Return a condition of a CTANode."""
    return {"type": kind, "status": status, "reason": "Because", "message": message}


def now_text() -> str:
    """Return this moment as a Lease tells it."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def told(**changes: Any) -> dict[str, Any]:
    """Return the status of a CTANode that is in order."""
    conditions = [condition(kind) for kind in ("Registered", "MPSReady", "HoldersKnown")]
    whole = {"resourceName": RESOURCE, "nodeUID": "uid-gpu", "confirmedAt": "2026-12-01T00:00:00Z"}
    return {**whole, "capacity": 128, "allocatable": 128, "conditions": conditions, **changes}


class WorldInMemory:
    """One GPU node, and a webhook that puts label and gate on what is rehearsed."""

    def __init__(self) -> None:
        self.published: dict[str, Any] = {"gpu": {"metadata": {"name": "gpu"}, "status": told()}}
        self.machines: dict[str, Any] = {"gpu": self.machine("gpu", "128")}
        self.labels = {LABEL_REQUESTS: "true"}
        self.gates = [{"name": GATE_PLACEMENT}]
        self.lease: dict[str, Any] = {"holderIdentity": "operator-1", "renewTime": now_text()}
        self.renewals: list[str] = []
        """The next times of renewal, one for each question."""
        self.failures: dict[str, ApiError] = {}
        """Raised by what is asked of a path that ends so."""
        self.rehearsed: list[tuple[str, Json]] = []
        self.becomes_well: Callable[[], None] | None = None
        """Called when it is asked for the third time."""

    @staticmethod
    def machine(name: str, groups: str) -> dict[str, Any]:
        """Return a Node."""
        status = {"allocatable": {RESOURCE: groups}}
        return {"metadata": {"name": name, "uid": f"uid-{name}"}, "status": status}

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """Return a list in pages of one."""
        self._fail(path)
        if query is None:
            assert path == "/apis/coordination.k8s.io/v1/namespaces/cta-group/leases/cta-group-operator"
            if self.renewals:
                self.lease["renewTime"] = self.renewals.pop(0)
            return {"metadata": {"name": "cta-group-operator"}, "spec": self.lease}
        kept = list((self.published if path.endswith("/ctanodes") else self.machines).values())
        start = int(query.get("continue", "0"))
        more = {"continue": str(start + 1)} if len(kept) > start + 1 else {}
        return {"metadata": more, "items": kept[start : start + 1]}

    async def rehearse(self, path: str, body: Json) -> Json:
        """Return the pod as the webhook leaves it."""
        self.rehearsed.append((path, body))
        if len(self.rehearsed) == 3 and self.becomes_well:
            self.becomes_well()
        self._fail(path)
        metadata = {**body["metadata"], "labels": {**body["metadata"]["labels"], **self.labels}}
        return {**body, "metadata": metadata, "spec": {**body["spec"], "schedulingGates": self.gates}}

    def _fail(self, path: str) -> None:
        for end, failure in self.failures.items():
            if path.endswith(end):
                raise failure
