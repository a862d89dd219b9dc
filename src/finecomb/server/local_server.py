"""Local study server that runs for the duration of a `with` block, and HTTP clients for it."""

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
from finecomb.core.guarded_json import load_json
from finecomb.server.app import create_app
from finecomb.server.auth import CSRF_HEADER

_TIMEOUT_SECONDS = 30.0  # maximum wait for the server to respond


@contextmanager
def serve_locally(store: Store) -> Iterator[int]:
    """Serve a study in a thread on a free local port, and yield the port."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        create_app(store), log_level="error", access_log=False, lifespan="off", ws="none", timeout_keep_alive=600
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        until = time.monotonic() + _TIMEOUT_SECONDS
        while not server.started:
            if time.monotonic() > until:
                raise FinecombError("the server did not start; run `finecomb serve` on the same study to see why")
            time.sleep(0.01)
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(_TIMEOUT_SECONDS)
        listening.close()


class BrowserClient:
    """HTTP client that keeps cookies and sends the CSRF token, as a browser does."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS)
        self._cookies: dict[str, str] = {}
        self.token = ""

    def send_request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request, and return the status and the JSON of the response."""
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
        return response.status, load_json(text) if text and is_json else None

    def put_change(self, path: str, **body: Any) -> Any:
        """Send a change by PUT. Raise an error with the server's message when it is not accepted."""
        status, answer = self.send_request("PUT", path, {"change": uuid.uuid4().hex, **body})
        if status != 200:
            raise FinecombError(f"the server rejected PUT {path}: {answer.get('say') if answer else status} {answer}")
        return answer

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
