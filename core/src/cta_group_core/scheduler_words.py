"""What kube-scheduler's sentence about a pod that it cannot bind tells of the nodes.

It begins ``0/4 nodes are available:``. Reasons that lie with nodes follow with how many nodes each of them holds for
(``3 Insufficient cpu``), or speak of ``node(s)``; what lies with the pod itself, such as a claim that is not bound yet,
follows alone (FitError and the plugins' PreFilter in Kubernetes 1.37, pkg/scheduler).
"""

import re
from typing import Final

_ABOUT_ALL: Final = re.compile(r"nodes are available:\s*(?P<reason>\S+)")


def would_other_nodes_help(words: str) -> bool:
    """Tell whether a pod that was sent to some nodes may fit others: not where the reason lies with the pod itself.

    Of a sentence of another form nobody knows, so they may.
    """
    found = _ABOUT_ALL.search(words)
    return found is None or found["reason"].isdecimal() or found["reason"].startswith("node(s)")
