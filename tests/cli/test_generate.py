from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from finecomb import formats
from tests.annotators.llm.scripted_server import ScriptedAnswer, ScriptedServer
from tests.test_cli import refused, run

GOOD = ScriptedAnswer(" It sailed far to the north. Then it", finish="length")
ARTICLE = (
    "Ferry {} left the harbour. It carried {} sheep and a piano to the island. Nobody knew why. A boy waved at it."
)


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    articles = tmp_path / "articles.jsonl"
    lines = [{"id": f"a{number}", "text": ARTICLE.replace("{}", str(number)), "topic": "sea"} for number in range(4)]
    articles.write_text("\n".join(map(json.dumps, lines)))
    output = tmp_path / "prompts.jsonl"
    result = run("prepare", articles, "-o", output, "--prompt", "first-sentence", "--words", "8-40")
    assert "4 texts" in result.stdout
    return output


def generated(server: ScriptedServer, prompts: Path, *more: str | Path) -> Any:
    output = prompts.with_name("texts.jsonl")
    arguments = ("-o", output, "--model", "m", "--base-url", server.url, "--words", "6-12", *more)
    return run("generate", prompts, *arguments)


def test_from_articles_to_texts_with_settings(prompts: Path) -> None:
    with ScriptedServer(lambda body, number: GOOD) as server:
        first = generated(server, prompts, "--top-p", ".4,.96", "--temperature", "0,1", "--frequency-penalty", "0,1")
        asked = len(server.requests)
        again = generated(server, prompts, "--top-p", ".4,.96", "--temperature", "0,1", "--frequency-penalty", "0,1")
        assert (asked, len(server.requests)) == (24, 24)
    assert "24 texts from 4 prompts" in first.stdout
    assert "0 calls made, 24 cached" in again.stderr
    texts = list(formats.read(prompts.with_name("texts.jsonl")).iter_documents())
    assert texts[0].context == {"prompt": "Ferry 0 left the harbour."}
    assert texts[0].references == ("It carried 0 sheep and a piano to the island.",)
    assert {text.meta["topic"] for text in texts} == {"sea"}


def test_texts_of_people_and_models_become_a_study(prompts: Path) -> None:
    with ScriptedServer(
        lambda body, number: ScriptedAnswer(f" It sailed far with {body['seed']} sheep. Then")
    ) as server:
        generated(server, prompts, "--temperature", "0,1", "--name", "small")
    chosen, study = prompts.with_name("chosen.jsonl"), prompts.with_name("study")
    result = run("prepare", prompts, prompts.with_name("texts.jsonl"), "-o", chosen, "--balance", "topic,model")
    assert "topic sea, model human: 4" in result.stderr
    assert "topic sea, model small: 4" in result.stderr
    assert "8 texts" in run("new", study, "-p", "scarecrow", "-d", chosen).stdout
    texts = list(formats.read(study).iter_documents())
    assert {text.meta["prompt_id"] for text in texts} == {"a0", "a1", "a2", "a3"}
    assert "small" in run("stats", study).stdout


def test_stopped_by_its_budget_the_texts_so_far_are_written_and_the_command_goes_on(prompts: Path) -> None:
    with ScriptedServer(lambda body, number: GOOD) as server:
        limits = ("--price", "1,1", "--concurrency", "1")
        stopped = generated(server, prompts, *limits, "--budget", "0.0001")
        some = len(list(formats.read(prompts.with_name("texts.jsonl")).iter_documents()))
        assert 0 < some < 4
        assert (
            "stopped because the budget was reached; raise the budget and run the same command again to resume"
            in stopped.stderr
        )
        generated(server, prompts, *limits, "--budget", "1")
        assert len(server.requests) == 4
    assert len(list(formats.read(prompts.with_name("texts.jsonl")).iter_documents())) == 4


def test_another_runs_texts_are_not_replaced_unless_that_is_said(prompts: Path) -> None:
    with ScriptedServer(lambda body, number: GOOD) as server:
        generated(server, prompts)
        message = refused(
            *("generate", prompts, "-o", prompts.with_name("texts.jsonl"), "--model", "m", "--base-url", server.url),
            *("--words", "6-12", "--top-p", ".5"),
        )
        assert "belongs to another run" in message
        generated(server, prompts, "--top-p", ".5", "--force")


def test_a_dry_run_shows_the_fourteen_settings_and_sends_nothing(prompts: Path) -> None:
    settings = ("--top-p", ".4,.7,.9,.96", "--temperature", "0,.4,.7,1", "--frequency-penalty", "0,1")
    with ScriptedServer(lambda body, number: GOOD) as server:
        result = generated(server, prompts, *settings, "--dry-run", "--json")
        assert server.requests == []
    table = json.loads(result.stdout)
    assert [row["texts"] for row in table["table"]] == [4] * 14
    assert "56 texts from 4 prompts; no request was sent" in table["notes"]


def test_texts_that_never_come_are_an_error_with_the_reason(prompts: Path) -> None:
    with ScriptedServer(lambda body, number: ScriptedAnswer("Short.")) as server:
        message = refused(
            *("generate", prompts, "-o", prompts.with_name("none.jsonl"), "--model", "m", "--base-url", server.url),
            *("--tries", "2"),
        )
    assert "no text was generated: fewer than 80 words" in message
    assert not prompts.with_name("none.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--top-p", "0"), "must be above 0 and at most 1, found 0"),
        (("--top-p", "a"), "expected comma-separated numbers"),
        (("--temperature", "3"), "must be between 0 and 2, found 3"),
        (("--words", "80"), "expected MIN-MAX"),
        (("--words", "20-30", "--to-end"), "cannot be used together"),
        (("--max-tokens", "50"), "requires --to-end"),
        (("--base-url", "", "--model", "local:smolm"), "did you mean 'smollm2'"),
        (("--budget", "1"), "--price"),
    ],
)
def test_bad_options_are_refused_in_one_line(prompts: Path, arguments: tuple[str, ...], message: str) -> None:
    common = (
        "generate",
        prompts,
        "-o",
        prompts.with_name("x.jsonl"),
        "--model",
        "m",
        "--base-url",
        "http://127.0.0.1:9/v1",
    )
    words = refused(*common, *arguments)
    assert message in words
    assert len(words.strip().splitlines()) == 1


def test_an_empty_corpus_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert "no texts" in refused("prepare", empty, "-o", tmp_path / "x.jsonl")
    words = refused(
        "generate", empty, "-o", tmp_path / "x.jsonl", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"
    )
    assert "no prompts" in words
