"""What admission would have done to a pod that came past it: nothing can be changed any more, but it can be said."""

import msgspec

from cta_group_core.align_mode import AlignMode
from cta_group_operator.admission.alignment import advise, find_server, judged, mode_of
from cta_group_operator.admission.gpu_kinds import SliceFacts
from cta_group_operator.admission.pod import Pod
from cta_group_operator.admission.requests import asked_by
from cta_group_operator.admission.settings import PodRules
from cta_group_operator.ports import Json


def late_advice(body: Json, rules: PodRules, facts: SliceFacts) -> str:
    """Return the arguments that its vLLM server would have got, in words; empty for none, or for no pod."""
    try:
        pod = msgspec.json.decode(msgspec.json.encode(body), type=Pod)  # only text becomes Raw
    except msgspec.ValidationError:
        return ""
    server, _ = find_server(pod, asked_by(pod, rules.resource_name))
    if server is None or mode_of(pod, rules.alignment) is AlignMode.OFF:
        return ""
    kinds = facts.kinds(pod.spec)
    return advise(judged(server, pod, kinds), kinds, AlignMode.REPORT).by_hand
