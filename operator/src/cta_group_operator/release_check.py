"""The command ``cta-group-operator check-release``: whether a release does its work, seen from a pod beside it.

For ``helm test``. What is not well yet may become so: it looks again and again until nothing is wrong or its time is
over, and then says what is wrong and how to mend it. It changes nothing: the pod that it makes is a dry run.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from cta_group_core.compatibility.findings import Finding, Severity
from cta_group_core.names import DEFAULT_RESOURCE_NAME, LABEL_COMPONENT
from cta_group_operator.adapters.connection import load_connection
from cta_group_operator.adapters.kube import KubeClient
from cta_group_operator.errors import ApiError, NotFound
from cta_group_operator.listing import items
from cta_group_operator.ports import Json
from cta_group_operator.release_check_rules import (
    Rehearsal,
    Release,
    groups_offered,
    leader_finding,
    node_findings,
    refusal_finding,
    rehearsal_findings,
)
from cta_group_operator.resources import CTA_NODES, LEASES, NODES, PODS

_RIGHTS: Final = "helm test again, which makes the rights of its account anew"
_KINDS: Final = (
    "kubectl apply --server-side -f crds/, or crds.enabled=true of the chart's values, where the kind is missing"
)
_ELSEWHERE: Final = (
    "set helmTest.namespace of the chart's values to a namespace that admission looks at, and in which quotas and "
    "policies let such a pod in"
)


class CheckedCluster(Protocol):
    """The calls that a check makes. Each raises a subclass of ApiError."""

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """Return one object, or one page of a list."""

    async def rehearse(self, path: str, body: Json) -> Json:
        """Return what would be created; admission sees it, and nothing is stored."""


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """Everything that ``check-release`` can be told."""

    kubeconfig: Path | None = None
    """None: the service account of the pod."""
    resource_name: str = DEFAULT_RESOURCE_NAME
    namespace: str = "cta-group"
    """Of the release."""
    lease_name: str = "cta-group-operator"
    """By which one replica of its operator leads."""
    rehearse_in: str = "default"
    """Namespace of the rehearsed pod; empty: admission looks at none that is known."""
    groups: int = 8
    """What that pod asks for: the least that a GPU of the cluster takes."""
    webhook: bool = True
    """Whether the release has one; without it no pod is rehearsed."""
    placement: bool = True
    timeout_seconds: float = 60.0
    """How long what is wrong may become right."""
    pause_seconds: float = 2.0
    """Between two looks."""

    @property
    def release(self) -> Release:
        """The release that is meant."""
        return Release(self.namespace, self.resource_name, gates=self.placement)


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What was found at the last look."""

    findings: Sequence[Finding] = ()
    seen: Sequence[str] = ()
    """What is well, in words."""

    @property
    def is_well(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def words(self) -> str:
        """Return the report for people."""
        return "\n".join([*(finding.as_text() for finding in self.findings), *(f"WELL     {one}" for one in self.seen)])


def run(settings: CheckSettings) -> CheckReport:
    """Check the release in the cluster that is meant. Raises BadSetting for a kubeconfig that cannot be used."""
    return asyncio.run(_run(settings))


async def _run(settings: CheckSettings) -> CheckReport:
    async with KubeClient(load_connection(settings.kubeconfig)) as api:
        return await ReleaseCheck(api, settings).run()


class ReleaseCheck:
    """Looks until nothing is wrong, or until the time is over."""

    def __init__(self, api: CheckedCluster, settings: CheckSettings) -> None:
        self._api = api
        self._settings = settings
        self._first_renewal: str | None = None

    async def run(self) -> CheckReport:
        """Return the first report without a finding, or the last one."""
        report = CheckReport([_silence(self._settings.timeout_seconds)])
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.timeout_seconds):
                # Only asking tells whether something has become right.
                while not (report := await self._look()).is_well:  # noqa: ASYNC110
                    await asyncio.sleep(self._settings.pause_seconds)
        return report

    async def _look(self) -> CheckReport:
        admission = await self._admission() if self._settings.webhook else CheckReport()
        parts = [admission, await self._leader(), await self._nodes()]
        findings = [finding for part in parts for finding in part.findings]
        return CheckReport(findings, [words for part in parts for words in part.seen])

    async def _leader(self) -> CheckReport:
        try:
            lease = await self._api.get(LEASES.path(self._settings.namespace, self._settings.lease_name))
        except NotFound as none:
            return CheckReport([refusal_finding("lease", none, self._settings.release.look("operator"))])
        except ApiError as error:
            return CheckReport([refusal_finding("lease", error, _RIGHTS)])
        if wrong := leader_finding(self._settings.release, lease, self._first_renewal, datetime.now(UTC)):
            self._first_renewal = self._first_renewal or lease["spec"].get("renewTime")
            return CheckReport([wrong])
        return CheckReport(seen=[f"{lease['spec']['holderIdentity']} leads the operator"])

    async def _nodes(self) -> CheckReport:
        try:
            published = {_name(one): one async for one in items(self._api, CTA_NODES.path())}
        except ApiError as error:
            return CheckReport([refusal_finding("CTANodes", error, f"{_KINDS}; otherwise {_RIGHTS}")])
        try:
            machines = {_name(one): one async for one in items(self._api, NODES.path())}
        except ApiError as error:
            return CheckReport([refusal_finding("nodes", error, _RIGHTS)])
        # A CTANode outlives its Node for a moment, and says nothing then.
        published = {name: one for name, one in published.items() if name in machines}
        if wrong := tuple(node_findings(self._settings.release, published, machines)):
            return CheckReport(wrong)
        offered = groups_offered(published)
        told = f"{len(offered)} of {len(published)} nodes with the plugin offer {sum(offered.values())} groups"
        return CheckReport(seen=[f"{told}, and their kubelets say the same"])

    async def _admission(self) -> CheckReport:
        settings = self._settings
        if not settings.rehearse_in:
            told = "no pod was rehearsed: the namespace of the test is one that admission does not look at"
            return CheckReport([Finding(Severity.ERROR, "webhook", told, _ELSEWHERE)])
        started = time.monotonic()
        try:
            pod = await self._api.rehearse(PODS.path(settings.rehearse_in), _pod(settings))
        except ApiError as error:
            return CheckReport([refusal_finding("rehearsed pod", error, _ELSEWHERE)])
        rehearsal = Rehearsal(pod, time.monotonic() - started)
        if wrong := tuple(rehearsal_findings(settings.release, rehearsal)):
            return CheckReport(wrong)
        gated = " and is gated" if settings.placement else ""
        told = f"a rehearsed pod with {settings.groups} {settings.resource_name} comes before the webhook{gated}"
        return CheckReport(seen=[f"{told} ({rehearsal.seconds:.2f} s)"])


def _name(one: Json) -> str:
    return str(one["metadata"]["name"])


def _silence(seconds: float) -> Finding:
    told = f"it did not answer within {seconds:g} s"
    remedy = "let pods of the release's namespace reach the API server: look for a NetworkPolicy, DNS, a proxy"
    return Finding(Severity.ERROR, "API server", told, remedy)


def _pod(settings: CheckSettings) -> Json:
    """Return a pod that every level of Pod Security lets in."""
    container = {
        "name": "rehearsal",
        "image": "rehearsal",
        "resources": {"limits": {settings.resource_name: str(settings.groups)}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "cta-group-test-", "labels": {LABEL_COMPONENT: "test"}},
        "spec": {
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [container],
        },
    }
