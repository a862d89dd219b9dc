"""Any OpenAI-compatible server, through a thin client of our own."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import email.utils
import json
import os
import ssl
import typing
import urllib.request
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx2

from finecomb.annotators.llm.chat import ChatReply, ChatRequest
from finecomb.annotators.llm.endpoint import CallError, parse_host
from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param, shorten
from finecomb.version import __version__

MAX_REPLY_BYTES = 4_000_000
"""Of one reply; more is cut off and counts as a failure."""
_RETRYABLE_STATUSES = {408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}
_MAX_WAIT_SECONDS = 300.0


class HttpEndpoint:
    """An OpenAI-compatible server.

    Requests go to connections directly: a client looks for redirects, cookies and sign-in before and after each call,
    which takes time here, and a model's endpoint has none of them.
    """

    def __init__(self, base_url: str, key_env: str = "", timeout: float = 120) -> None:
        self.host = parse_host(base_url)
        self._url, self._timeout = httpx2.URL(f"{base_url.rstrip('/')}/chat/completions"), timeout
        self._continuation_url = httpx2.URL(f"{base_url.rstrip('/')}/completions")
        self._models_url, self._key_env = httpx2.URL(f"{base_url.rstrip('/')}/models"), key_env
        self._key = _read_api_key(key_env)
        self._headers = {
            "User-Agent": f"finecomb/{__version__}",
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
            **({"Authorization": f"Bearer {self._key}"} if self._key else {}),
        }
        self._times = httpx2.Timeout(timeout, connect=min(10.0, timeout), pool=None).as_dict()
        self._structured = True
        self._free: list[httpx2.AsyncHTTPTransport] = []
        self._tls, self._proxy = _ssl_context(self._url.scheme), _proxy(base_url)

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[httpx2.AsyncHTTPTransport]:
        """A connection that nobody uses now; a pool of many would look at all of them before every call."""
        connection = self._free.pop() if self._free else self._new_connection()
        try:
            yield connection
        finally:
            self._free.append(connection)

    def _new_connection(self) -> httpx2.AsyncHTTPTransport:
        limits = httpx2.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=30)
        return httpx2.AsyncHTTPTransport(verify=self._tls, limits=limits, proxy=self._proxy)

    async def close(self) -> None:
        """Close all connections."""
        for connection in self._free:
            await connection.aclose()

    async def complete(self, request: ChatRequest) -> ChatReply:
        """One call, once; what went wrong is a CallError or, when it always will, a FinecombError."""
        structured = self._structured
        url = self._continuation_url if request.continued else self._url
        status, headers, text = await self._post_json(url, request.body(structured))
        if status in (400, 422) and structured and request.json_schema is not None and _rejects_response_format(text):
            self._structured = False
            return await self.complete(request)
        if status >= 300:
            raise await self._status_error(status, headers, text, request)
        return _parse_reply(text, self.host, structured and request.json_schema is not None)

    async def _post_json(self, url: httpx2.URL, body: dict[str, typing.Any]) -> tuple[int, httpx2.Headers, str]:
        try:
            return await self._send_request("POST", url, json.dumps(body).encode())
        except (TimeoutError, httpx2.TimeoutException):
            raise CallError(f"no reply within {self._timeout:g} s", again=True, maybe_paid=True) from None
        except (httpx2.ConnectError, httpx2.UnsupportedProtocol, httpx2.InvalidURL) as error:
            raise CallError(f"{self.host} cannot be reached: {self._redact_key(str(error))}", again=True) from None
        except httpx2.HTTPError as error:
            what = self._redact_key(str(error) or type(error).__name__)
            raise CallError(f"the connection was cut: {what}", again=True, maybe_paid=True) from None

    async def _send_request(
        self, method: str, url: httpx2.URL, content: bytes = b""
    ) -> tuple[int, httpx2.Headers, str]:
        """One request as it is, and what came back."""
        headers = self._headers | ({"Content-Type": "application/json"} if content else {})
        extensions = {"timeout": self._times}
        request = httpx2.Request(method, url, headers=headers, content=content or None, extensions=extensions)
        async with asyncio.timeout(self._timeout), self._connection() as connection:
            response = await connection.handle_async_request(request)
            try:
                return response.status_code, response.headers, await _read_limited_body(response)
            finally:
                await response.aclose()

    async def _status_error(self, status: int, headers: httpx2.Headers, text: str, request: ChatRequest) -> Exception:
        message = f"{self.host} answered {status}: {shorten(self._redact_key(_error_message(text)), 200)}"
        if status in (401, 403):
            name_it = f"name the variable with the key: {param('key_env')}"
            way = f"check the key in {self._key_env}" if self._key_env else name_it
            return FinecombError(f"{message}; {way}")
        if status == 404:
            models = await self._list_models()
            hint = f"; it has no model {request.model!r}{did_you_mean(request.model, models)}" if models else ""
            wrong_address = f"; is {param('base_url')} the address of an OpenAI-compatible endpoint?"
            return FinecombError(f"{message}{hint or wrong_address}")
        if status in _RETRYABLE_STATUSES:
            return CallError(message, again=True, wait=_retry_after(headers))
        return CallError(message)

    async def _list_models(self) -> list[str]:
        try:
            _, _, text = await self._send_request("GET", self._models_url)
            return [str(model["id"]) for model in json.loads(text)["data"]]
        except (httpx2.HTTPError, CallError, TimeoutError, ValueError, LookupError, TypeError):
            return []

    def _redact_key(self, text: str) -> str:
        """A text without the key, whatever a server may send back."""
        return text.replace(self._key, "[key]") if self._key else text


def _ssl_context(scheme: str) -> ssl.SSLContext:
    """What connections share; certificates, which take long to read, only where they are needed."""
    return httpx2.create_ssl_context() if scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _proxy(base_url: str) -> str | None:
    """The proxy that the environment names for an address, as other programs use it."""
    parts = urlsplit(base_url)
    if urllib.request.proxy_bypass(parts.netloc):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def _read_api_key(variable: str) -> str:
    """The key in an environment variable; read once, kept in memory only."""
    if not variable:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ParameterError(
            f"{param('key_env', variable)}: the environment variable {variable} is not set or empty",
            parameter="key_env",
        )
    return key


async def _read_limited_body(response: httpx2.Response) -> str:
    """The body, refused when it is too large."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_REPLY_BYTES:
            raise CallError(f"the reply is larger than {MAX_REPLY_BYTES:,} bytes", maybe_paid=True)
    return body.decode("utf-8", errors="replace")


