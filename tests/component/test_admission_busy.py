"""Pods are created while the rest of the process works: admission has a thread, and liveness hears when that stops."""

import asyncio
import gc
import http.client
import json
import ssl
import threading
from collections.abc import Collection
from pathlib import Path

import pytest

from admission_pods import H100, server_pod
from admission_running import Conversation, local_endpoint, patch_of
from cluster_harness.waiting import PATIENCE_SECONDS
from conditions import until
from cta_group_core.vllm.gpu import GpuKind
from cta_group_operator.admission.pod import Spec


def asked_in_this_thread(conversation: Conversation) -> str:
    """Ask about a pod and wait for the answer without giving the event loop of the test a turn."""
    trust = ssl.create_default_context(cadata=conversation.bundle.decode())
    asked = {"uid": "u-1", "kind": {"kind": "Pod"}, "object": server_pod("m")}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}
    connection = http.client.HTTPSConnection(
        "127.0.0.1", conversation.server.port, timeout=PATIENCE_SECONDS, context=trust
    )
    try:
        connection.request("POST", "/mutate", json.dumps(review), {"Content-Type": "application/json"})
        return connection.getresponse().read().decode()
    finally:
        connection.close()


class SlowFacts:
    """Facts that are known when the test says so."""

    def __init__(self) -> None:
        self.known = threading.Event()

    def kinds(self, spec: Spec) -> Collection[GpuKind]:
        """Wait, and know of no GPU."""
        assert self.known.wait(PATIENCE_SECONDS), spec
        return ()


async def test_it_answers_while_the_event_loop_of_the_process_stands_still(tmp_path: Path) -> None:
    """Nothing but the endpoint runs here until the answer has come."""
    async with local_endpoint(tmp_path, H100) as conversation:
        answer = json.loads(asked_in_this_thread(conversation))
        assert patch_of(answer["response"])


async def test_liveness_hears_that_the_thread_stands_still_and_goes_on(tmp_path: Path) -> None:
    """The event loop that answers liveness is not the one that stands still."""
    facts = SlowFacts()
    async with local_endpoint(tmp_path, facts) as conversation:
        asking = asyncio.create_task(conversation.ask(server_pod("m")))
        await until(lambda: conversation.server.idle_seconds() > 3)
        facts.known.set()
        assert (await asking)["allowed"]
        await until(lambda: conversation.server.idle_seconds() < 3)


async def test_the_thread_ends_with_the_endpoint(tmp_path: Path) -> None:
    """Nothing of it is left, and nothing is idle then."""
    async with local_endpoint(tmp_path, H100) as conversation:
        assert [thread for thread in threading.enumerate() if thread.name == "admission"]
    assert not [thread for thread in threading.enumerate() if thread.name == "admission"]
    assert conversation.server.idle_seconds() == 0


# What hung is left as it is, its connections too.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_thread_that_hangs_keeps_no_process_from_ending(tmp_path: Path) -> None:
    """The lease is given up and the process ends all the same."""
    facts = SlowFacts()
    async with local_endpoint(tmp_path, facts) as conversation:
        asking = asyncio.create_task(conversation.ask(server_pod("m")))
        await until(lambda: conversation.server.idle_seconds() > 3)
        await conversation.server.close(patience_seconds=0.1)
        assert not facts.known.is_set()
        facts.known.set()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    await until(lambda: not [thread for thread in threading.enumerate() if thread.name == "admission"])
    gc.collect()  # here, where it is expected, and not in the middle of another test
