"""Classification of error responses: whether to stop, wait, adapt the parameters, or skip the text."""

from __future__ import annotations

import datetime
import email.utils
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from finecomb.annotators.llm.chat import storable_text
from finecomb.core.guarded_json import load_json

FailureKind = Literal["again", "money", "key", "access", "model", "refused", "too_long", "parameter", "other"]
"""Kind of an error: temporary; no money, valid key, permission or model; a refusal; a text that is too long; a
rejected parameter; or another error.
"""
MAX_WAIT_SECONDS = 300.0
"""Maximum waiting time before another attempt."""
_RETRYABLE_STATUSES = {408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}
_MAX_OBJECTS, _MAX_DEPTH = 200, 8
_MONEY_CODES = {
    "insufficient_quota", "credit_balance_exhausted", "organization_spend_limit_exceeded", "billing_error",
    "project_spend_limit_exceeded", "organization_usage_limit_exceeded", "enforced_spend_limit_reached",
    "billing_hard_limit_reached", "billing_not_active",
}  # fmt: skip
_MONEY_PATTERN = re.compile(r"credit balance is too low|insufficient (?:balance|credits|funds)|spend limit", re.I)
_KEY_CODES = {"invalid_api_key", "API_KEY_INVALID", "authentication_error"}
_MODEL_CODES = {"model_not_found", "DeploymentNotFound"}
_REFUSAL_CODES = {
    "content_filter", "content_policy_violation", "invalid_prompt", "bio_policy", "cyber_policy",
    "ResponsibleAIPolicyViolation",
}  # fmt: skip
_REFUSAL_PATTERN = re.compile(r"content filtering|(?:input|prompt) was flagged|requires moderation", re.I)
_LENGTH_CODES = {"context_length_exceeded", "exceed_context_size_error", "request_too_large"}
_LENGTH_PATTERN = re.compile(
    r"maximum context length|prompt is too long|exceed context limit|input token count .*exceeds"
    r"|longer than the context length|exceeds the available context size",
    re.I,
)
UNROUTABLE_PARAMETERS = "No endpoints found that can handle the requested parameters"
"""Message of OpenRouter if no server behind it accepts all parameters."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error response: its kind, message, waiting time and the objects in its body."""

    kind: FailureKind
    message: str
    wait: float | None = None
    objects: tuple[Mapping[str, Any], ...] = ()

    @property
    def codes(self) -> set[str]:
        """Values of all fields that name a type of error."""
        names = ("code", "type", "status", "reason", "error_code", "quotaId")
        return {str(item[name]) for item in self.objects for name in names if isinstance(item.get(name), str)}

    @property
    def messages(self) -> list[str]:
        """All messages in the body."""
        names = ("message", "msg", "description", "detail", "error")
        return [item[name] for item in self.objects for name in names if isinstance(item.get(name), str)]


def classify_failure(status: int, headers: Mapping[str, str], text: str) -> Failure:
    """Classify an error response by its status, headers and body.

    Signs that end a run are checked first, because a message about credit is never about a parameter.
    """
    objects = tuple(_iter_objects(text))
    plain = Failure("other", "", None, objects)
    readable = [message for message in plain.messages if message[:1] not in ("{", "[")]
    message = storable_text((readable or [text.strip() or "an empty response"])[0])
    codes, everything = plain.codes, "\n".join([*plain.messages, text if not objects else ""])
    wait = _find_wait(headers, objects)
    is_daily_quota = status == 429 and any("PerDay" in code for code in codes)
    kind: FailureKind = "other"
    if "in_flight_budget_exhausted" in text and status == 402:
        kind = "again"
    elif status == 402 or codes & _MONEY_CODES or _MONEY_PATTERN.search(everything) or is_daily_quota:
        kind = "money"
    elif status == 401 or codes & _KEY_CODES or "API key not valid" in everything:
        kind = "key"
    elif codes & _REFUSAL_CODES or _REFUSAL_PATTERN.search(everything):
        kind = "refused"
    elif status == 413 or codes & _LENGTH_CODES or _LENGTH_PATTERN.search(everything):
        kind = "too_long"
    elif status == 403 or "FAILED_PRECONDITION" in codes or (status == 429 and "limit: 0" in everything):
        kind = "access"
    elif UNROUTABLE_PARAMETERS in everything:
        kind = "parameter"
    elif codes & _MODEL_CODES or status == 404:
        kind = "model"
    elif headers.get("x-should-retry") in ("true", "false"):
        kind = "again" if headers["x-should-retry"] == "true" else "other"
    elif status in _RETRYABLE_STATUSES:
        kind = "again"
    elif status in (400, 422):
        kind = "parameter"
    return Failure(kind, message, wait, objects)


def _iter_objects(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield all objects in a body, outer ones first, including those in JSON strings."""
    queue: list[tuple[Any, int]] = [(text, 0)]
    count = 0
    while queue and count < _MAX_OBJECTS:
        value, depth = queue.pop(0)
        if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            try:
                value = load_json(value)
            except (ValueError, RecursionError):
                continue
        if depth > _MAX_DEPTH:
            continue
        if isinstance(value, dict):
            count += 1
            yield value
            queue += [(item, depth + 1) for item in value.values() if isinstance(item, dict | list | str)]
        elif isinstance(value, list):
            queue += [(item, depth + 1) for item in value[:_MAX_OBJECTS]]


def _find_wait(headers: Mapping[str, str], objects: tuple[Mapping[str, Any], ...]) -> float | None:
    """Return the seconds to wait before another attempt, or None if the server gives none."""
    candidates = [
        _parse_seconds(headers.get("retry-after-ms", ""), 0.001),
        _parse_seconds(headers.get("retry-after", "")),
        *(_parse_duration(str(item["retryDelay"])) for item in objects if "retryDelay" in item),
    ]
    for seconds in candidates:
        if seconds is not None:
            return min(seconds, MAX_WAIT_SECONDS)
    resets = [_parse_duration(headers.get(f"x-ratelimit-reset-{name}", "")) for name in ("requests", "tokens")]
    resets += [
        _parse_seconds(value)
        for name, value in headers.items()
        if name.lower().startswith("anthropic-ratelimit-") and name.lower().endswith("-reset")
    ]
    known = [seconds for seconds in resets if seconds is not None]
    return min(max(known), MAX_WAIT_SECONDS) if known else None


def _parse_seconds(value: str, unit: float = 1.0) -> float | None:
    """Return the seconds in a header, given as a number or a date, or None."""
    try:
        seconds = float(value) * unit
        return seconds if 0 <= seconds < float("inf") else None
    except ValueError:
        pass
    try:
        date = datetime.datetime.fromisoformat(value) if "T" in value else email.utils.parsedate_to_datetime(value)
    except (ValueError, TypeError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=datetime.UTC)
    return max(0.0, (date - datetime.datetime.now(datetime.UTC)).total_seconds())


def _parse_duration(value: str) -> float | None:
    """Return the seconds in a duration, or None.

    >>> _parse_duration("1m30s"), _parse_duration("500ms"), _parse_duration("26s")
    (90.0, 0.5, 26.0)
    """
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|h|m|s)", value)
    if not parts or "".join(number + unit for number, unit in parts) != value.strip():
        return None
    return sum(float(number) * units[unit] for number, unit in parts)
