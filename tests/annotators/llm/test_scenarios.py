"""The behaviour of `finecomb annotate` with servers that answer as the providers document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from finecomb import formats
from finecomb.annotators.llm.journal import AdaptationEntry, FailureEntry, ReplyEntry, read_entries
from finecomb.cli import app
from finecomb.core.errors import FinecombError, format_as_flag
from finecomb.core.records import Document, Settings
from finecomb.protocols import load
from tests.annotators.llm.fakes.base import KEY, Answer, FakeServer
from tests.annotators.llm.fakes.chat_servers import (
    FakeAzure,
    FakeCompatible,
    FakeDeepSeek,
    FakeMistral,
    FakeOpenAI,
    FakeOpenRouter,
    completion,
    error,
)
from tests.annotators.llm.fakes.native_servers import (
    FakeAnthropic,
    FakeGemini,
    FakeOllama,
    anthropic_error,
    google_error,
)

MODEL = {
    FakeOpenAI: "openai:judge-large",
    FakeAzure: "azure:judge-large",
    FakeMistral: "mistral:judge-large",
    FakeDeepSeek: "deepseek:judge-large",
    FakeOpenRouter: "openrouter:judge-large",
    FakeAnthropic: "anthropic:judge-large",
    FakeGemini: "gemini:judge-large",
    FakeOllama: "ollama:judge-large",
    FakeCompatible: "judge-large",
}


@dataclass
class Run:
    """The result of a command."""

    exit_code: int
    output: str
    entries: list[Any]

    @property
    def replies(self) -> list[ReplyEntry]:
        return [entry for entry in self.entries if isinstance(entry, ReplyEntry)]

    @property
    def changes(self) -> list[tuple[str, str]]:
        return [(e.change.name, e.change.change) for e in self.entries if isinstance(e, AdaptationEntry)]

    @property
    def failures(self) -> list[FailureEntry]:
        return [entry for entry in self.entries if isinstance(entry, FailureEntry)]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FAKE_KEY", KEY)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def study(tmp_path: Path) -> Path:
    documents = [Document(id=f"d{number}", text=f"On day {number} they saw the sea.") for number in range(2)]
    folder = tmp_path / "study"
    formats.save_records([Settings(protocols=("scarecrow@2",)), load("scarecrow"), *documents], folder)
    return folder


def annotate(study: Path, server: FakeServer, *options: object, model: str = "") -> Run:
    words = ["annotate", study, "--model", model or MODEL[type(server)], "--base-url", server.url, "--attempts", 2]
    words += [] if isinstance(server, FakeCompatible | FakeOllama) else ["--key-env", "FAKE_KEY"]
    result = CliRunner().invoke(app, [str(word) for word in (*words, *options)])
    output = result.output
    if isinstance(result.exception, FinecombError):
        output += result.exception.format_message(format_as_flag)
    elif result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    journals = sorted(study.glob("runs/*/journal.jsonl"))
    entries = [entry for journal in journals for entry in read_entries(journal)]
    assert KEY not in output
    assert all(KEY.encode() not in file.read_bytes() for file in study.rglob("*") if file.is_file())
    return Run(result.exit_code, output.replace("\n", " "), entries)


# --- each provider as documented -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MODEL)
def test_every_provider_reads_all_texts(study: Path, kind: type[FakeServer]) -> None:
    with kind() as server:
        run = annotate(study, server, "--temperature", 0)
        again = annotate(study, server, "--temperature", 0)
        assert len(server.calls) >= 2
        assert len(server.calls) - len(run.changes) == 2  # each change costs one rejected request, and nothing else
    assert (run.exit_code, again.exit_code) == (0, 0)
    assert [entry.reply.text for entry in run.replies] == [server.text] * 2
    assert all(entry.reply.prompt_tokens and entry.reply.completion_tokens for entry in run.replies)
    assert all("messages" not in entry.reply.sent and entry.reply.sent for entry in run.replies)


def test_the_responses_api_keeps_reasoning_apart(study: Path) -> None:
    with FakeOpenAI() as server:
        run = annotate(study, server, "--effort", "low", model="openai-responses:judge-large")
        assert server.calls[0]["reasoning"] == {"effort": "low"}
        assert server.calls[0]["store"] is False
    assert run.exit_code == 0
    assert (run.replies[0].reply.text, run.replies[0].reply.thinking) == (server.text, "Thinking.")
    assert run.replies[0].reply.thinking_tokens == 5


def test_azure_has_a_dated_api_too(study: Path) -> None:
    with FakeAzure() as server:
        run = annotate(study, server, "--api-version", "2024-10-21")
        assert run.exit_code == 0
        path = "/openai/deployments/judge-large/chat/completions?api-version=2024-10-21"
        assert server.received[0].path == path
        copied = f"{server.root}{path}"
        words = ["annotate", study, "--model", "azure:judge-large", "--base-url", copied, "--key-env", "FAKE_KEY"]
        assert CliRunner().invoke(app, [str(word) for word in words]).exit_code == 0
        assert {request.path for request in server.received} == {path}


def test_the_long_fixed_part_is_marked_for_caching(study: Path) -> None:
    with FakeAnthropic() as server:
        annotate(study, server)
        first, second = server.calls
    assert first["system"] == second["system"]
    assert first["system"][-1]["cache_control"] == {"type": "ephemeral"}
    assert first["messages"] != second["messages"]


def test_reasoning_options_are_sent_and_refused_where_they_do_not_apply(study: Path) -> None:
    with FakeAnthropic() as server:
        annotate(study, server, "--thinking-tokens", 1024, "--effort", "high", "--limit", 1)
        assert server.calls[0]["thinking"] == {"type": "enabled", "budget_tokens": 1024}
        assert server.calls[0]["output_config"]["effort"] == "high"
        run = annotate(study, server, "--thinking-tokens", 4096)
        assert "--thinking-tokens must be lower than --max-tokens" in run.output
    with FakeGemini() as gemini:
        annotate(study, gemini, "--thinking-tokens", 0, "--limit", 1, "--name", "gemini")
        assert gemini.calls[0]["generationConfig"]["thinkingConfig"] == {"thinkingBudget": 0}
    with FakeOpenAI() as openai:
        assert (
            "--thinking-tokens does not apply to openai"
            in annotate(study, openai, "--thinking-tokens", 9, "--name", "o").output
        )
        assert openai.calls == []


def test_extra_parameters_are_sent_and_never_dropped(study: Path) -> None:
    with FakeOpenAI() as server:
        run = annotate(study, server, "--extra", "service_tier=flex", "--extra", "metadata.team=a")
        assert run.exit_code == 0
        assert (server.calls[0]["service_tier"], server.calls[0]["metadata"]) == ("flex", {"team": "a"})
        rejected = annotate(study, server, "--extra", "top_k=3", "--name", "b")
        assert rejected.exit_code == 1
        assert "Unknown parameter: 'top_k'" in rejected.output
        assert "cannot be replaced" in annotate(study, server, "--extra", "model=x").output


# --- adaptation --------------------------------------------------------------------------------------------------

SEED_ERROR = error(400, "Unknown parameter: 'seed'.", "unknown_parameter", "seed")
GATEWAY_MESSAGE = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
)
GOOGLE_ARRAY = Answer(
    400,
    [
        {
            "error": {
                "code": 400,
                "status": "INVALID_ARGUMENT",
                "message": (
                    'Invalid JSON payload received. Unknown name "temperature": Cannot find field.\n'
                    'Invalid JSON payload received. Unknown name "seed": Cannot find field.'
                ),
            }
        }
    ],
)
MISTRAL_STRING = Answer(
    422,
    {
        "object": "error",
        "type": "invalid_request_error",
        "message": json.dumps(
            {
                "detail": [
                    {"type": "extra_forbidden", "loc": ["body", "random_seed"], "msg": "Extra inputs are not permitted"}
                ]
            }
        ),
    },
)
MISTRAL_DETAIL = Answer(
    422,
    {
        "detail": [
            {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}
            for name in ("store", "random_seed", "temperature")
        ]
    },
)
OMITTED = "omitted"
TEMPERATURE, SEED = ("temperature", OMITTED), ("seed", OMITTED)


@pytest.mark.parametrize(
    ("kind", "script", "changes"),
    [
        (FakeOpenAI, [SEED_ERROR], [SEED]),
        (
            FakeOpenAI,
            [Answer(400, {"error": {"message": GATEWAY_MESSAGE, "code": "invalid_request_body"}})],
            [("max_tokens", "renamed to max_completion_tokens")],
        ),
        (FakeCompatible, [GOOGLE_ARRAY], [TEMPERATURE, SEED]),
        (
            FakeGemini,
            [
                google_error(
                    400,
                    "INVALID_ARGUMENT",
                    'Unknown name "const" at'
                    " 'generation_config.response_json_schema.properties[0].value': Cannot find field.",
                )
            ],
            [("structured output", "reduced to json_object")],
        ),
        (FakeMistral, [MISTRAL_STRING], [("random_seed", OMITTED)]),
        (FakeMistral, [MISTRAL_DETAIL], [("random_seed", OMITTED), TEMPERATURE]),
        (
            FakeAnthropic,
            [anthropic_error(400, "invalid_request_error", "temperature is deprecated for this model.")],
            [TEMPERATURE],
        ),
        (
            FakeAnthropic,
            [anthropic_error(400, "invalid_request_error", "temperature: Extra inputs are not permitted")],
            [TEMPERATURE],
        ),
        (
            FakeAnthropic,
            [anthropic_error(400, "invalid_request_error", "output_config.format: Extra inputs are not permitted")],
            [("structured output", "reduced to tool")],
        ),
        (
            FakeCompatible,
            [Answer(400, {"error": {"code": 400, "message": "Failed to parse grammar", "type": "x"}})],
            [("structured output", "reduced to json_object")],
        ),
    ],
)
def test_what_a_server_rejects_is_renamed_or_omitted(
    study: Path, kind: type[FakeServer], script: list[Answer], changes: list[tuple[str, str]]
) -> None:
    with kind() as server:
        server.script = list(script)
        run = annotate(study, server, "--temperature", 0)
        assert run.exit_code == 0, run.output
        assert len(server.calls) == 2 + len(script)
    assert run.changes == changes
    assert all(name in run.output for name, _ in changes)


def test_several_rejected_parameters_are_learned_once_and_remembered(study: Path) -> None:
    with FakeOpenAI() as server:
        server.rejected = {"max_tokens", "temperature"}
        run = annotate(study, server, "--temperature", 0)
        assert run.changes == [("max_tokens", "renamed to max_completion_tokens"), TEMPERATURE]
        assert len(server.calls) == 4
        sent = run.replies[0].reply.sent
        assert ("temperature" in sent, sent["max_completion_tokens"]) == (False, 2048)
        annotate(study, server, "--temperature", 0, "--seed", 5, "--name", "second")
        assert len(server.calls) == 6  # another run of the study knows what the endpoint rejects


@pytest.mark.parametrize("refused", [{"response_format"}, {"response_format", "seed"}])
def test_openrouter_names_no_parameter(study: Path, refused: set[str]) -> None:
    with FakeOpenRouter() as server:
        server.rejected = refused
        run = annotate(study, server)
        assert run.exit_code == 0
    assert run.changes[-1] == (SEED if "seed" in refused else ("structured output", OMITTED))
    assert run.replies[0].cost == Decimal("0.00123")


def test_deepseek_falls_back_to_json_and_then_to_nothing(study: Path) -> None:
    with FakeDeepSeek() as server:
        server.rejected = {"response_format"}
        run = annotate(study, server, "--effort", "none")
        assert [body.get("response_format") for body in server.calls] == [{"type": "json_object"}, None, None]
        assert server.calls[0]["thinking"] == {"type": "disabled"}
    assert run.replies[0].reply.cache_read_tokens == 64


def test_the_limit_is_never_dropped(study: Path) -> None:
    with FakeOpenAI() as server:
        message = "Unsupported parameter: '{}' is not supported with this model."
        server.script = [
            error(400, message.format(name), "unsupported_parameter", name)
            for name in ("max_tokens", "max_completion_tokens")
        ]
        run = annotate(study, server)
        assert run.exit_code == 1
        assert "accepts no limit on the length of replies" in run.output
        assert len(server.calls) == 2


def test_a_rejected_parameter_that_was_not_sent_fails_once(study: Path) -> None:
    with FakeOpenAI() as server:
        server.script = [error(400, "Unknown parameter: 'reasoning'.", "unknown_parameter", "reasoning")] * 2
        run = annotate(study, server)
        assert run.exit_code == 1
        assert len(server.calls) == 2


def test_did_you_mean_is_not_followed(study: Path) -> None:
    with FakeCompatible() as server:
        message = "property 'seed' is unsupported, did you mean 'stop'?"
        server.script = [Answer(400, {"error": {"message": message, "type": "invalid_request_error"}})]
        assert annotate(study, server).changes == [SEED]
        assert all("stop" not in body for body in server.calls)


def test_only_one_call_learns(study: Path) -> None:
    documents = [Document(id=f"e{number}", text=f"Text {number}.") for number in range(12)]
    formats.save_records([load("scarecrow"), *documents], study, force=True)
    with FakeOpenAI() as server:
        server.script = [Answer(400, SEED_ERROR.body, hang=0.5)]
        annotate(study, server, "--concurrency", 12)
        assert len(server.calls) == 13


# --- failures ----------------------------------------------------------------------------------------------------

QUOTA = {
    "message": "You exceeded your current quota.",
    "type": "insufficient_quota",
    "code": "credit_balance_exhausted",
}


@pytest.mark.parametrize(
    ("kind", "answer", "message"),
    [
        (FakeOpenAI, Answer(429, {"error": QUOTA}), "no credit or quota left"),
        (FakeDeepSeek, Answer(402, {"error": {"message": "Insufficient Balance"}}), "no credit or quota left"),
        (
            FakeAnthropic,
            anthropic_error(429, "rate_limit_error", "Limit", details={"error_code": "enforced_spend_limit_reached"}),
            "no credit or quota left",
        ),
        (
            FakeAnthropic,
            anthropic_error(
                400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."
            ),
            "no credit or quota left",
        ),
        (
            FakeGemini,
            google_error(
                429,
                "RESOURCE_EXHAUSTED",
                "Quota exceeded",
                [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]}],
            ),
            "no credit or quota left",
        ),
        (FakeGemini, google_error(400, "FAILED_PRECONDITION", "User location is not supported"), "location"),
        (FakeCompatible, Answer(400, {"error": {"message": "no model", "code": "model_not_found"}}), "model"),
        (FakeOpenAI, Answer(200, b"<html>Sign in to the network</html>", {"Content-Type": "text/html"}), "web page"),
    ],
)
def test_what_will_not_work_stops_at_once_in_one_line(
    study: Path, kind: type[FakeServer], answer: Answer, message: str
) -> None:
    with kind() as server:
        server.script = [answer] * 3
        run = annotate(study, server)
        assert len(server.calls) == 1
    assert run.exit_code == 1
    assert message in run.output
    assert run.changes == []


def test_money_that_runs_out_later_keeps_the_replies(study: Path) -> None:
    with FakeOpenAI() as server:
        server.script = [Answer(200, completion('{"marks": []}')), Answer(429, {"error": QUOTA})]
        run = annotate(study, server, "--concurrency", 1)
        assert (run.exit_code, len(server.calls)) == (3, 2)
        assert "1 of 2 texts read" in run.output
        assert annotate(study, server).exit_code == 0
        assert len(server.calls) == 3


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        (
            FakeOpenRouter,
            Answer(200, {"error": {"code": 502, "message": "Provider returned error", "metadata": {"raw": "x"}}}),
        ),
        (FakeOllama, Answer(500, {"error": "the model failed to generate a response"})),
        (
            FakeCompatible,
            Answer(503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}),
        ),
        (
            FakeOpenAI,
            Answer(429, {"error": {"message": "slow", "code": "rate_limit_exceeded"}}, {"retry-after-ms": "50"}),
        ),
        (FakeAnthropic, anthropic_error(529, "overloaded_error", "Overloaded")),
        (FakeGemini, google_error(429, "RESOURCE_EXHAUSTED", "slow", [{"@type": "x.RetryInfo", "retryDelay": "0.1s"}])),
        (FakeGemini, google_error(503, "UNAVAILABLE", "The model is overloaded.")),
        (FakeMistral, Answer(200, completion("", "error"))),
        (FakeOpenAI, Answer(200, completion("x" * 400), cut=True)),
    ],
)
def test_what_may_work_later_is_repeated(study: Path, kind: type[FakeServer], answer: Answer) -> None:
    with kind() as server:
        server.script = [answer]
        run = annotate(study, server, "--concurrency", 1)
        assert (run.exit_code, len(server.calls)) == (0, 3)
    assert "1 retried" in run.output


CONTEXT_MESSAGE = "This model's maximum context length is 4096 tokens. However, your prompt contains 9000."
TOO_LONG: list[tuple[type[FakeServer], Answer]] = [
    (
        FakeCompatible,
        Answer(
            400,
            {
                "error": {
                    "code": 400,
                    "message": "request (9 tokens) exceeds the available context size (8 tokens), try increasing it",
                    "type": "exceed_context_size_error",
                }
            },
        ),
    ),
    (
        FakeCompatible,
        Answer(400, {"error": {"message": CONTEXT_MESSAGE, "type": "BadRequestError", "param": "input_tokens"}}),
    ),
    (FakeOpenAI, error(400, "too long", "context_length_exceeded", "messages")),
    (FakeAnthropic, anthropic_error(413, "request_too_large", "Request exceeds the maximum size")),
    (
        FakeGemini,
        google_error(400, "INVALID_ARGUMENT", "The input token count exceeds the maximum number of tokens allowed"),
    ),
    (FakeOpenAI, Answer(429, {"error": {"message": "no"}}, {"x-should-retry": "false"})),
]


@pytest.mark.parametrize(("kind", "answer"), TOO_LONG)
def test_a_text_that_cannot_be_sent_fails_alone(study: Path, kind: type[FakeServer], answer: Answer) -> None:
    with kind() as server:
        server.script = [answer]
        run = annotate(study, server, "--concurrency", 1)
        assert (run.exit_code, len(server.calls)) == (3, 2)
    assert "1 of 2 texts read" in run.output


def test_wrong_names_and_keys_are_explained(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (FakeOpenAI, FakeAnthropic, FakeGemini, FakeOllama):
        with kind() as server:
            name = MODEL[kind].replace("large", "lrge")
            run = annotate(study, server, model=name)
            assert "did you mean 'judge-large'?" in run.output
            assert (run.exit_code, len(server.calls)) == (1, 1)
    with FakeAzure() as azure:
        assert (
            "must name a deployment" in annotate(study, azure, "--api-version", "1", model="azure:judge-largo").output
        )
    monkeypatch.setenv("FAKE_KEY", "sk-wrong-key")
    for kind in (FakeOpenAI, FakeAnthropic, FakeGemini, FakeAzure):
        with kind() as server:
            run = annotate(study, server)
            assert "check the key in FAKE_KEY" in run.output
            assert "sk-wrong-key" not in run.output


def test_the_usual_key_is_not_sent_to_another_host(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with FakeOpenAI() as server:
        words = ["annotate", study, "--model", "openai:judge-large", "--base-url", server.url]
        CliRunner().invoke(app, [str(word) for word in words])
        assert all("authorization" not in request.headers for request in server.received)


def test_a_certificate_that_cannot_be_verified_is_explained(study: Path, tmp_path: Path) -> None:
    import shutil
    import ssl
    import subprocess

    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1", "-days", "1"]
    subprocess.run([*request, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    with FakeCompatible() as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server._server.socket = context.wrap_socket(server._server.socket, server_side=True)
        server.root = server.root.replace("http:", "https:")
        run = annotate(study, server)
    assert run.exit_code == 1
    assert "cannot be verified" in run.output
    assert "SSL_CERT_FILE" in run.output


def test_without_a_network_nothing_is_lost(study: Path) -> None:
    with FakeCompatible() as server:
        annotate(study, server, "--limit", 1)
    server.root = "http://127.0.0.1:9"
    run = annotate(study, server, "--name", "other")
    assert run.exit_code == 1
    assert "cannot reach 127.0.0.1:9" in run.output
    assert "0 of 2 texts read" in run.output


# --- replies -----------------------------------------------------------------------------------------------------

SAFETY = {"candidates": [{"finishReason": "SAFETY", "index": 0}], "usageMetadata": {"promptTokenCount": 5000}}
THOUGHTS = {
    "candidates": [{"finishReason": "MAX_TOKENS"}],
    "usageMetadata": {"promptTokenCount": 5000, "thoughtsTokenCount": 2048},
}
FILTER = {
    "error": {
        "message": "The response was filtered",
        "code": "content_filter",
        "status": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation"},
    }
}
CLAUDE: dict[str, Any] = {
    "type": "message",
    "role": "assistant",
    "model": "m",
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 5000, "output_tokens": 9},
}
ALL_THINKING = completion("", "length", output=2048)
ALL_THINKING["usage"]["completion_tokens_details"] = {"reasoning_tokens": 2048}


@pytest.mark.parametrize(
    ("kind", "answer", "state", "reason"),
    [
        (FakeAzure, Answer(400, FILTER), "refused", "filtered"),
        (FakeOpenAI, Answer(200, completion(None, refusal="I can't")), "refused", "I can't"),
        (FakeOpenAI, Answer(200, ALL_THINKING), "truncated", "used for reasoning"),
        (FakeOpenAI, Answer(200, completion('{"marks": [', "content_filter")), "refused", "content filter"),
        (FakeMistral, Answer(200, completion("{", "model_length")), "truncated", "maximum number of tokens"),
        (
            FakeAnthropic,
            Answer(
                200,
                {
                    **CLAUDE,
                    "content": [],
                    "stop_reason": "refusal",
                    "stop_details": {"category": "cyber", "explanation": "No."},
                },
            ),
            "refused",
            "cyber: No.",
        ),
        (FakeGemini, Answer(200, {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}), "refused", "PROHIBITED"),
        (FakeGemini, Answer(200, SAFETY), "refused", "SAFETY"),
        (FakeGemini, Answer(200, THOUGHTS), "truncated", "used for reasoning"),
        (FakeOpenAI, Answer(200, {"object": "something else"}), "unreadable", "instead of a completion"),
        (FakeOpenAI, Answer(200, completion('{"marks": ["some words"]}')), "unreadable", "no entry of `marks`"),
        (FakeOpenAI, Answer(200, completion("[" * 5000)), "unreadable", "more than 32 levels"),
    ],
)
def test_a_reply_that_is_not_an_annotation_is_named_and_not_bought_again(
    study: Path, kind: type[FakeServer], answer: Answer, state: str, reason: str
) -> None:
    with kind() as server:
        server.script = [answer]
        run = annotate(study, server, "--concurrency", 1)
        assert run.exit_code == 3
        assert "1 of 2 texts read" in run.output
        annotation = next(iter(formats.read(study).iter_annotations()))
        assert annotation.excluded
        assert annotation.excluded.reason.startswith(f"reply {state}: ")
        assert reason in annotation.excluded.reason
        assert annotate(study, server).exit_code == 3
        assert len(server.calls) == 2
        retried = annotate(study, server, "--retry", state)
        assert (retried.exit_code, len(server.calls)) == (0, 3)
        if state == "truncated" and kind is FakeOpenAI:
            assert server.calls[-1]["max_tokens"] == 4096


def test_texts_of_several_blocks_are_joined(study: Path) -> None:
    blocks = [
        {"type": "thinking", "thinking": "Hm.", "signature": "x"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": '{"marks"'},
        {"type": "text", "text": ": []}"},
    ]
    with FakeAnthropic() as server:
        server.script = [Answer(200, {**CLAUDE, "content": blocks})]
        run = annotate(study, server, "--limit", 1)
    assert (run.exit_code, run.replies[0].reply.text, run.replies[0].reply.thinking) == (0, '{"marks": []}', "Hm.")


def test_an_unpaired_surrogate_in_a_label_is_stored(study: Path) -> None:
    mark = '{"quote": "the sea", "before": "saw", "after": "", "label": "\\\\ud83d", "explanation": "\\\\udc00"}'
    body = json.dumps(completion("TEXT")).replace("TEXT", '{\\"marks\\": [' + mark.replace('"', '\\"') + "]}")
    with FakeOpenAI() as server:
        server.script = [Answer(200, body.encode())]
        run = annotate(study, server, "--concurrency", 1)
        assert run.exit_code == 0
        assert annotate(study, server).exit_code == 0
        assert len(server.calls) == 2
    assert len(formats.read(study).marks) == 1


def test_a_limit_that_a_server_ignores_stops_the_run(study: Path) -> None:
    with FakeCompatible(ignores_limit=True) as server:
        run = annotate(study, server, "--concurrency", 1)
        assert len(server.calls) == 1
    assert run.exit_code == 3
    assert "ignored the limit of 2,048 tokens and sent 9,000" in run.output


@pytest.mark.parametrize("size", [60_000, 30_000])
def test_a_prompt_that_a_server_shortens_is_a_failure(study: Path, size: int) -> None:
    text = "The ferry left the harbour at six. " * (size // 35)
    formats.save_records([load("scarecrow"), Document(id="long", text=text)], study, force=True)
    with FakeCompatible(context=4096, truncates=True) as server:
        run = annotate(study, server)
    assert run.exit_code == 1
    annotation = next(iter(formats.read(study).iter_annotations()))
    assert annotation.excluded
    assert "so it shortened the prompt" in annotation.excluded.reason


# --- money -------------------------------------------------------------------------------------------------------


def usage_reply(server: FakeServer, usage: dict[str, Any]) -> Answer:
    if isinstance(server, FakeAnthropic):
        return Answer(200, {**CLAUDE, "content": [{"type": "text", "text": '{"marks": []}'}], "usage": usage})
    if isinstance(server, FakeGemini):
        parts = [{"text": '{"marks": []}'}]
        return Answer(
            200, {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}], "usageMetadata": usage}
        )
    return Answer(200, {**completion('{"marks": []}'), "usage": usage})


PRICES = """
format: finecomb-prices/1
prices:
  - {host: "*", model: "judge-*", input: 2, output: 10, cache_read: 0.1, cache_write: 2.5, cache_write_1h: 4}
