"""Whether pods are seen at their admission: the webhook, the policies, and pods that came past them."""

from collections.abc import Iterator, Sequence
from typing import Final

from cta_group_cli.doctor.gather import Facts
from cta_group_cli.doctor_facts import WebhookConfiguration
from cta_group_cli.objects import Pod
from cta_group_core.compatibility.findings import Finding, Severity
from cta_group_core.compatibility.webhook_findings import PATH_REMEDY, unseen_finding
from cta_group_core.names import LABEL_REQUESTS

_SLOW_PART: Final = 0.75
"""Of the webhook's own time limit."""
_SHOWN: Final = 3


def admission_findings(facts: Facts) -> Iterator[Finding]:
    """Yield what is wrong with the admission of pods."""
    for configuration in facts.webhooks:
        yield from _of_authority(configuration)
        if configuration.mutates:
            yield from _of_passed(configuration, facts.tenants)
            yield from _of_rehearsal(configuration, facts)
    yield from _of_missing(facts)
    yield from _of_policies(facts)


def _of_missing(facts: Facts) -> Iterator[Finding]:
    operator = facts.workload("operator")
    if operator is None or "webhooks" in _unread(facts) or operator.option("--webhook-port") in {None, "0"}:
        return
    there = {configuration.mutates for configuration in facts.webhooks}
    remedy = "helm upgrade the release, which makes it again"
    if True not in there:
        missing = "its MutatingWebhookConfiguration is missing: pods are neither placed nor aligned"
        yield Finding(Severity.ERROR, "webhook", missing, remedy)
    if False not in there:
        missing = "its ValidatingWebhookConfiguration is missing: vLLM servers that can never start are let in"
        yield Finding(Severity.WARNING, "webhook", missing, remedy)


def _of_authority(configuration: WebhookConfiguration) -> Iterator[Finding]:
    if not all(webhook.client_config.ca_bundle for webhook in configuration.webhooks):
        effect = "pods are neither placed nor aligned" if configuration.mutates else "no vLLM server is refused"
        yield Finding(
            Severity.ERROR,
            f"webhook {configuration.metadata.name}",
            "the operator, or cert-manager where that makes it, has not written its certificate authority, so the API "
            f"server cannot trust the webhook and {effect}",
            "look at the operator's log for why none of its replicas leads, or may write it (RBAC); with "
            "webhook.certificates.source=cert-manager, at the Certificate and at cert-manager's cainjector",
        )


def _of_passed(configuration: WebhookConfiguration, tenants: Sequence[Pod]) -> Iterator[Finding]:
    """Find pods that the webhook should have seen and has not: it labels every pod that it sees."""
    since = configuration.metadata.creation_timestamp
    passed = [
        pod.metadata.full_name
        for pod in tenants
        if LABEL_REQUESTS not in pod.metadata.labels
        and pod.metadata.creation_timestamp > since
        and _is_selected(configuration, pod.metadata.namespace)
    ]
    if passed:
        shown = ", ".join(passed[:_SHOWN]) + (", ..." if len(passed) > _SHOWN else "")
        yield Finding(
            Severity.WARNING,
            f"webhook {configuration.metadata.name}",
            f"{len(passed)} pods of the resource were admitted without it ({shown}): they are neither placed nor are "
            "vLLM's arguments fitted to their slice",
            PATH_REMEDY,
        )


def _of_rehearsal(configuration: WebhookConfiguration, facts: Facts) -> Iterator[Finding]:
    rehearsal = facts.rehearsal
    if rehearsal is None or not _is_selected(configuration, "default"):
        return
    limit_seconds = min((webhook.timeout_seconds for webhook in configuration.webhooks), default=10)
    subject = f"webhook {configuration.metadata.name}"
    if unseen := unseen_finding(subject, rehearsal.labels, rehearsal.seconds):
        yield unseen
    elif rehearsal.seconds > _SLOW_PART * limit_seconds:
        yield Finding(
            Severity.WARNING,
            subject,
            f"the rehearsal of a pod took {rehearsal.seconds:.1f} s; after {limit_seconds} s the API server does not "
            "wait any more",
            "give the operator more CPU (operator.resources), or look at the network between API server and operator",
        )


def _is_selected(configuration: WebhookConfiguration, namespace: str) -> bool:
    """Tell whether a namespace is looked at, as far as its name decides; the chart selects by nothing else."""
    labels = {"kubernetes.io/metadata.name": namespace}
    return any(webhook.namespace_selector.matches(labels) for webhook in configuration.webhooks)


def _of_policies(facts: Facts) -> Iterator[Finding]:
    bound = {binding.spec.policy_name for binding in facts.bindings}
    for policy in facts.policies:
        name = policy.metadata.name
        if name not in bound and "bindings of policies" not in _unread(facts):
            yield Finding(
                Severity.ERROR,
                f"policy {name}",
                "nothing binds it, so it refuses nothing",
                "helm upgrade the release, which makes the binding again",
            )
        for found in policy.status.type_checking.expression_warnings:
            yield Finding(
                Severity.ERROR,
                f"policy {name}",
                f"the API server finds an expression wrong: {' '.join(found.warning.split())}",
                "report it as a defect of this project, with the version of Kubernetes; its value policies.* switches "
                "the policy off",
            )


def _unread(facts: Facts) -> set[str]:
    return {entry.partition(": ")[0] for entry in facts.unread}
