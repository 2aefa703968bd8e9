"""The vLLM server of a pod template, read by admission's own rules: what the next pod is given when it comes."""

from collections.abc import Collection
from functools import lru_cache

import msgspec

from cta_group_core.nodes import Condition
from cta_group_core.vllm.account import args_condition, server_status
from cta_group_core.vllm.gpu import GpuKind
from cta_group_core.workload import ServerStatus
from cta_group_operator.admission.alignment import case_of, find_server, mode_of
from cta_group_operator.admission.gpu_kinds import SliceFacts
from cta_group_operator.admission.late import late_advice
from cta_group_operator.admission.patch import PodPatch
from cta_group_operator.admission.pod import Pod
from cta_group_operator.admission.requests import apply_annotation, asked_by
from cta_group_operator.admission.settings import PodRules
from cta_group_operator.ports import Json

_KEPT = 2048
"""Answers that are kept: a template is asked for at every change of its pods, and changes rarely itself."""
Found = tuple[ServerStatus, Condition] | None


class TemplateReader:
    """Reads templates, see :class:`cta_group_operator.reconcile.workload_status.ServerReader`."""

    def __init__(self, rules: PodRules, facts: SliceFacts) -> None:
        self._rules = rules
        self._facts = facts
        self._read = lru_cache(maxsize=_KEPT)(self._find)

    def read(self, template: bytes) -> Found:
        """See the interface."""
        if not template:
            return None
        try:
            pod = msgspec.json.decode(template, type=Pod)
        except msgspec.MsgspecError:
            return None
        return self._read(template, frozenset(self._facts.kinds(pod.spec)))

    def missed(self, pod: Json) -> str:
        """See the interface."""
        return late_advice(pod, self._rules, self._facts)

    def _find(self, template: bytes, kinds: Collection[GpuKind]) -> Found:
        pod = msgspec.json.decode(template, type=Pod)
        apply_annotation(pod, self._rules.resource_name, PodPatch(pod))
        server, _ = find_server(pod, asked_by(pod, self._rules.resource_name))
        if server is None:
            return None
        mode = mode_of(pod, self._rules.alignment)
        case = case_of(server, pod, kinds)
        return server_status(case), args_condition(case, mode=mode)
