"""A latency budget on a real cluster: the operator's pod reads the server's metrics at the pod's own address."""

from cta_group_core.names import ANNOTATION_BUDGET
from team import Team

REQUESTS = 30
_ASK = f"""
import json, urllib.request
body = json.dumps({{"prompt": "x" * 40, "max_tokens": 2}}).encode()
for _ in range({REQUESTS}):
    asked = urllib.request.Request("http://127.0.0.1:8000/v1/completions", body, {{"Content-Type": "application/json"}})
    urllib.request.urlopen(asked, timeout=60).read()
"""


def test_a_server_keeps_its_budget_or_does_not(team: Team) -> None:
    """Explain says so in words, with what was measured and advice; a budget that is changed is judged anew."""
    team.start_server("server")
    team.wait_served("server")
    deployment = ("-n", team.namespace, "deployment/server")
    team.tools.kubectl("annotate", *deployment, f"{ANNOTATION_BUDGET}=ttft=60s")
    team.wait_explained("deployment/server", "Its latency budget ttft-p95=60s is not judged: ttft-p95 is not known")
    team.tools.kubectl("exec", *deployment, "--", "python3", "-c", _ASK)
    team.wait_explained("deployment/server", "Its latency budget ttft-p95=60s is kept: ttft-p95 is about")
    team.tools.kubectl("annotate", "--overwrite", *deployment, f"{ANNOTATION_BUDGET}=ttft-p50=0.001ms")
    told = team.wait_explained(
        "deployment/server", "ttft-p50=0.001ms is NOT kept", "Advice: 64 groups, then look again"
    )
    assert "of 1 pod." in told
