"""Conformance checks of providers of language models, against a local server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from finecomb.annotators.llm.chat import FINISH_MALFORMED, ChatMessage, ChatReply, ChatRequest
from finecomb.annotators.llm.endpoint import CallError
from finecomb.annotators.llm.providers import PROVIDERS, HttpProvider
from finecomb.core.errors import FinecombError
from finecomb.core.guarded_json import load_json
from finecomb.core.records import ModelSettings

_OTHER_MODELS = ("gpt-oss", "qwen3:8b", "org/model", "models/model.gguf")


def check_provider(name: str, reply: Mapping[str, Any], text: str, *, model: str = "m") -> None:
    """Check a provider that is reached over HTTP: its models, requests, replies and errors.

    Parameters
    ----------
    name : str
        Name of the provider.
    reply : mapping
        JSON of a response of the provider's server.
    text : str
        Text of the model in `reply`.
    model : str, default "m"
        Name of a model at the provider.

    Raises
    ------
    AssertionError
        If the provider claims models of others, sends a request without the model or the messages, does not find
        the text in `reply`, or if a damaged reply or an error of the server is not reported as such.

    Examples
    --------
    >>> reply = {"choices": [{"message": {"content": "Fine."}, "finish_reason": "stop"}]}
    >>> check_provider("openai-compatible", reply, "Fine.")
    """
    assert name in PROVIDERS, f"provider {name}: not registered"
    provider = PROVIDERS[name]
    assert isinstance(provider, HttpProvider), f"provider {name}: expected a subclass of HttpProvider"
    claimed = [other for other in _OTHER_MODELS if provider.owns_model(other)]
    assert not claimed, f"provider {name}: claims the models {', '.join(claimed)} of other providers"
    qualified = f"{name}:{model}" if provider.owns_model(f"{name}:{model}") else model
    assert provider.model_name(qualified) == model, f"provider {name}: `model_name` must remove the prefix"
    request = ChatRequest(model=qualified, messages=(ChatMessage(role="user", content="Is this fine? 😀"),))
    anywhere = ModelSettings(model=qualified, base_url="http://localhost:1")
    assert "secret-key" in str(provider.headers("secret-key", anywhere)), f"provider {name}: `headers` lacks the key"
    assert "None" not in str(provider.headers("", anywhere)), f"provider {name}: `headers` must work without a key"

    with _serve_replies() as (server, url):
        settings = ModelSettings(model=qualified, base_url=url, timeout=10)
        assert provider.host(settings) == url.removeprefix("http://"), f"provider {name}: `host` must be host and port"

        def call(status: int, body: bytes) -> ChatReply | Exception:
            server.response = status, body
            try:
                return asyncio.run(_complete(provider, settings, request))
            except (CallError, FinecombError) as error:
                return error

        answer = call(200, json.dumps(reply).encode())
        assert isinstance(answer, ChatReply), f"provider {name}: the reply is not accepted: {answer}"
        assert answer.text == text, f"provider {name}: expected the text {text!r}, found {answer.text!r}"
        path, sent = server.requests[0]
        assert "Is this fine? 😀" in json.dumps(sent, ensure_ascii=False), (
            f"provider {name}: the request must contain the message"
        )
        assert model in path + json.dumps(sent), f"provider {name}: the request must name the model {model!r}"
        for damaged in (b"", b"{", b"[]", b"{}", b"null", b'{"choices": []}', b'{"error": {"message": "no"}}'):
            answer = call(200, damaged)
            is_rejected = isinstance(answer, CallError) or (
                isinstance(answer, ChatReply) and answer.finish == FINISH_MALFORMED
            )
            assert is_rejected, f"provider {name}: {damaged!r} must not count as a reply"
        for status, again in ((400, False), (429, True), (503, True)):
            answer = call(status, b'{"error": {"message": "no"}}')
            expected = isinstance(answer, CallError) and answer.again == again
            assert expected, f"provider {name}: status {status} must {'' if again else 'not '}lead to another attempt"
        assert isinstance(call(401, b"{}"), FinecombError), f"provider {name}: status 401 must stop the run"


async def _complete(provider: HttpProvider, settings: ModelSettings, request: ChatRequest) -> ChatReply:
    endpoint = provider.open_endpoint(settings)
    try:
        return await endpoint.complete(request)
    finally:
        await endpoint.close()


class _ReplyServer(ThreadingHTTPServer):
    response: tuple[int, bytes] = (200, b"")
    requests: list[tuple[str, Any]]


@contextlib.contextmanager
def _serve_replies() -> Iterator[tuple[_ReplyServer, str]]:
    """Run a server that returns its `response` to every request, and records paths and bodies."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            server.requests.append((self.path, load_json(content)))
            self._respond()

        def do_GET(self) -> None:
            self._respond()

        def _respond(self) -> None:
            status, body = server.response
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = _ReplyServer(("127.0.0.1", 0), Handler)
    server.requests = []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
