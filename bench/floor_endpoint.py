"""The floor of admission: the least that an endpoint on aiohttp takes, asked the same, with no thought behind it.

``python bench/floor_endpoint.py PORT FOLDER`` answers on 127.0.0.1 with the certificate in FOLDER. What it takes while
the machine is busy is what machine, client and transport take, so what the operator takes above it is its own.
"""

import ssl
import sys
from pathlib import Path

from aiohttp import web

_ANSWER = b'{"response": {"uid": "bench", "allowed": true, "patchType": "JSONPatch", "patch": "%s"}}' % (b"W10=" * 300)


async def _answer(request: web.Request) -> web.Response:
    await request.read()
    return web.Response(body=_ANSWER, content_type="application/json")


def main(port: int, folder: Path) -> None:
    """Serve until killed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    application = web.Application()
    application.router.add_post("/mutate", _answer)
    web.run_app(application, host="127.0.0.1", port=port, ssl_context=context, access_log=None, print=None)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
