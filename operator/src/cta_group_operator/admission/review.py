"""AdmissionReview (admission.k8s.io/v1): the API server's question about an object, and the answer."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import Struct

from cta_group_operator.admission.pod import Pod

_GROUP_VERSION: Final = "admission.k8s.io/v1"
_KIND: Final = "AdmissionReview"
_WARNING_MOST: Final = 256
"""Longer ones are cut by the API server (source: Kubernetes, dynamic admission control, "Response")."""


class BadReview(ValueError):
    """The body is no AdmissionReview that can be answered."""


class Kind(Struct):
    """request.kind."""

    group: str = ""
    kind: str = ""


class Request(Struct, rename="camel"):
    """request; the object is decoded later, when it is a pod."""

    uid: str
    kind: Kind
    operation: str = "CREATE"
    namespace: str = ""
    dry_run: bool | None = None
    sub_resource: str = ""
    object: msgspec.Raw = msgspec.Raw(b"null")


class Review(Struct, rename="camel"):
    """The whole question."""

    api_version: str = ""
    kind: str = ""
    request: Request | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether the object comes in, changed how, and what its creator is told."""

    allowed: bool = True
    patch: Sequence[dict[str, Any]] = ()
    """JSON patch, RFC 6902."""
    warnings: Sequence[str] = ()
    message: str = ""
    """Why it is refused."""


_REVIEWS = msgspec.json.Decoder(Review)
_PODS = msgspec.json.Decoder(Pod)
_UNDECODED = (msgspec.MsgspecError, RecursionError)
"""The latter for what is nested deeper than Python goes, also in a field that is skipped."""


def read_review(body: bytes) -> Request:
    """Return the question in an HTTP body; raises BadReview with a sentence."""
    try:
        review = _REVIEWS.decode(body)
    except _UNDECODED as bad:
        raise BadReview(f"not an AdmissionReview: {bad}") from bad
    if review.kind != _KIND or review.api_version != _GROUP_VERSION:
        raise BadReview(f"{review.api_version or '?'} {review.kind or '?'}: only {_GROUP_VERSION} {_KIND} is answered")
    if review.request is None or not review.request.uid:
        raise BadReview("the AdmissionReview has no request with a uid")
    return review.request


def read_pod(request: Request) -> Pod | None:
    """Return the pod that is being created, None when the question is about something else; raises BadReview."""
    if request.kind.kind != "Pod" or request.kind.group or request.operation != "CREATE" or request.sub_resource:
        return None
    try:
        return _PODS.decode(request.object)
    except _UNDECODED as bad:
        raise BadReview(f"the object is not a pod: {bad}") from bad


def write_answer(uid: str, answer: Answer) -> bytes:
    """Return the HTTP body of an answer."""
    response: dict[str, Any] = {"uid": uid, "allowed": answer.allowed}
    if answer.warnings:
        response["warnings"] = [_cut(warning) for warning in answer.warnings]
    if answer.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(answer.patch)).decode()
    if not answer.allowed:
        response["status"] = {"code": 422, "reason": "Invalid", "message": answer.message}
    return msgspec.json.encode({"apiVersion": _GROUP_VERSION, "kind": _KIND, "response": response})


def _cut(warning: str) -> str:
    return warning if len(warning) <= _WARNING_MOST else f"{warning[: _WARNING_MOST - 3]}..."
