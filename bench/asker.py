"""Asks an admission endpoint about a pod again and again, as an API server does, and writes how long each answer took.

``python bench/asker.py URL AUTHORITY_FILE PER_SECOND`` prints a line for each question until it is killed: when it was
asked, in seconds of the monotonic clock, and the milliseconds until its answer was read; a refused connection prints
nothing. It is a process of its own, so that nobody's work but the endpoint's is in the figures.
"""

import asyncio
import json
import ssl
import sys
import time

import aiohttp

_POD = {
    "metadata": {"generateName": "server-", "namespace": "team-a"},
    "spec": {
        "containers": [
            {
                "name": "vllm",
                "image": "vllm/vllm-openai:v0.27.1",
                "args": ["--model=Qwen/Qwen3-4B", "--max-model-len=8192"],
                "resources": {"limits": {"nvidia.com/cta-group": "32"}},
            }
        ]
    },
}
_REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "bench",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": "CREATE",
        "namespace": "team-a",
        "object": _POD,
    },
}


async def main(url: str, authority: str, per_second: float) -> None:
    """Ask at even distances, whether or not the last answer has come."""
    trust = ssl.create_default_context(cafile=authority)
    body = json.dumps(_REVIEW).encode()
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session,
        asyncio.TaskGroup() as group,
    ):
        due = time.monotonic()
        while True:
            group.create_task(_ask(session, url, body))
            due += 1 / per_second
            await asyncio.sleep(max(0.0, due - time.monotonic()))


async def _ask(session: aiohttp.ClientSession, url: str, body: bytes) -> None:
    asked = time.monotonic()
    try:
        async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as answer:
            text = await answer.read()
    except aiohttp.ClientError:
        return
    if b'"patch"' not in text:
        raise AssertionError(text)
    print(asked, (time.monotonic() - asked) * 1000, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
