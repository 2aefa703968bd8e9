"""A fake of the API server behind the port ``KubeApi``: objects in memory, versions, JSON patches. For the operator."""

import copy
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from cta_group_operator.errors import ApiError, Conflict, NotFound, Rejected
from cta_group_operator.ports import Json


class MemoryKube:
    """Keeps objects by their path, with a new resourceVersion at each write, and refuses what is out of date."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.writes: list[str] = []
        """Verb and path of each write that was accepted."""
        self.failure: ApiError | None = None
        """What every call raises while it is set."""
        self._versions = count(1)

    def put(self, path: str, body: Mapping[str, Any]) -> None:
        """Place an object as somebody else would."""
        self.objects[path] = self._versioned(body)

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """Return a copy of one object."""
        assert not query, "lists are not kept here"
        return copy.deepcopy(self._found(path))

    async def create(self, path: str, body: Json) -> Json:
        """Create, unless the name is taken."""
        self._fail()
        full = f"{path}/{body['metadata']['name']}"
        if full in self.objects:
            raise Conflict(f"POST {path}: exists")
        return self._write("create", full, body)

    async def update(self, path: str, body: Json) -> Json:
        """Replace, unless the object is newer than ``body``."""
        found = self._found(path)
        if found["metadata"]["resourceVersion"] != body["metadata"].get("resourceVersion"):
            raise Conflict(f"PUT {path}: the object changed")
        return self._write("update", path, body)

    async def merge_patch(self, path: str, body: Json) -> Json:
        """Merge members, RFC 7386."""
        return self._write("merge", path, _merged(self._found(path), body))

    async def json_patch(self, path: str, operations: Sequence[Json]) -> Json:
        """Apply test, add, replace and remove; all or none."""
        changed = copy.deepcopy(self._found(path))
        for operation in operations:
            _apply(changed, operation)
        return self._write("patch", path, changed)

    async def delete(self, path: str, resource_version: str | None = None) -> None:
        """Remove, only in that version when one is given."""
        found = self._found(path)
        if resource_version not in (None, found["metadata"]["resourceVersion"]):
            raise Conflict(f"DELETE {path}: the object changed")
        del self.objects[path]
        self.writes.append(f"delete {path}")

    def _write(self, verb: str, path: str, body: Mapping[str, Any]) -> Json:
        self.objects[path] = self._versioned(body)
        self.writes.append(f"{verb} {path}")
        return copy.deepcopy(self.objects[path])

    def _versioned(self, body: Mapping[str, Any]) -> dict[str, Any]:
        made = copy.deepcopy(dict(body))
        made["metadata"] = {**made.get("metadata", {}), "resourceVersion": str(next(self._versions))}
        return made

    def _found(self, path: str) -> dict[str, Any]:
        self._fail()
        if path not in self.objects:
            raise NotFound(f"{path}: not found")
        return self.objects[path]

    def _fail(self) -> None:
        if self.failure is not None:
            raise self.failure


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        return patch
    kept = {key: value for key, value in target.items() if patch.get(key, value) is not None or key not in patch}
    return kept | {key: _merged(kept.get(key, {}), value) for key, value in patch.items() if value is not None}


def _apply(document: Any, operation: Mapping[str, Any]) -> None:
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
    for part in parents:
        document = document[int(part) if isinstance(document, list) else part]
    key: Any = int(last) if isinstance(document, list) and last != "-" else last
    verb = operation["op"]
    if verb == "test":
        if document[key] != operation["value"]:
            raise Rejected(f"test of {operation['path']} failed")
    elif verb == "remove":
        del document[key]
    elif isinstance(document, list) and verb == "add":
        document.insert(len(document) if key == "-" else key, operation["value"])
    else:
        document[key] = operation["value"]
