"""Tests of unfinished requests, which are closed and block no one."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn

from finecomb.collection.database.store import Store
from finecomb.server import connections, headers
from finecomb.server.app import create_app
from finecomb.server.connections import build_uvicorn_config

INCOMPLETE_REQUESTS = [
    b"",
    b"GET /api/me HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow",
    b"PUT /api/steps/x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900\r\n\r\n{",
]


@contextlib.contextmanager
def running(store: Store) -> Iterator[int]:
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(build_uvicorn_config(create_app(store), ""))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield int(listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_unfinished_requests_are_closed_and_keep_nobody_out(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr(headers, "BODY_TIMEOUT_SECONDS", 0.5)
    with running(store) as port, contextlib.ExitStack() as stack:
        hanging = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30)) for _ in range(60)]
        for number, connection in enumerate(hanging):
            connection.sendall(INCOMPLETE_REQUESTS[number % len(INCOMPLETE_REQUESTS)])
        asking = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        asking.request("GET", "/api/me")
        assert asking.getresponse().status == 401
        asking.close()
        start = time.monotonic()
        for connection in hanging:
            while connection.recv(4096):
                pass  # perhaps a response, and then the end
        assert time.monotonic() - start < 25
