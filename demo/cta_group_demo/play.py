"""What the demo does on its cluster: a quota, five servers that fit, a sixth that does not."""

from typing import Any

from cluster_harness.tools import PROJECT, Tools
from cluster_harness.waiting import wait_for
from cta_group_core.names import API_GROUP_VERSION, DEFAULT_RESOURCE_NAME

TEAM = "team-a"
UNALIGNED = "team-z"
FITTING = tuple(f"chat-{number}" for number in range(1, 6))
GROUPS_HELD = 32 * len(FITTING)
REFUSED = "chat-6"
NEIGHBOURS = ("team-b/coder", "team-b/embed", "team-b/train", "team-c/rerank", "team-c/summary")
_MANIFESTS = PROJECT / "demo" / "manifests"
_PATIENCE_SECONDS = 120.0


def wait_for_capacity(tools: Tools) -> str:
    """Return the groups that the node offers, once it offers any."""
    return wait_for(lambda: _capacity(tools), "the node to offer groups", _PATIENCE_SECONDS)


def give_quota(tools: Tools) -> None:
    """Declare the team's quota and wait until the API server enforces it."""
    tools.kubectl("apply", "-f", str(_MANIFESTS / "quota.yaml"))
    wait_for(lambda: _is_enforced(tools), "the ResourceQuota of the team", _PATIENCE_SECONDS)


def start_servers(tools: Tools) -> None:
    """Make the five servers that the quota has room for and wait until each answers."""
    for name in FITTING:
        _create(tools, name)
    for name in FITTING:
        tools.kubectl("-n", TEAM, "rollout", "status", f"deployment/{name}", f"--timeout={_PATIENCE_SECONDS:.0f}s")


def ask_for_too_much(tools: Tools) -> str:
    """Make the sixth server and return what ``kubectl cta explain`` says of it."""
    _create(tools, REFUSED)
    wait_for(lambda: _has_sentence(tools), f"the explanation of {REFUSED}", _PATIENCE_SECONDS)
    return tools.cta("explain", f"deployment/{REFUSED}", "-n", TEAM)


def start_unaligned(tools: Tools) -> tuple[str, str]:
    """Make a server whose arguments are left alone; return why it ended, and what ``kubectl cta explain`` says."""
    manifest = str(_MANIFESTS / "unaligned.yaml")
    tools.kubectl("apply", "-f", manifest)
    log = wait_for(lambda: _last_words(tools), "the server that is not aligned to end", _PATIENCE_SECONDS)
    sentence = wait_for(lambda: _is_explained(tools), "the explanation of its end", _PATIENCE_SECONDS)
    tools.kubectl("delete", "-f", manifest, "--wait=false")
    return log, sentence


def let_neighbours_in(tools: Tools) -> None:
    """Make two more teams with quotas and servers of their own, and wait until the servers that fit answer."""
    tools.kubectl("apply", "-f", str(_MANIFESTS / "neighbours.yaml"))
    for target in NEIGHBOURS:
        namespace, name = target.split("/")
        tools.kubectl("-n", namespace, "rollout", "status", f"deployment/{name}", f"--timeout={_PATIENCE_SECONDS:.0f}s")


def pod_of(tools: Tools, name: str) -> dict[str, Any]:
    """Return the pod of one of the servers."""
    (pod,) = tools.objects("pods", "-n", TEAM, "-l", f"app={name}")["items"]
    return dict(pod)


def environment_of(tools: Tools, name: str) -> dict[str, str]:
    """Return the environment that the server's process really has."""
    lines = tools.kubectl("-n", TEAM, "exec", f"deployment/{name}", "--", "env").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def _create(tools: Tools, name: str) -> None:
    manifest = (_MANIFESTS / "server.yaml").read_text().replace("NAME", name)
    tools.apply(manifest)


def _last_words(tools: Tools) -> str | None:
    """Return the line by which the server that is not aligned ended; None while it has not."""
    for pod in tools.api.items(f"/api/v1/namespaces/{UNALIGNED}/pods"):
        for container in pod["status"].get("containerStatuses", ()):
            previous = "terminated" in container.get("lastState", {})
            if previous or "terminated" in container["state"]:
                logs = ("-n", UNALIGNED, "logs", pod["metadata"]["name"], f"--previous={str(previous).lower()}")
                return next((line for line in tools.kubectl(*logs).splitlines() if "ValueError" in line), None)
    return None


def _is_explained(tools: Tools) -> str | None:
    told = tools.cta("explain", "deployment/chat", "-n", UNALIGNED)
    return told if "exit code 1" in told else None


def _capacity(tools: Tools) -> str | None:
    (node,) = tools.api.items("/api/v1/nodes")
    groups = node["status"]["allocatable"].get(DEFAULT_RESOURCE_NAME, "0")
    return str(groups) if groups != "0" else None


def _is_enforced(tools: Tools) -> bool:
    quotas = tools.api.items(f"/api/v1/namespaces/{TEAM}/resourcequotas")
    return any(f"requests.{DEFAULT_RESOURCE_NAME}" in quota.get("status", {}).get("used", {}) for quota in quotas)


def _has_sentence(tools: Tools) -> bool:
    workloads = tools.api.items(f"/apis/{API_GROUP_VERSION}/namespaces/{TEAM}/ctaworkloads")
    return any(
        REFUSED in it["metadata"]["name"] and "short" in it.get("status", {}).get("message", "") for it in workloads
    )
