"""A study served on this machine for as long as a program needs it, and browsers to visit it with."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from typing import Any

import uvicorn

from finecomb.collection.database.store import Store
from finecomb.core.errors import FinecombError
from finecomb.server.app import create_app
from finecomb.server.auth import CSRF_HEADER

_TIMEOUT_SECONDS = 30.0  # seconds until the server has to answer


@contextmanager
def serve_locally(store: Store) -> Iterator[int]:
    """The real server in a thread of its own, on a free port of this machine; yields the port."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        create_app(store), log_level="error", access_log=False, lifespan="off", ws="none", timeout_keep_alive=600
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        _wait_until_started(server)
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(_TIMEOUT_SECONDS)
        listening.close()


def _wait_until_started(server: uvicorn.Server) -> None:
    until = time.monotonic() + _TIMEOUT_SECONDS
    while not server.started:
        if time.monotonic() > until:
            raise FinecombError("the server did not start; try `finecomb serve` on the same study to see why")
        time.sleep(0.01)


class BrowserClient:
    """One person's browser: keeps its cookies, and sends the token that our pages send."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS)
        self._cookies: dict[str, str] = {}
        self.token = ""

    def send_request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request; returns the status and the answer's JSON."""
        headers = {"Content-Type": "application/json"}
        if self._cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        if self.token:
            headers[CSRF_HEADER] = self.token
        content = None if body is None else json.dumps(body)
        self._connection.request(method, path, content, headers)
        response = self._connection.getresponse()
        text = response.read()
        for line in response.headers.get_all("Set-Cookie") or ():
            cookie: SimpleCookie = SimpleCookie(line)
            self._cookies |= {name: morsel.value for name, morsel in cookie.items()}
        is_json = (response.headers.get("Content-Type") or "").startswith("application/json")
        return response.status, json.loads(text) if text and is_json else None

    def put_change(self, path: str, **body: Any) -> Any:
        """PUT a change; an answer other than yes is an error that says what the server said."""
        status, answer = self.send_request("PUT", path, {"change": uuid.uuid4().hex, **body})
        if status != 200:
            raise FinecombError(f"the server refused PUT {path}: {answer.get('say') if answer else status} {answer}")
        return answer

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()
