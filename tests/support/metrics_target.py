"""Serves a registry over HTTP as its process would: the node's own exposition, or prometheus_client's."""

from contextlib import ExitStack

import prometheus_client

from cta_group_plugin import exposition
from cta_group_plugin.probes import ProbeChecks, ProbeServer

Registry = prometheus_client.CollectorRegistry | exposition.CollectorRegistry


def served(running: ExitStack, registry: Registry) -> str:
    """Serve a registry at a free port until ``running`` ends; return ``host:port``."""
    if isinstance(registry, exposition.CollectorRegistry):
        checks = ProbeChecks(registry, live=lambda: "", ready=lambda: "")
        return f"127.0.0.1:{running.enter_context(ProbeServer('127.0.0.1:0', checks)).port}"
    server, thread = prometheus_client.start_http_server(0, "127.0.0.1", registry)
    running.callback(thread.join)
    running.callback(server.server_close)
    running.callback(server.shutdown)
    return f"127.0.0.1:{server.server_port}"
