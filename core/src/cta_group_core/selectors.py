"""Label requirements as Kubernetes reads them: in a namespace selector, in a node's affinity terms.

Source of the rules: Kubernetes API reference, "Labels and Selectors" and "NodeSelectorRequirement".
"""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum

from pydantic import Field

from cta_group_core.nodes import ApiModel

_INTEGER = re.compile(r"[+-]?[0-9]{1,32}")


class Operator(StrEnum):
    """How a label is compared with the values. ``GT`` and ``LT`` exist in node affinity only."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


class Requirement(ApiModel):
    """One condition on one label."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Tell whether ``labels`` satisfy this; a missing label satisfies NotIn and DoesNotExist only."""
        return _RULES[self.operator](labels.get(self.key), self.values)


class LabelSelector(ApiModel):
    """A selector whose every part must hold. An empty one selects everything, as in Kubernetes."""

    match_labels: Mapping[str, str] = Field(default_factory=dict)
    match_expressions: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether an object with ``labels`` is selected."""
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            requirement.holds(labels) for requirement in self.match_expressions
        )


def _is_greater(label: str | None, values: tuple[str, ...]) -> bool:
    pair = _integers(label, values)
    return pair is not None and pair[0] > pair[1]


def _is_less(label: str | None, values: tuple[str, ...]) -> bool:
    pair = _integers(label, values)
    return pair is not None and pair[0] < pair[1]


def _integers(label: str | None, values: tuple[str, ...]) -> tuple[int, int] | None:
    """Return both as the scheduler reads them: decimal numbers of 64 bits, and no other texts that Python takes."""
    texts = (label or "", *values)
    if len(values) != 1 or not all(map(_INTEGER.fullmatch, texts)):
        return None
    one, other = map(int, texts)
    return (one, other) if all(-(2**63) <= number < 2**63 for number in (one, other)) else None


_RULES: Mapping[Operator, Callable[[str | None, tuple[str, ...]], bool]] = {
    Operator.IN: lambda label, values: label in values,
    Operator.NOT_IN: lambda label, values: label not in values,
    Operator.EXISTS: lambda label, _: label is not None,
    Operator.DOES_NOT_EXIST: lambda label, _: label is None,
    Operator.GT: _is_greater,
    Operator.LT: _is_less,
}
