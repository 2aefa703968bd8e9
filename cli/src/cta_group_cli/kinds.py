"""Kinds of objects as people type them: ``deploy/web``, ``pod/web-0``, ``InferenceService/llama``."""

import re
from dataclasses import dataclass
from typing import Self

from cta_group_cli.errors import BadInput
from cta_group_core.workload import kind_word


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind. ``path`` is None for a kind that is known by its name alone: only its CTAWorkload can be read."""

    name: str
    """As in ``kind:``."""
    path: str | None = None
    """Where the API server serves it, ``apis/apps/v1``."""
    plural: str = ""
    short: tuple[str, ...] = ()

    def is_called(self, word: str) -> bool:
        """Tell whether a person means this kind by ``word``; ``deployment.apps`` names its group too."""
        singular = self.name.lower()
        names = {singular, self.plural, *self.short}
        if self.path and self.path.startswith("apis/"):
            group = self.path.split("/")[1]
            names |= {f"{singular}.{group}", f"{self.plural}.{group}"}
        return word in names


POD = Kind("Pod", "api/v1", "pods", ("po",))
REPLICA_SET = Kind("ReplicaSet", "apis/apps/v1", "replicasets", ("rs",))
_KINDS = (
    POD,
    REPLICA_SET,
    Kind("Deployment", "apis/apps/v1", "deployments", ("deploy",)),
    Kind("StatefulSet", "apis/apps/v1", "statefulsets", ("sts",)),
    Kind("DaemonSet", "apis/apps/v1", "daemonsets", ("ds",)),
    Kind("Job", "apis/batch/v1", "jobs"),
    Kind("CronJob", "apis/batch/v1", "cronjobs", ("cj",)),
    Kind("LeaderWorkerSet", "apis/leaderworkerset.x-k8s.io/v1", "leaderworkersets", ("lws",)),
)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9.-]*")
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


def kind_called(word: str) -> Kind:
    """Return the kind that a person means by ``word``."""
    return next((kind for kind in _KINDS if kind.is_called(word.lower())), Kind(word))


def kind_of(word: str, api_version: str) -> Kind:
    """Return the kind that an owner reference means: others have a Job too, which is not read as Kubernetes' own."""
    written = kind_word(word, api_version)
    return kind_called(word) if written == word.lower() else Kind(written)


@dataclass(frozen=True, slots=True)
class Reference:
    """An object in a namespace."""

    kind: Kind
    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str, namespace: str) -> Self:
        """Read ``KIND/NAME``; raise BadInput for anything else."""
        word, slash, name = text.partition("/")
        if not (slash and _WORD.fullmatch(word) and _NAME.fullmatch(name)):
            raise BadInput(f"{text!r} names no object: write KIND/NAME, such as deployment/web, sts/llama or pod/web-0")
        if not _LABEL.fullmatch(namespace):
            raise BadInput(f"{namespace!r} cannot be a namespace: small letters, digits and dashes, 63 at most")
        return cls(kind_called(word), namespace, name)

    def __str__(self) -> str:
        return f"{self.kind.name.lower()}/{self.name}"
