"""JSON patches (RFC 6902) of a pod: members are added below parents that exist or are made first."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from cta_group_operator.admission.pod import Pod

_MOST_BYTES: Final = 256 * 1024
"""Of all annotations of an object, keys and values (Kubernetes, ``TotalAnnotationSizeLimitB``)."""


class PodPatch:
    """Collects the operations of one admission, each valid after those before it."""

    def __init__(self, pod: Pod) -> None:
        self.operations: list[dict[str, Any]] = []
        self._labels = pod.metadata.labels
        self._annotations = pod.metadata.annotations
        self._gates = [gate.name for gate in pod.spec.scheduling_gates or ()]
        self._containers = pod.containers
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
        """Set an annotation unless it has that value; None takes it away.

        One for which there is no room beside the pod's own is left out: the API server would refuse the pod.
        """
        if (self._annotations or {}).get(key) == value:
            return
        if value is None:
            self.operations.append({"op": "remove", "path": f"/metadata/annotations/{escape(key)}"})
            self._annotations = {name: text for name, text in (self._annotations or {}).items() if name != key}
            return
        annotations = {**(self._annotations or {}), key: value}
        if _bytes_of(annotations) > _MOST_BYTES:
            return
        if self._annotations is None:
            self._add("/metadata/annotations", {})
        self._annotations = annotations
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

    def words(self, index: int, field: str, before: Sequence[str], after: Sequence[str]) -> None:
        """Change the words of ``command`` or ``args`` that differ, and those alone; a list that is null is made."""
        path = f"/spec/containers/{index}/{field}"
        if tuple(before) == tuple(after):
            return
        if not before:
            self._add(path, list(after))
            return
        for operation, place, word in _word_operations(before, after):
            self.operations.append({"op": operation, "path": f"{path}/{place}", "value": word})

    def add_to_variable(self, index: int, name: str, words: str) -> None:
        """Add words at the end of an environment variable of a container; one that is not there is made."""
        env = self._containers[index].env
        path = f"/spec/containers/{index}/env"
        last = max((place for place, variable in enumerate(env or ()) if variable.name == name), default=None)
        if env is not None and last is not None:  # of two with one name the last counts
            value = env[last].value
            self._add(f"{path}/{last}/value", f"{value} {words}" if value else words)
            return
        if env is None:
            self._add(path, [])
        self._add(f"{path}/-", {"name": name, "value": words})

    def _add(self, path: str, value: Any) -> None:
        self.operations.append({"op": "add", "path": path, "value": value})


def _word_operations(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield operation, place and word: words are replaced where they stand, or added; none is taken away."""
    more = len(after) - len(before)
    first = next((at for at, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), len(before))
    inserted = more if more and list(before[first:]) == list(after[first + more :]) else 0
    for place in range(first, first + inserted):
        yield "add", str(place) if first < len(before) else "-", after[place]
    if inserted:
        return
    for place, word in enumerate(after):
        if place >= len(before):
            yield "add", "-", word
        elif before[place] != word:
            yield "replace", str(place), word


def _bytes_of(annotations: Mapping[str, str]) -> int:
    return sum(len(text.encode(errors="replace")) for pair in annotations.items() for text in pair)


def escape(key: str) -> str:
    """Return a key as a part of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
