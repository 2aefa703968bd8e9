"""What the admission endpoint needs of the operator's settings."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from cta_group_core.align_mode import AlignMode
from cta_group_core.names import DEFAULT_RESOURCE_NAME
from cta_group_operator.settings import Lifetimes, Settings


@dataclass(frozen=True, slots=True)
class PodRules:
    """What is done to a pod."""

    resource_name: str = DEFAULT_RESOURCE_NAME
    placement: bool = True
    """Gate pods, so that the operator chooses their nodes."""
    gateless_schedulers: frozenset[str] = frozenset()
    """Schedulers that bind a pod whatever gates it has: their pods are not gated."""
    alignment: AlignMode = AlignMode.ON
    """For pods whose annotation says nothing."""
    runtime_class: str = ""
    """Without it a pod gets the environment of its slice and no GPU. Empty: every runtime brings the GPU."""
    sets_runtime_class: bool = False
    """Give it to pods that name none; otherwise they are only told."""


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """Where the endpoint listens and where its certificate comes from."""

    port: int
    """0: any free one."""
    namespace: str
    service_name: str
    secret_name: str
    configuration_name: str
    """Name of the webhook configurations that trust the certificate."""
    host: str = "0.0.0.0"  # noqa: S104 - the API server comes from another machine
    tls_dir: Path | None = None
    """Folder with ``tls.crt`` and ``tls.key``; the Secret and the configuration are then somebody else's."""
    lifetimes: Lifetimes = field(default_factory=Lifetimes)

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Take what concerns the endpoint."""
        return cls(
            port=settings.webhook_port,
            namespace=settings.namespace,
            service_name=settings.webhook_service_name,
            secret_name=settings.webhook_secret_name,
            configuration_name=settings.webhook_configuration_name,
            tls_dir=settings.webhook_tls_dir,
            lifetimes=settings.webhook_lifetimes,
        )

    @property
    def server_names(self) -> tuple[str, ...]:
        """Names by which the API server may call the endpoint; the second is the one it uses."""
        name, namespace = self.service_name, self.namespace
        return (f"{name}.{namespace}", f"{name}.{namespace}.svc", f"{name}.{namespace}.svc.cluster.local")


def pod_rules(settings: Settings) -> PodRules:
    """Take what concerns pods."""
    return PodRules(
        resource_name=settings.resource_name,
        placement=settings.placement,
        gateless_schedulers=settings.gateless_schedulers,
        alignment=settings.alignment,
        runtime_class=settings.runtime_class,
        sets_runtime_class=settings.sets_runtime_class,
    )
