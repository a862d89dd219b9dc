"""Detectors and language models called from Python, compared with what the commands print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import finecomb as fc
from finecomb.annotators.detectors import detectors_by_name
from finecomb.annotators.detectors.boxscore.ranker import parse_ranker
from finecomb.api.annotators import detect, list_detectors, train
from finecomb.core.errors import FinecombError, ParameterError
from finecomb.core.records import Annotation
from finecomb.core.results import Result
from finecomb.core.study import Study
from finecomb.reporting.tables import as_json
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
    assert [row.name for row in result] == list(detectors_by_name())
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
    with pytest.raises(FinecombError, match="exists already"):
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
        ({"detector": "boxscor"}, r"^no detector is called 'boxscor'; did you mean 'boxscore'\?$"),
        ({"detector": "rules", "threshold": 0.5}, "^threshold does not apply to rules; it applies to boxscore"),
        ({"detector": "rules", "protocol": "scarecrow"}, "^protocol does not apply to rules; it applies to critic$"),
        ({"detector": "boxscore", "threshold": 2.0}, "^threshold=2: how sure to be is a number from 0 to 1$"),
        ({"detector": "rules", "rules": "arithmatic"}, "^rules: no rule is called 'arithmatic'; did you mean"),
        ({"detector": "boxscore", "basis": "some"}, "^basis must be one of record, all, found 'some'$"),
        ({"detector": "rules", "workers": 0}, "^workers must be at least 1, found 0$"),
        ({"detector": "coherence"}, "^detector=coherence: has to be fitted first; .*, then weights=FOLDER$"),
        ({"detector": "rules", "options": {"rule": "x"}}, "^no option is called 'rule'; did you mean 'rules'"),
        ({"detector": "rules", "basic": "all"}, "has no parameter 'basic'; did you mean 'basis'"),
    ],
)
def test_what_does_not_apply_is_refused(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(FinecombError, match=message):
        detect(fc.demo(), **keywords)


def test_a_study_without_texts_is_refused() -> None:
    with pytest.raises(FinecombError, match=r"^the study: has no documents yet$"):
        detect(Study.from_items([]), "rules")


def test_training_is_what_the_command_prints(games: Path, tmp_path: Path) -> None:
    expected = printed("train", games, "--detector", "boxscore", "--folds", "3", "-o", tmp_path / "command.json")
    result = train(fc.read(games), "boxscore", folds=3, output=tmp_path / "function.json")
    assert json.loads(as_json(result.rows()))["table"] == expected["table"]
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
        ({"detector": "rules"}, "^detector=rules: has nothing to fit; boxscore, coherence"),
        (
            {"detector": "boxscore", "real": [{"id": "a", "text": "x"}]},
            "^real does not apply to boxscore; it applies to",
        ),
        ({"detector": "boxscore", "tune": True}, "^tune does not apply to boxscore; it applies to spans$"),
        ({"detector": "boxscore", "gold": "golden"}, "^no annotator is called 'golden'; did you mean 'gold'"),
        ({"detector": "boxscore", "folds": 2}, "^folds must be at least 3, found 2$"),
    ],
)
def test_training_that_cannot_be_is_refused(games: Path, keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        train(games, **keywords)


def test_training_needs_gold() -> None:
    with pytest.raises(FinecombError, match=r"^the study has no annotator of kind gold; say who is with gold$"):
        train([{"id": "a", "text": "x"}], "boxscore")
