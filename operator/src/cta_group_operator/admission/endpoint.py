"""The HTTP side of admission: reads a question, asks for the decision, writes the answer.

It is total: whatever goes wrong inside, the pod is let in as it is, the creator is warned and a metric counts it. Only
a body that is no question at all gets an HTTP error.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from aiohttp import web

from cta_group_operator.admission.decision import Mutation, Pauses, mutate, validate
from cta_group_operator.admission.gpu_kinds import SliceFacts
from cta_group_operator.admission.metrics import AdmissionMetrics
from cta_group_operator.admission.pod import Pod
from cta_group_operator.admission.remembered import Remembered
from cta_group_operator.admission.review import Answer, BadReview, Request, read_pod, read_review, write_answer
from cta_group_operator.admission.settings import PodRules
from cta_group_operator.logs import EventLog

_log = EventLog(__name__)
_LARGEST_BODY_BYTES: Final = 8 * 1024 * 1024
"""An object of the API has at most 1.5 MiB in etcd; a question holds two of them, as JSON."""

Decide = Callable[[Pod], Mutation]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Answers questions about pods."""

    rules: PodRules
    facts: SliceFacts
    metrics: AdmissionMetrics
    pauses: Pauses = lambda _: ""

    def application(self) -> web.Application:
        """Return the routes: ``/mutate``, ``/validate``, ``/healthz``."""
        application = web.Application(client_max_size=_LARGEST_BODY_BYTES)
        application.router.add_post("/mutate", partial(self._answer, "mutate", self._mutating()))
        application.router.add_post("/validate", partial(self._answer, "validate", self._validating()))
        application.router.add_get("/healthz", _healthy)
        return application

    def _mutating(self) -> Decide:
        alike = Remembered(lambda pod, facts: mutate(pod, self.rules, facts), self.facts)

        def decide(pod: Pod) -> Mutation:
            if (pod.spec.scheduler_name or "") in self.rules.gateless_schedulers:  # it may have to wait, and not always
                return mutate(pod, self.rules, self.facts, self.pauses)
            return alike(pod)

        return decide

    def _validating(self) -> Decide:
        return Remembered(lambda pod, facts: Mutation(validate(pod, self.rules, facts)), self.facts)

    async def _answer(self, path: str, decide: Decide, request: web.Request) -> web.Response:
        started = time.perf_counter()
        body = await request.read()
        try:
            question = read_review(body)
            answer = self._decide(question, decide)
        except BadReview as bad:
            self.metrics.observe_error("bad_review")
            return web.Response(status=400, text=f"{bad}\n")
        finally:
            self.metrics.observe_answer(path, time.perf_counter() - started)
        return web.Response(body=write_answer(question.uid, answer), content_type="application/json")

    def _decide(self, question: Request, decide: Decide) -> Answer:
        pod = read_pod(question)
        if pod is None:
            return Answer()
        try:
            decided = decide(pod)
        except Exception as fault:  # noqa: BLE001 - outermost edge: a fault of ours must not keep a pod from being created
            _log.error("admission_failed", cause=fault, namespace=question.namespace, uid=question.uid)
            self.metrics.observe_error("internal")
            return Answer(
                warnings=["cta-group could not look at this pod: it is created as it is; see the operator's log"]
            )
        if not question.dry_run:
            for flag in decided.changed_flags:
                self.metrics.observe_change(flag)
        return decided.answer


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")
