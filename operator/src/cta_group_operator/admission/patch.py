"""JSON patches (RFC 6902) of a pod: members are added below parents that exist or are made first."""

from typing import Any

from cta_group_operator.admission.pod import Pod


class PodPatch:
    """Collects the operations of one admission, each valid after those before it."""

    def __init__(self, pod: Pod) -> None:
        self.operations: list[dict[str, Any]] = []
        self._labels = pod.metadata.labels
        self._annotations = pod.metadata.annotations
        self._gates = [gate.name for gate in pod.spec.scheduling_gates or ()]
        self._has_gates = pod.spec.scheduling_gates is not None

    def label(self, key: str, value: str) -> None:
        """Set a label unless it has that value."""
        if (self._labels or {}).get(key) == value:
            return
        if self._labels is None:
            self._add("/metadata/labels", {})
        self._labels = {**(self._labels or {}), key: value}
        self._add(f"/metadata/labels/{escape(key)}", value)

    def annotate(self, key: str, value: str | None) -> None:
        """Set an annotation unless it has that value; None takes it away."""
        if (self._annotations or {}).get(key) == value:
            return
        if value is None:
            self.operations.append({"op": "remove", "path": f"/metadata/annotations/{escape(key)}"})
            self._annotations = {name: text for name, text in (self._annotations or {}).items() if name != key}
            return
        if self._annotations is None:
            self._add("/metadata/annotations", {})
        self._annotations = {**(self._annotations or {}), key: value}
        self._add(f"/metadata/annotations/{escape(key)}", value)

    def gate(self, name: str) -> None:
        """Add a scheduling gate unless it is there."""
        if name in self._gates:
            return
        if self._has_gates:
            self._add("/spec/schedulingGates/-", {"name": name})
        else:
            self._add("/spec/schedulingGates", [{"name": name}])
        self._has_gates = True
        self._gates.append(name)

    def runtime_class(self, name: str) -> None:
        """Choose the container runtime of a pod that names none."""
        self._add("/spec/runtimeClassName", name)

    def container(self, index: int, field: str, value: Any) -> None:
        """Set a whole field of a regular container."""
        self._add(f"/spec/containers/{index}/{field}", value)

    def _add(self, path: str, value: Any) -> None:
        self.operations.append({"op": "add", "path": path, "value": value})


def escape(key: str) -> str:
    """Return a key as a part of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
