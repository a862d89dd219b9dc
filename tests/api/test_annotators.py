"""Detectors and language models called from Python, compared with what the commands print."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import finecomb as fc
from finecomb.annotators.detectors import DETECTORS
from finecomb.annotators.detectors.boxscore.ranker import parse_ranker
from finecomb.annotators.llm.blocking import RunInterrupted
from finecomb.api.annotators import (
    ModelAnnotation,
    annotate,
    attack_prompt,
    detect,
    export_prompt,
    list_detectors,
    show_prompt,
    train,
)
from finecomb.core.errors import FinecombError, ParameterError
from finecomb.core.records import Annotation, Document, ModelSettings, Settings
from finecomb.core.results import Result
from finecomb.core.study import Study
from finecomb.protocols import load
from finecomb.reporting.tables import format_json_tables
from tests.annotators.llm.scripted_server import ScriptedAnswer, ScriptedServer
from tests.cli.test_annotate import REPLY
from tests.cli.test_detect import study as game_items
from tests.test_cli import run


def printed(*words: str | Path) -> dict[str, Any]:
    output: dict[str, Any] = json.loads(run(*words, "--json").stdout)
    return output


def assert_short(result: Result) -> None:
    assert len(repr(result).splitlines()) <= 15
    assert len(repr(result)) <= 2000
    assert result._repr_html_().startswith("<")


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("games") / "study"
    fc.write(Study.from_items(game_items(12)), folder)
    return folder


# --- detectors -------------------------------------------------------------------------------------------------------


def test_detectors_are_listed_as_the_command_prints_them() -> None:
    result = list_detectors()
    assert result.to_dicts() == printed("detectors")["table"]
    assert [row.name for row in result] == list(DETECTORS)
    assert_short(result)


def test_marks_are_those_that_the_command_prints(games: Path) -> None:
    expected = printed("detect", games, "--detector", "boxscore", "--threshold", "0.5")
    for study in (games, str(games), fc.read(games)):
        result = detect(study, "boxscore", threshold=0.5)
        assert result.to_dicts() == expected["table"]
        assert result.signature == expected["signature"]
        assert list(result.notes) == expected["notes"]
        assert_short(result)


def test_the_study_has_the_detector_as_one_more_annotator(games: Path, tmp_path: Path) -> None:
    before = fc.read(games)
    result = detect(before, "boxscore")
    assert set(result.study.annotators["id"]) == {*before.annotators["id"], "boxscore"}
    assert len(result.study.marks) == len(before.marks) + len(result) == len(before.marks) + result.mark_count
    assert result.text_count == 12
    assert "boxscore" not in before.annotators["id"].to_list()
    run("detect", games, "--detector", "boxscore", "-o", tmp_path / "command")
    detect(games, "boxscore", output=tmp_path / "function")
    assert fc.read(tmp_path / "function") == fc.read(tmp_path / "command") == result.study
    with pytest.raises(FinecombError, match="already exists"):
        detect(games, "boxscore", output=tmp_path / "function")
    detect(games, "boxscore", output=tmp_path / "function", force=True)


def test_parquet_that_stays_on_disk_gives_the_same_rows(tmp_path: Path) -> None:
    texts = Study.from_items(item for item in game_items(5) if not isinstance(item, Annotation))
    fc.write(texts, tmp_path / "texts.parquet")
    result = detect(tmp_path / "texts.parquet", "boxscore", output=tmp_path / "marked.parquet")
    assert result == detect(texts, "boxscore")
    assert result.study == fc.read(tmp_path / "marked.parquet")
    assert result.output == tmp_path / "marked.parquet"


@pytest.mark.parametrize("kind", ["dicts", "polars", "pandas"])
def test_tables_of_texts_are_marked(kind: str) -> None:
    rows = [{"id": "a", "text": "He saw the the boat."}, {"id": "b", "text": "He left."}]
    table: Any = rows if kind == "dicts" else pl.DataFrame(rows)
    if kind == "pandas":
        table = pytest.importorskip("pandas").DataFrame(rows)
    result = detect(table, "rules", rules=["doubled-words"])
    assert [(row.document, row.label) for row in result] == [("a", "grammar-usage")]


def test_progress_is_told_to_a_function() -> None:
    seen: list[tuple[int, int | None]] = []
    detect(fc.demo(), "rules", progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (16, 16)


def test_a_part_of_a_study_is_marked() -> None:
    whole = detect(fc.demo(), "rules")
    part = detect(fc.demo(), "rules", where=["id=school-c"])
    assert [row for row in whole if row.document == "school-c"] == list(part)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"detector": "boxscor"}, r"^unknown detector 'boxscor'; did you mean 'boxscore'\?$"),
        ({"detector": "rules", "threshold": 0.5}, "^threshold does not apply to rules; it applies to boxscore"),
        ({"detector": "rules", "protocol": "scarecrow"}, "^protocol does not apply to rules; it applies to critic$"),
        ({"detector": "boxscore", "threshold": 2.0}, "^threshold must be from 0 to 1, found 2$"),
        ({"detector": "rules", "rules": "arithmatic"}, "^rules: unknown rule 'arithmatic'; did you mean"),
        ({"detector": "boxscore", "basis": "some"}, "^basis must be one of record, all, found 'some'$"),
        ({"detector": "rules", "workers": 0}, "^workers must be at least 1, found 0$"),
        ({"detector": "coherence"}, "^detector=coherence must be fitted first; .*, then pass weights=FOLDER$"),
        ({"detector": "rules", "options": {"rule": "x"}}, "^unknown option 'rule'; did you mean 'rules'"),
        ({"detector": "rules", "basic": "all"}, "has no parameter 'basic'; did you mean 'basis'"),
    ],
)
def test_what_does_not_apply_is_refused(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(FinecombError, match=message):
        detect(fc.demo(), **keywords)


def test_a_study_without_texts_is_refused() -> None:
    with pytest.raises(FinecombError, match=r"^the study: no documents found$"):
        detect(Study.from_items([]), "rules")


def test_training_is_what_the_command_prints(games: Path, tmp_path: Path) -> None:
    expected = printed("train", games, "--detector", "boxscore", "--folds", "3", "-o", tmp_path / "command.json")
    result = train(fc.read(games), "boxscore", folds=3, output=tmp_path / "function.json")
    assert json.loads(format_json_tables(result.rows()))["table"] == expected["table"]
    assert (result.signature, list(result.notes)) == (expected["signature"], expected["notes"])
    assert (tmp_path / "function.json").read_text() == (tmp_path / "command.json").read_text()
    result.save(tmp_path / "saved.json")
    assert parse_ranker((tmp_path / "saved.json").read_text(), "saved").games == result.text_count == 12
    assert_short(result)
    marks = detect(games, "boxscore", weights=tmp_path / "saved.json")
    assert marks.signature != detect(games, "boxscore").signature


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"detector": "rules"}, "^detector=rules cannot be trained; trainable detectors: boxscore, coherence"),
        (
            {"detector": "boxscore", "real": [{"id": "a", "text": "x"}]},
            "^real does not apply to boxscore; it applies to",
        ),
        ({"detector": "boxscore", "tune": True}, "^tune does not apply to boxscore; it applies to spans$"),
        ({"detector": "boxscore", "gold": "golden"}, "^unknown annotator 'golden'; did you mean 'gold'"),
        ({"detector": "boxscore", "folds": 2}, "^folds must be at least 3, found 2$"),
    ],
)
def test_training_that_cannot_be_is_refused(games: Path, keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        train(games, **keywords)


def test_training_needs_gold() -> None:
    with pytest.raises(
        FinecombError, match=r"^the study has no annotator of kind gold; name the annotator to train on with gold$"
    ):
        train([{"id": "a", "text": "x"}], "boxscore")


# --- language models -------------------------------------------------------------------------------------------------


def judged(server: ScriptedServer, study: Any, **keywords: Any) -> ModelAnnotation:
    return annotate(study, "m", base_url=server.url, **keywords)


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    documents = [Document(id=f"d{number}", text=f"On day {number} they saw the the sea.") for number in range(4)]
    fc.write(Study.from_items([Settings(protocols=("scarecrow@2",)), load("scarecrow"), *documents]), tmp_path / "s")
    return tmp_path / "s"


def test_a_model_annotates_a_study_in_memory_and_nothing_is_written(texts: Path, tmp_path: Path) -> None:
    with ScriptedServer(lambda body, number: ScriptedAnswer(REPLY)) as server:
        whole = Study.from_items(fc.read(texts).items())
        result = judged(server, whole)
        assert len(server.requests) == 4
        assert whole.annotations.is_empty()
        assert (len(result.study.annotations), len(result.study.marks)) == (4, 4)
        assert not (texts / "runs").exists()
        shown = printed("annotate", texts, "--model", "m", "--base-url", server.url)
    assert result.to_dicts() == shown["table"] == [{"state": "marked", "texts": 4}]
    assert result.notes[0] == shown["notes"][0]
    assert set(result.study.marks["id"]) == set(fc.read(texts).marks["id"])
    assert_short(result)


def test_replies_are_kept_beside_a_study_on_disk_and_asked_once(texts: Path, tmp_path: Path) -> None:
    with ScriptedServer(lambda body, number: ScriptedAnswer(REPLY)) as server:
        first = judged(server, texts, price=(1, 2), budget=1)
        again = judged(server, fc.read(texts), price="1,2", budget=1)
        assert len(server.requests) == 4
        judged(server, texts, runs=tmp_path / "elsewhere", limit=1)
        assert len(server.requests) == 5
    assert (texts / "runs").is_dir()
    assert first.study == again.study
    assert fc.read(texts).annotations.is_empty()


def test_a_running_event_loop_is_no_obstacle(texts: Path) -> None:
    async def notebook(server: ScriptedServer) -> ModelAnnotation:
        return judged(server, fc.read(texts), limit=2)

    with ScriptedServer(lambda body, number: ScriptedAnswer(REPLY)) as server:
        assert len(asyncio.run(notebook(server)).study.annotations) == 2


def test_a_dry_run_sends_nothing_and_has_the_messages(texts: Path) -> None:
    words = ("--base-url", "http://127.0.0.1:9/v1", "--price", "1,2", "--dry-run")
    shown = printed("annotate", texts, "--model", "m", *words)
    plan = annotate(texts, "m", base_url="http://127.0.0.1:9/v1", price="1,2", dry_run=True)
    assert plan.to_dicts() == shown["table"]
    assert list(plan.notes) == shown["notes"]
    assert "On day 0 they saw the the sea." in plan.messages[-1].content
    assert plan.study.annotations.is_empty()
    assert_short(plan)


def test_settings_of_the_study_count_unless_others_are_given(texts: Path) -> None:
    with ScriptedServer(lambda body, number: ScriptedAnswer(REPLY)) as server:
        whole = fc.read(texts)
        models = {"judge": ModelSettings(model="big", base_url=server.url, max_tokens=77, seed=5)}
        settings = whole.settings.model_copy(update={"models": models})
        whole = Study.from_items([settings, *list(whole.items())[1:]])
        annotate(whole, "judge", limit=1, trust_endpoint=True)
        annotate(whole, "judge", limit=1, max_tokens=2048)
        assert [body["max_tokens"] for body in server.requests] == [77, 2048]
        assert server.requests[0]["model"] == "big"


def test_marks_are_verified_and_the_audit_is_in_the_study(texts: Path) -> None:
    question = load("audit").document_questions[0]

    def script(body: dict[str, Any], number: int) -> ScriptedAnswer:
        is_audit = "TO BE JUDGED" in body["messages"][-1]["content"]
        return ScriptedAnswer(json.dumps({"answers": {question.name: question.values[0]}}) if is_audit else REPLY)

    with ScriptedServer(script) as server:
        result = judged(server, fc.read(texts), limit=2, verify="same")
    assert "audit@1" in result.study.protocols
    assert [run.record.name for run in result.runs] == ["m", "m-audit"]
    assert "2 marks reviewed by m-audit" in result.notes


def test_a_probe_has_its_effects(texts: Path) -> None:
    with ScriptedServer(lambda body, number: ScriptedAnswer(REPLY)) as server:
        shown = printed("annotate", texts, "--model", "m", "--base-url", server.url, "--probe", "repeat")
        result = judged(server, texts, probe="repeat")
        assert len(server.requests) == 8
    assert result.effects is not None
    assert [row["measure"] for row in shown["table"]] == [row.measure for row in result]
    assert "m~repeat" in result.study.annotators["id"].to_list()
    assert_short(result)


def test_an_interrupted_run_has_its_result_so_far(texts: Path) -> None:
    def interrupt(done: int, total: int | None) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with ScriptedServer(lambda body, number: ScriptedAnswer(REPLY)) as server:
        with pytest.raises(RunInterrupted) as stop:
            judged(server, texts, concurrency=1, progress=interrupt)
        assert 1 <= len(stop.value.result.study.annotations) < 4
        assert len(judged(server, texts).study.annotations) == 4
        assert len(server.requests) <= 5


def interrupt_in_event_loop(texts: Path) -> int:
    """Annotate inside a running event loop, send SIGINT during the second call, and return the annotations kept."""

    def script(body: dict[str, Any], number: int) -> ScriptedAnswer:
        if number == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return ScriptedAnswer(REPLY, wait=0 if number == 0 else 20)

    async def notebook(server: ScriptedServer) -> ModelAnnotation:
        return judged(server, texts, concurrency=1)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background process ignores it
    loop = asyncio.new_event_loop()  # `asyncio.run` would take the signal for itself; a notebook does not
    with ScriptedServer(script) as server, closing(loop):
        started = time.monotonic()
        with pytest.raises(RunInterrupted) as stop:
            loop.run_until_complete(notebook(server))
        assert time.monotonic() - started < 10
    return len(stop.value.result.study.annotations)


def test_an_interruption_in_a_running_event_loop_ends_the_calls(texts: Path) -> None:
    program = (
        f"from pathlib import Path; from {__name__} import *; print(interrupt_in_event_loop(Path({str(texts)!r})))"
    )
    root = Path(__file__).parents[2]  # in a process of its own: the signal is for its main thread
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("1\n", 0), done.stderr


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        (
            {"budget": 1.0},
            r"^budget requires price=IN,OUT in dollars per million tokens, or an entry for the model in a price file",
        ),
        ({"price": "cheap"}, r"^price=cheap: expected IN,OUT in dollars"),
        ({"temperature": 9.0}, r"^temperature: "),
        ({"base_url": ""}, r"^base_url=URL is required for model 'm'; to run a model locally, use model=local:smollm2"),
        ({"probe": "repat"}, r"^unknown probe 'repat'; did you mean 'repeat'"),
        ({"probe": "repeat", "own": "m"}, r"^own requires probe=self$"),
        ({"own": "m"}, r"^own requires probe=self$"),
        ({"shots": 3}, r"^shots=3 requires at least 4 gold annotations with protocol \S+, found 0; lower shots or add"),
        ({"limit": 0}, r"^limit must be at least 1, found 0$"),
        ({"prompt": "nowhere.txt"}, r"nowhere.txt"),
    ],
)
def test_models_that_cannot_be_asked_are_refused(texts: Path, keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(FinecombError, match=message):
        annotate(fc.read(texts), "m", **{"base_url": "http://127.0.0.1:9/v1", **keywords})


def test_prompts_are_shown_and_exported(tmp_path: Path) -> None:
    assert f"{show_prompt('snac')}\n" == run("prompts", "show", "snac").stdout
    assert show_prompt(load("snac")) == show_prompt("snac")
    template = export_prompt(tmp_path / "mine.txt")
    run("prompts", "export", tmp_path / "theirs.txt")
    assert template == (tmp_path / "mine.txt").read_text() == (tmp_path / "theirs.txt").read_text()
    with pytest.raises(FinecombError, match="already exists"):
        export_prompt(tmp_path / "mine.txt")
    export_prompt(tmp_path / "mine.txt", force=True)
    for text in (template, show_prompt("snac")):
        assert len(repr(text).splitlines()) <= 15
        assert len(repr(text)) <= 2000


def test_orders_in_texts_are_counted(tmp_path: Path) -> None:
    with ScriptedServer(lambda body, number: ScriptedAnswer('{"marks": []}')) as server:
        shown = printed("prompts", "attack", "scarecrow", "--model", "m", "--base-url", server.url)
        result = attack_prompt("scarecrow", "m", base_url=server.url, runs=tmp_path)
    assert json.loads(format_json_tables(result.rows()))["table"] == shown["table"]
    assert list(result.notes) == shown["notes"]
    assert (result[0].obeyed, result.obeyed, len(result.run.annotations)) == (0, (), 31)
    assert_short(result)
