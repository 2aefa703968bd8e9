"""YAML as Kubernetes' clients read it, where Python's parser takes an unquoted word for something else.

A date stays a text, and so do ``1:30`` and ``=``; ``1e3`` and ``0o10`` are numbers, ``y`` and ``n`` truth values. Tried
with kubectl 1.32; source: go-yaml v2, ``resolve.go``.
"""

import re
from collections.abc import Iterator
from typing import Any, ClassVar, Final

import yaml

_TAG: Final = "tag:yaml.org,2002:"
_TEXTS: Final = frozenset({f"{_TAG}timestamp", f"{_TAG}value", f"{_TAG}int", f"{_TAG}float"})
_INT: Final = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o[0-7_]+|0[0-7_]*|[1-9][0-9_]*)")
_FLOAT: Final = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)


class _Loader(yaml.SafeLoader):
    bool_values: ClassVar = {**yaml.SafeLoader.bool_values, "y": True, "n": False}


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _TEXTS]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(f"{_TAG}int", re.compile(f"^(?:{_INT.pattern})$"), list("-+0123456789"))
_Loader.add_implicit_resolver(f"{_TAG}float", re.compile(f"^(?:{_FLOAT.pattern})$"), list("-+0123456789."))
_Loader.add_implicit_resolver(f"{_TAG}bool", re.compile("^[yYnN]$"), list("yYnN"))


def documents_of(text: str) -> Iterator[Any]:
    """Yield each document; raises yaml.YAMLError, ValueError and RecursionError."""
    yield from yaml.load_all(text, _Loader)
