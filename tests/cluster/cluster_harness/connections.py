"""Connections to one server that are kept for the next call.

A TLS handshake takes both sides more than twice as long as the call for which it is made, and tests ask again and
again.
"""

import http.client
import weakref
from collections.abc import Callable, Mapping

MakeConnection = Callable[[], http.client.HTTPConnection]


class KeptConnections:
    """Calls to one server, from any thread; whoever drops this drops its connections too."""

    def __init__(self, make: MakeConnection) -> None:
        self._make = make
        self._idle: list[http.client.HTTPConnection] = []
        weakref.finalize(self, _close_all, self._idle)

    def ask(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Return status and body of the answer.

        A kept connection that the server has closed meanwhile is no error: the call is made again on another one. Where
        a new connection fails, that is an OSError or an HTTPException.
        """
        while self._idle:
            try:
                return self._ask(self._idle.pop(), method, path, body, headers)
            except TimeoutError:
                raise
            except (OSError, http.client.HTTPException, IndexError):  # IndexError: another thread was faster
                continue
        return self._ask(self._make(), method, path, body, headers)

    def _ask(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> tuple[int, bytes]:
        try:
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            text = answer.read()
        except BaseException:
            connection.close()
            raise
        if answer.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return answer.status, text

    def close(self) -> None:
        """End the connections that wait."""
        _close_all(self._idle)


def _close_all(idle: list[http.client.HTTPConnection]) -> None:
    while idle:
        idle.pop().close()