"""


@pytest.mark.parametrize(
    ("kind", "usage", "cost"),
    [
        (
            FakeAnthropic,
            {
                "input_tokens": 21,
                "cache_read_input_tokens": 188086,
                "cache_creation_input_tokens": 500,
                "cache_creation": {"ephemeral_1h_input_tokens": 500},
                "output_tokens": 100,
            },
            (21 * 2 + Decimal("18808.6") + 500 * 4 + 100 * 10),
        ),
        (
            FakeOpenAI,
            {
                "prompt_tokens": 12000,
                "completion_tokens": 10,
                "prompt_tokens_details": {"cached_tokens": 10240, "cache_write_tokens": 1000},
            },
            (760 * 2 + Decimal("1024") + 2500 + 100),
        ),
        (
            FakeGemini,
            {"promptTokenCount": 5000, "candidatesTokenCount": 10, "thoughtsTokenCount": 900},
            Decimal(5000 * 2 + 910 * 10),
        ),
    ],
)
def test_cached_and_reasoning_tokens_have_their_prices(
    study: Path, kind: type[FakeServer], usage: dict[str, Any], cost: Decimal
) -> None:
    (study / "prices.yaml").write_text(PRICES, encoding="utf-8")
    with kind() as server:
        server.script = [usage_reply(server, usage)]
        run = annotate(study, server, "--limit", 1)
    assert run.replies[0].cost == cost / 1_000_000


def test_a_reply_without_usage_costs_the_maximum(study: Path) -> None:
    with FakeOpenAI() as server:
        server.script = [usage_reply(server, {})]
        run = annotate(study, server, "--limit", 1, "--price", "1,1")
    assert run.replies[0].cost > Decimal("0.002048")


def test_the_budget_waits_for_calls_in_progress(study: Path) -> None:
    documents = [Document(id=f"e{number}", text=f"Text {number}.") for number in range(12)]
    formats.save_records([load("scarecrow"), *documents], study, force=True)
    with FakeOpenAI() as server:
        # The budget covers the maximum cost of two calls at a time, and the actual cost of all.
        run = annotate(study, server, "--price", "1,20", "--budget", 0.17, "--concurrency", 8, "--max-tokens", 2000)
    assert (run.exit_code, len(run.replies)) == (0, 12)
    assert sum(entry.cost for entry in run.replies) <= Decimal("0.17")


def test_a_dry_run_estimates_the_cost_from_three_texts(study: Path) -> None:
    documents = [Document(id=f"e{number}", text=f"Text {number}. " * (number + 1)) for number in range(8)]
    formats.save_records([load("scarecrow"), *documents], study, force=True)
    with FakeOpenAI() as server:
        options = ("--price", "1,2", "--json", "--dry-run")
        before = annotate(study, server, *options)
        assert "annotate three texts first" in before.output
        annotate(study, server, "--limit", 3, "--price", "1,2")
        row = json.loads(annotate(study, server, *options).output)["table"][0]
        assert len(server.calls) == 3
        assert 0 < row["low"] <= row["likely cost"] <= row["high"] < row["most it can cost"]
        run = annotate(study, server, "--price", "1,2")
        rest = float(sum(entry.cost for entry in run.replies[3:]))
        assert rest == pytest.approx(row["likely cost"], rel=0.02)
        assert "price is unknown" in annotate(study, server, "--dry-run", "--name", "x").output


# --- commands ----------------------------------------------------------------------------------------------------


def command(*words: object) -> Any:
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return json.loads(result.output)["table"]


@pytest.mark.parametrize("kind", MODEL)
def test_models_are_listed(kind: type[FakeServer]) -> None:
    with kind() as server:
        prefix = "" if kind is FakeCompatible else MODEL[kind].partition(":")[0] + ":"
        words = ["models", "list", prefix, "--base-url", server.url, "--json"]
        words += [] if kind in (FakeCompatible, FakeOllama) else ["--key-env", "FAKE_KEY"]
        rows = command(*words)
    assert [row["model"] for row in rows] == [f"{prefix}judge-large", f"{prefix}judge-small"]


def check_results(server: FakeServer, *words: object) -> Iterator[tuple[str, str]]:
    keys = [] if isinstance(server, FakeCompatible | FakeOllama) else ["--key-env", "FAKE_KEY"]
    rows = command("models", "test", MODEL[type(server)], "--base-url", server.url, "--json", *keys, *words)
    yield from ((row["check"], row["result"]) for row in rows)


def test_a_model_is_tested() -> None:
    with FakeOpenAI() as server:
        server.rejected = {"temperature"}
        checks = dict(check_results(server, "--price", "1,2"))
    assert checks["temperature"] == "omitted"
    assert (checks["seed"], checks["structured output"], checks["price"]) == ("accepted", "json_schema", "known")
    assert checks["determinism"] == "two replies are equal"
    with FakeCompatible(context=4096, ignores_limit=True, truncates=True) as local:
        checks = dict(check_results(local))
    assert checks["limit on replies"] == "IGNORED"
    assert checks["long prompt"] == "TRUNCATED"
    assert (checks["context length"], checks["price"]) == ("4,096", "unknown")


def test_prices_are_an_editable_file_without_figures(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    assert command("prices", "--file", file, "--create", "--json") == []
    assert "prices: []" in file.read_text(encoding="utf-8")
    file.write_text(PRICES, encoding="utf-8")
    (row,) = command("prices", "--file", file, "--json")
    assert (row["model"], row["input"], row["output"]) == ("judge-*", 2.0, 10.0)
    file.write_text(PRICES.replace("input: 2", "input: -2"), encoding="utf-8")
    with pytest.raises(FinecombError, match=r"prices.yaml:4: .*input"):
        command("prices", "--file", file, "--json")
