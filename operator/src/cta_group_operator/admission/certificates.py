"""Carries out the rotation: the leader keeps the Secret and the authorities that the webhook configurations trust."""

import base64
from dataclasses import dataclass
from datetime import datetime

from cta_group_operator.admission.authority import BadCertificate
from cta_group_operator.admission.certificate_sources import (
    AUTHORITIES,
    AUTHORITY_KEY,
    SERVING,
    SERVING_KEY,
    field_of,
)
from cta_group_operator.admission.rotation import Material, Step, next_step, read_material, take_step
from cta_group_operator.admission.settings import EndpointSettings
from cta_group_operator.admission.trust import publish, registered
from cta_group_operator.errors import NotFound
from cta_group_operator.logs import EventLog
from cta_group_operator.one_by_one import OneByOne
from cta_group_operator.ports import Clock, Json, KubeApi
from cta_group_operator.resources import SECRETS

_log = EventLog(__name__)


@dataclass(frozen=True, slots=True)
class CertificateKeeper:
    """One round after the other brings Secret and configuration to where they must be. Only the leader runs it.

    Rounds are safe to repeat and to cut short anywhere: each begins with what is there, and each write is refused by
    the API server when somebody else wrote in between.
    """

    kube: KubeApi
    settings: EndpointSettings
    clock: Clock

    async def round(self) -> Step:
        """Take the next step, if any; raises ApiError, after which the next round goes on."""
        step = await self._step()
        if step is Step.START_OVER:
            await self._step()  # where nobody serves anything there is nothing to wait for
        return step

    async def _step(self) -> Step:
        now = datetime.fromisoformat(self.clock.utc_text())
        names, lifetimes = self.settings.server_names, self.settings.lifetimes
        secret = await self._secret()
        material = _material_of(secret)
        configurations = await registered(self.kube, self.settings.configuration_name)
        trusted = material is not None and all(one.trusts(material) for one in configurations)
        step = next_step(material, names, now, lifetimes, trusted=trusted)
        if step is not Step.NOTHING:
            trusted_now = b"".join(bundle for one in configurations for bundle in one.bundles)
            material = take_step(step, material, names, now, lifetimes, published=trusted_now)
            await self._write_secret(secret, material)
            until = material.serving.ends.isoformat() if material.serving is not None else None
            _log.info("certificates_changed", step=step.value, serving_until=until)
        if material is not None:
            turns = OneByOne()
            for configuration in configurations:
                with turns.one(configuration.path):
                    await publish(self.kube, configuration, material)
            turns.end()
        return step

    async def _secret(self) -> Json | None:
        try:
            return await self.kube.get(SECRETS.path(self.settings.namespace, self.settings.secret_name))
        except NotFound:
            return None

    async def _write_secret(self, secret: Json | None, material: Material) -> None:
        data = {
            AUTHORITIES: material.bundle,
            AUTHORITY_KEY: material.authority_key,
            SERVING: material.serving.pem if material.serving is not None else b"",
            SERVING_KEY: material.serving_key,
        }
        encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
        if secret is None:
            metadata = {"name": self.settings.secret_name, "namespace": self.settings.namespace}
            body = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": encoded}
            await self.kube.create(SECRETS.path(self.settings.namespace), body)
        else:
            path = SECRETS.path(self.settings.namespace, self.settings.secret_name)
            await self.kube.update(path, {**secret, "data": {**(secret.get("data") or {}), **encoded}})


def _material_of(secret: Json | None) -> Material | None:
    if secret is None:
        return None
    try:
        fields = [field_of(secret, name) for name in (AUTHORITIES, AUTHORITY_KEY, SERVING, SERVING_KEY)]
        return read_material(*fields)
    except BadCertificate as bad:
        _log.warning("secret_not_usable", cause=bad)
        return None
