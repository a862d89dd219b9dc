"""A strict local server: a provider's fake rejects every field and header that the provider does not document."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

REPLY_TEXT = '{"marks": []}'
KEY = "sk-test-key"


@dataclass(frozen=True)
class Answer:
    """A response. `cut` closes the connection after half of the body, and `hang` waits before the response."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False
    hang: float = 0.0

    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass(frozen=True)
class Received:
    """A request as received."""

    method: str
    path: str
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


class FakeServer:
    """A server that answers from `script` first, then as the provider documents."""

    def __init__(self) -> None:
        self.script: list[Answer] = []
        """Answers to the next model calls, used up in order."""
        self.received: list[Received] = []
        self.rejected: set[str] = set()
        """Parameters that the model does not support."""
        self.text = REPLY_TEXT
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.hooks: dict[str, Callable[[], None]] = {}
        """Functions called at a point of a batch, for example to cut the connection."""
        self.lock = threading.RLock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                owner.answer(self)

            def do_POST(self) -> None:
                owner.answer(self)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.root = f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return self.root

    def __enter__(self) -> Any:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Bodies of the model calls so far."""
        return [request.json for request in self.received if self.is_call(request)]

    def is_call(self, request: Received) -> bool:
        raise NotImplementedError

    def check(self, request: Received) -> Answer | None:
        """Return the error for a wrong header or field, or None."""
        raise NotImplementedError

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the body of a successful reply."""
        raise NotImplementedError

    def other(self, request: Received) -> Answer:
        """Answer a request that is not a model call."""
        return Answer(404, {"error": {"message": f"no such path {request.path}", "type": "invalid_request_error"}})

    def respond(self, request: Received) -> Answer:
        if (problem := self.check_key(request)) is not None:
            return problem
        if not self.is_call(request):
            return self.other(request)
        with self.lock:
            if self.script:
                return self.script.pop(0)
        return self.check(request) or Answer(200, self.complete(request.json), {"x-request-id": "req_1"})

    def check_key(self, request: Received) -> Answer | None:
        return None

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        if handler.headers.get("Transfer-Encoding", "").lower() == "chunked":
            chunks = []
            while size := int(handler.rfile.readline().split(b";")[0], 16):
                chunks.append(handler.rfile.read(size))
                handler.rfile.readline()
            handler.rfile.readline()
            content = b"".join(chunks)
        else:
            content = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        request = Received(handler.command, handler.path, headers, content)
        with self.lock:
            self.received.append(request)
        try:
            answer = self.respond(request)
        except ConnectionAbortedError:
            handler.close_connection = True
            handler.connection.close()
            return
        time.sleep(answer.hang)
        data = answer.content()
        try:
            handler.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data[: len(data) // 2] if answer.cut else data)
            if answer.cut:
                handler.close_connection = True
        except OSError:
            pass  # the client has disconnected


def prompt_tokens(value: Any) -> int:
    """Return about as many tokens as a tokenizer would count."""
    return len(json.dumps(value)) // 4 + 1


def multipart_file(request: Received) -> bytes:
    """Return the file in a multipart form."""
    boundary = re.search(r"boundary=([^;]+)", request.headers["content-type"])
    assert boundary
    for part in request.content.split(f"--{boundary[1].strip(chr(34))}".encode()):
        head, _, body = part.partition(b"\r\n\r\n")
        if b'name="file"' in head:
            return body.removesuffix(b"\r\n")
    raise AssertionError("the form has no file")