def _parse_reply(text: str, host: str, structured: bool) -> ChatReply:
    try:
        answer = json.loads(text)
        choice, usage = answer["choices"][0], answer.get("usage") or {}
        message = choice["message"] if "message" in choice else {"content": choice["text"]}
        return ChatReply(
            text=_sanitise_text(message.get("content") or ""),
            finish=str(choice.get("finish_reason") or ""),
            refusal=_sanitise_text(str(message.get("refusal") or "")),
            prompt_tokens=usage.get("prompt_tokens"),
            completion_tokens=usage.get("completion_tokens"),
            model=str(answer.get("model") or ""),
            structured=structured,
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        what = (
            f"{host} did not answer with a chat completion but with {shorten(text, 80)!r};"
            " is --base-url the address of an OpenAI-compatible endpoint?"
        )
        raise CallError(what, again=True, maybe_paid=True) from None


def _sanitise_text(text: str) -> str:
    """A reply that can be stored: without NUL and half surrogates."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", errors="replace").decode()


def _error_message(text: str) -> str:
    """The message of an error as endpoints write it, else the body."""
    try:
        error = json.loads(text)["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, LookupError, TypeError):
        return text or "nothing"


def _rejects_response_format(text: str) -> bool:
    return any(word in text for word in ("response_format", "json_schema", "structured", "guided", "grammar"))


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Seconds that a server asks to wait, in either of the two forms of the header."""
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        when = email.utils.parsedate_to_datetime(value) if _is_date(value) else None
        now = datetime.datetime.now(datetime.UTC)
        seconds = (when - now).total_seconds() if when else -1
    return min(seconds, _MAX_WAIT_SECONDS) if seconds >= 0 else None


def _is_date(value: str) -> bool:
    return email.utils.parsedate_tz(value) is not None
