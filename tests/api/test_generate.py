"""Text generation called from Python, compared with what the command prints."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import finecomb as fc
from finecomb.annotators.llm.blocking import RunInterrupted
from finecomb.api.generation import GeneratedTexts, generate
from finecomb.core.errors import FinecombError
from tests.annotators.llm.scripted_server import ScriptedAnswer, ScriptedServer
from tests.api.test_annotators import assert_short, printed

GOOD = ScriptedAnswer(" It sailed far to the north. Then it", finish="length")
PROMPTS = [{"id": f"p{number}", "text": f"Ferry {number} left the harbour."} for number in range(3)]


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    file = tmp_path / "prompts.jsonl"
    file.write_text("\n".join(map(json.dumps, PROMPTS)))
    return file


def written(server: ScriptedServer, prompts: Any, **keywords: Any) -> GeneratedTexts:
    return generate(prompts, "m", base_url=server.url, words="6-12", **keywords)


def test_texts_are_those_that_the_command_writes(prompts: Path, tmp_path: Path) -> None:
    settings = ("--model", "m", "--words", "6-12", "--top-p", ".4,.96", "--temperature", "0,1")
    with ScriptedServer(lambda body, number: GOOD) as server:
        command = tmp_path / "command.jsonl"
        shown = printed("generate", prompts, "-o", command, "--base-url", server.url, *settings)
        asked = len(server.requests)
        result = written(server, prompts, top_p=[0.4, 0.96], temperature="0,1")
        assert len(server.requests) == 2 * asked == 18
        assert not (tmp_path / "prompts.jsonl.runs").exists()
        written(server, prompts, top_p=".4,.96", temperature=[0, 1], output=tmp_path / "function.jsonl")
    assert result.to_dicts() == shown["table"]
    assert len(result.study.documents) == 9
    assert (tmp_path / "function.jsonl").read_text() == command.read_text()
    assert_short(result)


@pytest.mark.parametrize("kind", ["study", "dicts", "frame", "path"])
def test_prompts_come_from_studies_tables_and_files(prompts: Path, kind: str) -> None:
    inputs = {"study": fc.read(prompts), "dicts": PROMPTS, "frame": pl.DataFrame(PROMPTS), "path": str(prompts)}
    with ScriptedServer(lambda body, number: GOOD) as server:
        result = written(server, inputs[kind], limit=2)
    assert [text.context["prompt"] for text in result.study.iter_documents()] == [row["text"] for row in PROMPTS[:2]]


def test_a_running_event_loop_is_no_obstacle() -> None:
    async def notebook(server: ScriptedServer) -> GeneratedTexts:
        return written(server, PROMPTS)

    with ScriptedServer(lambda body, number: GOOD) as server:
        assert len(asyncio.run(notebook(server)).study.documents) == 3


def test_an_interrupted_run_keeps_its_texts_and_resumes(tmp_path: Path) -> None:
    def interrupt(done: int, total: int | None) -> None:
        if done == 1:
            raise KeyboardInterrupt

    output = tmp_path / "texts.jsonl"
    with ScriptedServer(lambda body, number: GOOD) as server:
        with pytest.raises(RunInterrupted) as stop:
            written(server, PROMPTS, concurrency=1, output=output, progress=interrupt)
        assert 1 <= len(stop.value.result.study.documents) < 3
        assert len(fc.read(output).documents) == len(stop.value.result.study.documents)
        written(server, PROMPTS, concurrency=1, output=output)
    assert len(fc.read(output).documents) == 3


def test_a_dry_run_sends_nothing(prompts: Path, tmp_path: Path) -> None:
    with ScriptedServer(lambda body, number: GOOD) as server:
        words = ("-o", tmp_path / "x.jsonl", "--model", "m", "--base-url", server.url, "--price", "1,1", "--dry-run")
        shown = printed("generate", prompts, *words)
        result = generate(prompts, "m", base_url=server.url, price=(1, 1), dry_run=True, output=tmp_path / "x.jsonl")
        assert server.requests == []
    assert (result.to_dicts(), list(result.notes)) == (shown["table"], shown["notes"])
    assert result.messages[-1].content == PROMPTS[0]["text"]
    assert result.run is None
    assert result.study.documents.is_empty()
    assert not (tmp_path / "x.jsonl").exists()
    assert_short(result)


def test_texts_that_never_come_have_their_reason() -> None:
    with ScriptedServer(lambda body, number: ScriptedAnswer("Short.")) as server:
        result = generate(PROMPTS, "m", base_url=server.url, tries=2)
    assert result.study.documents.is_empty()
    assert result.notes[0].startswith("3 texts dropped: fewer than 80 words")


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"top_p": 0}, r"^top_p must be above 0 and at most 1, found 0$"),
        ({"temperature": [1, 3]}, r"^temperature must be between 0 and 2, found 3$"),
        ({"top_p": "a"}, r"^top_p=a: expected comma-separated numbers"),
        ({"words": "80"}, r"^words=80: expected MIN-MAX or MIN-"),
        ({"words": "20-30", "to_end": True}, r"^words and to_end cannot be used together"),
        ({"max_tokens": 50}, r"^max_tokens requires to_end; otherwise words sets the length$"),
        ({"budget": 1.0}, r"^budget requires price=IN,OUT"),
        ({"tries": 0}, r"^tries must be at least 1, found 0$"),
        ({"vary": "both"}, r"^vary must be one of independently, cross, found 'both'$"),
        ({"base_url": "", "interface": "chat"}, r"^interface=chat cannot be used with runtime=transformers"),
    ],
)
def test_bad_options_are_refused(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(FinecombError, match=message):
        generate(PROMPTS, "m", **{"base_url": "http://127.0.0.1:9/v1", **keywords})


def test_texts_of_another_run_are_not_replaced(tmp_path: Path) -> None:
    output = tmp_path / "texts.jsonl"
    with ScriptedServer(lambda body, number: GOOD) as server:
        written(server, PROMPTS, output=output)
        with pytest.raises(FinecombError, match=r"belongs to another run; choose another name or pass force$"):
            written(server, PROMPTS, output=output, top_p=0.5)
        written(server, PROMPTS, output=output, top_p=0.5, force=True)
