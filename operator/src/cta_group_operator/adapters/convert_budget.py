"""From wire structs to a latency budget and where its servers tell their latencies. Most objects have no budget."""

from typing import TypeVar

import msgspec

from cta_group_core.budget.target import served_by
from cta_group_core.names import ANNOTATION_BUDGET
from cta_group_core.vllm.detect import ContainerFacts
from cta_group_core.vllm.surroundings import Surroundings, resolve_variables
from cta_group_operator.adapters import wire
from cta_group_operator.server_metrics import BudgetView

Item = TypeVar("Item")


def budget_of(
    meta: wire.Metadata, template: wire.Metadata | wire.TemplateMetadata, spec: wire.PodSpec | None
) -> BudgetView | None:
    """Return the budget that an object's annotations say, or else those of its pod template; None without one."""
    of_template = template.annotations or {}
    annotations = {**of_template, **(meta.annotations or {})}
    text = annotations.get(ANNOTATION_BUDGET)
    if text is None:
        return None
    containers = facts_of(spec)
    return BudgetView(text, served_by(containers, template.labels or {}, annotations))


def facts_of(spec: wire.PodSpec | None) -> list[ContainerFacts]:
    """Return what of a pod's regular containers is looked at."""
    return [_facts(one) for one in (spec.containers if spec is not None else None) or ()]


def _facts(container: wire.Container) -> ContainerFacts:
    variables = (
        (one.name, None if one.value_from is not None else one.value or "")
        for one in _items(container.env, wire.Variable)
    )
    return ContainerFacts(
        name=container.name,
        image=container.image,
        command=tuple(_items(container.command, str)),
        args=tuple(_items(container.args, str)),
        ports=tuple(one.container_port for one in _items(container.ports, wire.ContainerPort)),
        surroundings=Surroundings(
            resolve_variables(variables), more_variables=bool(_items(container.env_from, msgspec.Raw))
        ),
    )


def _items(raw: msgspec.Raw, kind: type[Item]) -> list[Item]:
    """Return a list that may be absent or null."""
    return msgspec.json.decode(raw, type=list[kind] | None) or [] if bytes(raw) else []  # type: ignore[valid-type]
