"""A cluster as far as whoever asks may read it: somebody's own namespace, most often, and nothing of the cluster's.

What is refused is left out and noted, so that the rest is told all the same, and with it what could not be looked at.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from cta_group_cli.errors import AccessDenied
from cta_group_cli.kinds import POD, REPLICA_SET, Kind
from cta_group_cli.objects import Controller, Event, Pod
from cta_group_cli.ports import ClusterReader, Node, Part, Quota, Unreadable
from cta_group_core.workload import WorkloadStatus

Read = TypeVar("Read")
_EXPLANATIONS: Final = "CTAWorkloads"


class AllowedReader:
    """As :class:`cta_group_cli.ports.ClusterReader`, but nothing of it raises AccessDenied."""

    def __init__(self, reader: ClusterReader) -> None:
        self._reader = reader
        self.refusals: dict[str, AccessDenied] = {}
        """What could not be read, in words, with the first refusal of each."""

    @property
    def namespace(self) -> str:
        """Namespace to use when none is said."""
        return self._reader.namespace

    @property
    def not_read(self) -> str:
        """A sentence about what was refused; empty when nothing was."""
        return f"Not read, since you may not: {', '.join(self.refusals)}." if self.refusals else ""

    @property
    def reads_explanations(self) -> bool:
        """Whether what the operator wrote may be read, as far as it was asked for."""
        return _EXPLANATIONS not in self.refusals

    def refusal_of(self, kind: Kind) -> AccessDenied | None:
        """Return why an object of a kind may be there and not be seen; None when it would have been seen."""
        return self.refusals.get(_EXPLANATIONS if kind.path is None else _plural(kind))

    def nodes(self) -> Sequence[Node | Unreadable]:
        """Return every CTANode."""
        return self._allowed("CTANodes", self._reader.nodes, ())

    def quotas(self) -> Sequence[Quota | Unreadable]:
        """Return every CTAQuota."""
        return self._allowed("CTAQuotas", self._reader.quotas, ())

    def part(self, namespace: str) -> Part | None:
        """Return what a namespace has of its CTAQuota."""
        return self._allowed("ResourceQuotas", partial(self._reader.part, namespace), None)

    def workload(self, namespace: str, name: str) -> WorkloadStatus | None:
        """Return the status of a CTAWorkload."""
        return self._allowed(_EXPLANATIONS, partial(self._reader.workload, namespace, name), None)

    def pod(self, namespace: str, name: str) -> Pod | None:
        """Return a pod."""
        return self._allowed(_plural(POD), partial(self._reader.pod, namespace, name), None)

    def pods(self, namespace: str) -> Sequence[Pod]:
        """Return every pod of a namespace."""
        return self._allowed(_plural(POD), partial(self._reader.pods, namespace), ())

    def controller(self, kind: Kind, namespace: str, name: str) -> Controller | None:
        """Return an object that makes pods."""
        return self._allowed(_plural(kind), partial(self._reader.controller, kind, namespace, name), None)

    def replica_sets(self, namespace: str) -> Sequence[Controller]:
        """Return every ReplicaSet of a namespace."""
        return self._allowed(_plural(REPLICA_SET), partial(self._reader.replica_sets, namespace), ())

    def creation_failures(self, namespace: str) -> Sequence[Event]:
        """Return the events about pods that could not be created."""
        return self._allowed("events", partial(self._reader.creation_failures, namespace), ())

    def _allowed(self, what: str, read: Callable[[], Read], instead: Read) -> Read:
        try:
            return read()
        except AccessDenied as refused:
            self.refusals.setdefault(what, refused)
            return instead


def _plural(kind: Kind) -> str:
    return f"{kind.name}s"
