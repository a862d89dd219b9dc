"""A local endpoint with scripted answers: valid, invalid, slow or missing."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class ScriptedAnswer:
    """The endpoint's behaviour for one request."""

    text: str = '{"marks": []}'
    status: int = 200
    finish: str = "stop"
    headers: dict[str, str] = field(default_factory=dict)
    usage: tuple[int, int] | None = (-1, 20)
    """Tokens of the prompt and the reply; a negative number stands for a quarter of the prompt's bytes."""
    raw: bytes | None = None
    """Body to send instead of a chat completion."""
    wait: float = 0.0
    cut: bool = False
    """True to close the connection in the middle of the reply."""
    drip: float = 0.0
    """Seconds between single bytes."""
    refusal: str = ""

    def response_body(self) -> bytes:
        if self.raw is not None:
            return self.raw
        if self.status >= 300:
            return json.dumps({"error": {"message": self.text}}).encode()
        message = {"role": "assistant", "content": self.text, **({"refusal": self.refusal} if self.refusal else {})}
        answer: dict[str, Any] = {"model": "m-1", "choices": [{"message": message, "finish_reason": self.finish}]}
        if self.usage:
            answer["usage"] = {"prompt_tokens": self.usage[0], "completion_tokens": self.usage[1]}
        return json.dumps(answer).encode()


Script = Callable[[dict[str, Any], int], ScriptedAnswer]
"""Function of a request and the number of earlier requests."""


class ScriptedServer:
    """A server that runs a script on a local port and records all `requests`."""

    def __init__(self, script: Script) -> None:
        self.script, self.requests, self.keys = script, [], []  # type: Script, list[dict[str, Any]], list[str]
        self._lock = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                owner.answer_request(self)

            def do_GET(self) -> None:
                body = json.dumps({"data": [{"id": "model-a"}, {"id": "model-b"}]}).encode()
                _send_response(self, 200, {}, body)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def answer_request(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self._lock:
            number = len(self.requests)
            self.requests.append(body)
            self.keys.append(handler.headers.get("Authorization", ""))
        answer = self.script(body, number)
        if answer.usage and answer.usage[0] < 0:
            answer = replace(answer, usage=(len(json.dumps(body.get("messages"))) // 4, answer.usage[1]))
        time.sleep(answer.wait)
        data = answer.response_body()
        try:
            if answer.cut:
                _send_response(handler, answer.status, answer.headers, data, data[: len(data) // 2])
                handler.close_connection = True
            elif answer.drip:
                _send_slowly(handler, data, answer.drip)
            else:
                _send_response(handler, answer.status, answer.headers, data)
        except OSError:
            pass  # the client has disconnected

    def __enter__(self) -> ScriptedServer:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _send_response(
    handler: BaseHTTPRequestHandler, status: int, headers: dict[str, str], data: bytes, part: bytes | None = None
) -> None:
    handler.send_response(status)
    for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(data if part is None else part)


def _send_slowly(handler: BaseHTTPRequestHandler, data: bytes, pause: float) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    for at in range(len(data)):
        handler.wfile.write(data[at : at + 1])
        handler.wfile.flush()
        time.sleep(pause)


def extract_text(body: dict[str, Any]) -> str:
    """Return the text between the fences of a request."""
    message: str = body["messages"][-1]["content"]
    fence = message.rpartition(" TEXT")[0].rpartition("<<<")[2]
    return message.partition(f"<<<{fence} TEXT")[2].partition("\n")[2].partition(f"\n{fence}>>>")[0]
