"""HTTP client of providers: connections, time limits, API keys, and the response to errors."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import ssl
import urllib.request
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2

from finecomb.annotators.llm.adaptation import LIMIT_NAMES, Adaptation, LimitRejectedError
from finecomb.annotators.llm.chat import FINISH_MALFORMED, FINISH_PROMPT_TRUNCATED, ChatReply, ChatRequest
from finecomb.annotators.llm.endpoint import CallError, EndpointError
from finecomb.annotators.llm.failures import Failure, classify_failure
from finecomb.annotators.llm.providers.base import HttpProvider, ModelFacts, token_count
from finecomb.core.errors import ParameterError, did_you_mean, param, shorten
from finecomb.core.guarded_json import load_json
from finecomb.core.records import ModelSettings
from finecomb.version import __version__

MAX_REPLY_BYTES = 4_000_000
"""Maximum size of a reply in bytes. Of a larger reply, only the start is kept."""
MAX_FILE_BYTES = 1_000_000_000
"""Maximum size of a file with the results of a batch, in bytes."""
_MAX_RAW_CHARACTERS = 20_000
_MAX_ADAPTATIONS = 8
_CONTEXT_LOOKUP_TOKENS = 3_500  # the smallest default context of servers is 4,096 tokens
_UNRECORDED_FIELDS = frozenset(
    {"messages", "prompt", "input", "instructions", "system", "contents", "systemInstruction", "tools"}
)


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response with its body as bytes. `is_complete` is False if the body was larger than the limit."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    is_complete: bool = True

    @property
    def text(self) -> str:
        """The body as text; bytes that are not UTF-8 are written as escapes."""
        return self.content.decode("utf-8", errors="backslashreplace")


class HttpEndpoint:
    """A client of a provider's server.

    Requests use transports directly, because the redirect, cookie and authentication handling of an HTTP client costs
    time on every call and model endpoints need none of it.
    """

    def __init__(self, provider: HttpProvider, settings: ModelSettings) -> None:
        self.provider, self.settings, self.host = provider, settings, provider.host(settings)
        self._base_url, self._timeout = provider.address(settings), settings.timeout
        self._key_env = settings.key_env or (provider.key_env if provider.uses_usual_key(settings) else "")
        # The key is kept in memory only.
        self._key = os.environ.get(self._key_env, "").strip() if self._key_env else ""
        if self._key_env and not self._key:
            raise ParameterError(
                f"{param('key_env', self._key_env)}: environment variable {self._key_env} is not set or empty; set it"
                " to your API key",
                parameter="key_env",
            )
        if not self._key.isascii() or not self._key.isprintable():
            raise ParameterError(
                f"{param('key_env', self._key_env)}: environment variable {self._key_env} is not an API key, because it"
                " contains characters that a header cannot contain",
                parameter="key_env",
            )
        self._headers = {
            "User-Agent": f"finecomb/{__version__}",
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
            **provider.headers(self._key, settings),
        }
        query = provider.query(settings)
        self._url_of = functools.lru_cache(1000)(
            lambda path: httpx2.URL(f"{self._base_url}{path}{('&' if '?' in path else '?') + query if query else ''}")
        )
        self._times = httpx2.Timeout(self._timeout, connect=min(10.0, self._timeout), pool=None).as_dict()
        self.adaptation = Adaptation(
            provider.structures, provider.structure_fields, _mistral_renames(provider, self.host)
        )
        self.succeeded = False
        """True once a call has succeeded. Until then, calls should be made one by one, so that only one of them learns
        which parameters the endpoint rejects, and pays for writing the prompt to the endpoint's cache.
        """
        self.context_tokens = settings.context_tokens
        """Context size in tokens, if known."""
        self._has_looked_up_context = self.context_tokens is not None or not provider.may_truncate_prompts
        self._free: list[httpx2.AsyncHTTPTransport] = []
        address = urlsplit(self._base_url)
        # Certificates load slowly, so they are loaded only for https, and once for all connections.
        is_https = address.scheme == "https"
        self._tls = httpx2.create_ssl_context() if is_https else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        proxies = {} if urllib.request.proxy_bypass(address.netloc) else urllib.request.getproxies()
        self._proxy = proxies.get(address.scheme) or proxies.get("all")

    @contextlib.asynccontextmanager
    async def _idle_connection(self) -> AsyncIterator[httpx2.AsyncHTTPTransport]:
        """Yield an idle connection. A shared pool would search all of its connections before each call."""
        if self._free:
            connection = self._free.pop()
        else:
            limits = httpx2.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=30)
            connection = httpx2.AsyncHTTPTransport(verify=self._tls, limits=limits, proxy=self._proxy)
        try:
            yield connection
        finally:
            self._free.append(connection)

    async def close(self) -> None:
        """Close all connections."""
        for connection in self._free:
            await connection.aclose()

    # --- calls ---------------------------------------------------------------------------------------------------

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Make a call, and repeat it without the parameters that the server rejects.

        Raise CallError if the call failed, or EndpointError if every call would fail.
        """
        for _ in range(_MAX_ADAPTATIONS):
            path, body = self.build_body(request)
            response = await self.send_request("POST", path, json.dumps(body).encode())
            if response.status < 300:
                reply = self.read_reply(request, response, body)
                self.succeeded = True
                return await self._check_prompt(request, reply)
            failure = classify_failure(response.status, response.headers, self.redact_key(response.text))
            if failure.kind != "parameter" or not self.learn(failure, request, body):
                return await self._raise_failure(failure, response, request)
        raise CallError(f"{self.host} rejected {_MAX_ADAPTATIONS} versions of the request: {failure.message}")

    def build_body(self, request: ChatRequest) -> tuple[str, dict[str, Any]]:
        """Return the path and body of a request, with everything that was learned and the extra parameters."""
        path, body = self.provider.build_request(request, self.adaptation.structure)
        body = self.adaptation.apply(body)
        if any(name in LIMIT_NAMES for name in request.extra):
            body = {name: value for name, value in body.items() if name not in LIMIT_NAMES}
        for name, value in request.extra.items():
            *outer, last = name.split(".")
            place = body
            for part in outer:
                inner = place.get(part)
                place[part] = dict(inner) if isinstance(inner, dict) else {}
                place = place[part]
            place[last] = value
        return path, body

    def learn(self, failure: Failure, request: ChatRequest, body: Mapping[str, Any]) -> bool:
        """Learn from an error response. Return False if it names no parameter that can be changed."""
        try:
            return bool(self.adaptation.learn(failure, body, {name.partition(".")[0] for name in request.extra}))
        except LimitRejectedError as error:
            raise EndpointError(
                f"{self.host} accepts no limit on the length of replies: {shorten(str(error), 200)}; pass the name of"
                f" its limit with {param('extra', 'NAME=NUMBER')}"
            ) from None

    def read_reply(self, request: ChatRequest, response: HttpResponse, body: Mapping[str, Any]) -> ChatReply:
        """Read a reply. A response that is not a completion becomes a malformed reply, which is not bought again."""
        text = self.redact_key(response.text)
        sent = _recorded_parameters(body)
        request_id = response.headers.get("x-request-id") or response.headers.get("request-id") or ""
        why = ""
        try:
            if not response.is_complete:
                raise ValueError(f"larger than {MAX_REPLY_BYTES:,} bytes")
            answer = load_json(text)
            if isinstance(answer, dict) and answer.get("error") and not answer.get("choices"):
                self._raise_late_failure(answer["error"], text)
            reply = self.provider.parse_reply(answer)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            if text.lstrip()[:1] == "<" and not self.succeeded:
                raise EndpointError(
                    f"{self._base_url} returned a web page instead of a reply ({shorten(text, 60)!r}); check"
                    f" {param('base_url')}, and whether a proxy answered"
                ) from None
            what = str(error) if not response.is_complete else f"{shorten(text, 80)!r} instead of a completion"
            why = f"{self.host} returned {what}"
            reply = ChatReply(text="", finish=FINISH_MALFORMED, refusal="", raw=f"{why}\n{text[:_MAX_RAW_CHARACTERS]}")
        structured = request.json_schema is not None and self.adaptation.structure in ("json_schema", "tool")
        update = {"structured": structured, "sent": sent, "request_id": reply.request_id or request_id}
        return reply.model_copy(update=update)

    def _raise_late_failure(self, error: Any, text: str) -> None:
        """Raise the error in a response with status 200, which OpenRouter sends once generation has begun."""
        status = token_count(error.get("code")) if isinstance(error, dict) else None
        failure = classify_failure(status or 500, {}, text)
        message = f"{self.host} returned an error instead of a reply: {shorten(failure.message, 200)}"
        if failure.kind in ("money", "key", "access"):
            raise EndpointError(message)
        raise CallError(message, again=status is not None and failure.kind == "again", maybe_paid=True)

    async def _check_prompt(self, request: ChatRequest, reply: ChatReply) -> ChatReply:
        """Return the reply, marked if the server shortened the prompt."""
        if not self._has_looked_up_context and request.estimated_prompt_tokens() > _CONTEXT_LOOKUP_TOKENS:
            self._has_looked_up_context = True
            self.context_tokens = await self.look_up_context(self.provider.model_name(request.model))
        if why := reply.truncated_prompt_reason(request, self.context_tokens):
            return reply.model_copy(update={"finish": FINISH_PROMPT_TRUNCATED, "raw": why})
        return reply

    async def look_up_context(self, model: str) -> int | None:
        """Return the context size that a server reports for a model, or None.

        Hosted providers refuse prompts that are too long, but other servers may shorten them. vLLM lists the size with
        the model, llama.cpp with its properties, and Ollama with the loaded models.
        """
        root = self._base_url.removesuffix("/v1").removesuffix("/api")
        with contextlib.suppress(CallError, EndpointError, ValueError, LookupError, TypeError, AttributeError):
            for facts in await self.list_models():
                if facts.id == model and facts.context_tokens:
                    return facts.context_tokens
        if not self.provider.may_truncate_prompts:
            return None
        for path in ("/props", "/api/ps"):
            with contextlib.suppress(CallError, EndpointError, ValueError, LookupError, TypeError, AttributeError):
                answer = load_json((await self.send_request("GET", root + path)).text)
                if path == "/props":
                    return token_count(answer["default_generation_settings"]["n_ctx"])
                sizes = [token_count(entry.get("context_length")) for entry in answer["models"]]
                return next((size for size in sizes if size), None)
        return None

    async def list_models(self) -> list[ModelFacts]:
        """Return the models that the server offers."""
        response = await self.send_request("GET", self.provider.models_path())
        if response.status >= 300:
            failure = classify_failure(response.status, response.headers, self.redact_key(response.text))
            raise self.failure_error(failure, response.status)
        try:
            return list(self.provider.parse_models(load_json(response.text)))
        except (ValueError, LookupError, TypeError, AttributeError):
            raise EndpointError(
                f"{self.host} returned {shorten(self.redact_key(response.text), 80)!r} instead of a list of models;"
                f" check {param('base_url')}"
            ) from None

    # --- transport -----------------------------------------------------------------------------------------------

    async def send_request(
        self,
        method: str,
        path: str,
        content: bytes = b"",
        content_type: str = "application/json",
        max_bytes: int = MAX_REPLY_BYTES,
        headers: Mapping[str, str] | None = None,
    ) -> HttpResponse:
        """Send a request and return the response. Raise CallError if there is none."""
        all_headers = self._headers | ({"Content-Type": content_type} if content else {}) | dict(headers or {})
        url = httpx2.URL(path) if "://" in path else self._url_of(path)
        request = httpx2.Request(
            method, url, headers=all_headers, content=content or None, extensions={"timeout": self._times}
        )
        try:
            async with asyncio.timeout(self._timeout), self._idle_connection() as connection:
                response = await connection.handle_async_request(request)
                body = bytearray()
                try:
                    async for chunk in response.aiter_bytes():
                        body += chunk
                        if len(body) > max_bytes:
                            return HttpResponse(response.status_code, response.headers, bytes(body[:max_bytes]), False)
                    return HttpResponse(response.status_code, response.headers, bytes(body))
                finally:
                    await response.aclose()
        except (TimeoutError, httpx2.TimeoutException):
            raise CallError(
                f"{self.host} did not reply within {self._timeout:g} s", again=True, maybe_paid=True
            ) from None
        except (httpx2.ConnectError, httpx2.UnsupportedProtocol, httpx2.InvalidURL, httpx2.ProxyError) as error:
            what = self.redact_key(str(error))
            if "CERTIFICATE_VERIFY_FAILED" in what or "certificate verify failed" in what:
                raise EndpointError(
                    f"the certificate of {self.host} cannot be verified ({shorten(what, 120)}); add it to the file in"
                    " the environment variable SSL_CERT_FILE"
                ) from None
            through = f" through the proxy {urlsplit(self._proxy).hostname}" if self._proxy else ""
            raise CallError(f"cannot reach {self.host}{through}: {what}", again=True) from None
        except httpx2.HTTPError as error:
            what = self.redact_key(str(error) or type(error).__name__)
            raise CallError(f"the connection to {self.host} was lost: {what}", again=True, maybe_paid=True) from None

    # --- errors --------------------------------------------------------------------------------------------------

    async def _raise_failure(self, failure: Failure, response: HttpResponse, request: ChatRequest) -> ChatReply:
        """Raise the error of a call, or return a reply if the provider's filter refused the text."""
        if failure.kind == "refused":
            request_id = response.headers.get("x-request-id") or ""
            return ChatReply(
                text="", finish="content_filter", refusal=failure.message, request_id=request_id, charged=0,
                prompt_tokens=0, completion_tokens=0,
            )  # fmt: skip
        if failure.kind != "model":
            raise self.failure_error(failure, response.status)
        message = f"{self.host} returned {response.status}: {shorten(failure.message, 200)}"
        models: list[str] = []
        with contextlib.suppress(CallError, EndpointError):
            models = [facts.id for facts in await self.list_models()]
        model = self.provider.model_name(request.model)
        if models and model not in models:
            raise EndpointError(f"{message}; the endpoint has no model {model!r}{did_you_mean(model, models)}")
        if "DeploymentNotFound" in failure.codes:
            raise EndpointError(f"{message}; {param('model')} must name a deployment of your Azure resource")
        raise EndpointError(
            f"{message}; check the model's name, and that {param('base_url')} is the address of the API"
        )

    def failure_error(self, failure: Failure, status: int) -> CallError | EndpointError:
        """Return the error for a failed call: one line with the server's message and how to fix it."""
        message = f"{self.host} returned {status}: {shorten(failure.message, 200)}"
        if failure.kind == "key":
            name_it = f"name the environment variable with the key in {param('key_env')}"
            return EndpointError(f"{message}; {f'check the key in {self._key_env}' if self._key_env else name_it}")
        if failure.kind == "money":
            return EndpointError(
                f"{message}; the account has no credit or quota left; replies so far are stored, and the same command"
                " resumes the run"
            )
        if failure.kind == "access":
            way = (
                f"check the permissions of the key in {self._key_env}"
                if self._key_env
                else (f"name the environment variable with the key in {param('key_env')}")
            )
            return EndpointError(f"{message}; {way}")
        if failure.kind == "too_long":
            return CallError(f"{message}; the text is too long for the model, annotate it by segment")
        return CallError(message, again=failure.kind == "again", wait=failure.wait)

    def redact_key(self, text: str) -> str:
        """Remove the API key from a text that a server returned."""
        return text.replace(self._key, "[key]") if self._key else text


def _mistral_renames(provider: HttpProvider, host: str) -> Mapping[str, str]:
    """Return the names that replace rejected parameters. Mistral is recognised by its host as well."""
    return {"seed": "random_seed"} if host.endswith("mistral.ai") else provider.renames


def _recorded_parameters(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a request for the journal, without messages and the content of schemas."""
    recorded: dict[str, Any] = {}
    for name, value in body.items():
        if name in _UNRECORDED_FIELDS:
            continue
        if isinstance(value, dict):
            value = {key: "schema" if "chema" in key or key == "properties" else part for key, part in value.items()}
            if isinstance(value.get("format"), dict):
                value["format"] = value["format"].get("type", "schema")
        recorded[name] = value
    return recorded
