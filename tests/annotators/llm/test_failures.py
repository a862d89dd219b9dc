from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from finecomb.annotators.llm.adaptation import Adaptation
from finecomb.annotators.llm.failures import classify_failure

RETRY_INFO = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "26s"}]}}


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"retry-after-ms": "1500", "retry-after": "2"}, {}, 1.5),
        ({"retry-after": "7"}, {}, 7),
        ({"x-ratelimit-reset-tokens": "1m30s", "x-ratelimit-reset-requests": "500ms"}, {}, 90),
        ({}, RETRY_INFO, 26),
        ({"retry-after": "9999"}, {}, 300),
        ({"retry-after": "soon"}, {}, None),
        ({"retry-after": "nan"}, {}, None),
        ({}, {}, None),
    ],
)
def test_the_server_says_how_long_to_wait(headers: dict[str, str], body: object, seconds: float | None) -> None:
    failure = classify_failure(429, headers, json.dumps(body))
    assert (failure.kind, failure.wait) == ("again", seconds)


def test_the_time_of_a_reset_is_a_wait() -> None:
    reset = (datetime.now(UTC) + timedelta(seconds=40)).isoformat().replace("+00:00", "Z")
    wait = classify_failure(429, {"anthropic-ratelimit-tokens-reset": reset}, "{}").wait
    assert wait is not None
    assert 35 < wait <= 40


@pytest.mark.parametrize(
    ("status", "headers", "body", "kind"),
    [
        (400, {"x-should-retry": "true"}, "{}", "again"),
        (500, {"x-should-retry": "false"}, "{}", "other"),
        (402, {}, '{"error": {"metadata": {"limit_source": "in_flight_budget_exhausted"}}}', "again"),
        (402, {}, "{}", "money"),
        (403, {}, '{"error": {"message": "Your input was flagged"}}', "refused"),
        (403, {}, "{}", "access"),
        (429, {}, '{"error": {"message": "Quota exceeded, limit: 0, model: x"}}', "access"),
        (
            404,
            {},
            '{"error": {"message": "No endpoints found that can handle the requested parameters."}}',
            "parameter",
        ),
        (404, {}, "nothing here", "model"),
        (422, {}, "[" * 100_000, "parameter"),
        (500, {}, "\ud83d", "again"),
    ],
)
def test_errors_have_a_kind(status: int, headers: dict[str, str], body: str, kind: str) -> None:
    assert classify_failure(status, headers, body).kind == kind


def test_the_seed_is_renamed_at_mistral() -> None:
    detail = {"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}
    failure = classify_failure(422, {}, json.dumps({"message": {"detail": [detail]}}))
    adaptation = Adaptation(renames={"seed": "random_seed"})
    body = {"model": "m", "messages": [], "seed": 7, "max_tokens": 9}
    assert [change.change for change in adaptation.learn(failure, body)] == ["renamed to random_seed"]
    assert adaptation.apply(body) == {"model": "m", "messages": [], "random_seed": 7, "max_tokens": 9}
    assert adaptation.learn(failure, body) == []
