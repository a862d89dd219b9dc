from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import finecomb as fc
from finecomb.annotators.detectors import DETECTORS
from finecomb.annotators.detectors.boxscore.ranker import parse_ranker
from finecomb.annotators.detectors.boxscore.ranker_training import (
    build_training_texts,
    cross_validate,
    shuffle_by_hash,
    train_ranker,
)
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.formats.parquet_seal import has_valid_seal
from finecomb.protocols import load_shipped
from tests.annotators.detectors.example_game import game_document, game_record
from tests.test_cli import refused, run

REPORT = (
    "The Gulls defeated the Miners , 104 - 97 , on Friday . Paul Reyes had {points} points and a steal . "
    "Next , the Gulls host the Boston Celtics on Friday ."
)


def study(texts: int) -> list[StudyItem]:
    """Games on different days with gold marks: the score, some points, and the next opponent in two of three."""
    items: list[StudyItem] = [load_shipped("accuracy"), Annotator(id="gold", kind="gold")]
    for number in range(texts):
        points = 31 if number % 2 else 29
        text = REPORT.format(points=points)
        data = game_record() | {"day": f"02_{number + 1:02}_17"}
        quotes = [("97", "number"), (str(points), "number") if points != 31 else None]
        quotes += [("Boston Celtics", "name")] if number % 3 else []
        spans = [
            (Span(text.index(quote), text.index(quote) + len(quote)), label) for quote, label in filter(None, quotes)
        ]
        marks = [
            Mark(id=f"g{number}/{k}", spans=(span,), quotes=(span.extract(text),), label=label)
            for k, (span, label) in enumerate(spans)
        ]
        items.append(Document(id=f"g{number}", text=text, data=data))
        items.append(
            Annotation(
                id=f"g{number}/gold", document=f"g{number}", annotator="gold", protocol="accuracy@2", marks=tuple(marks)
            )
        )
    return items


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("games") / "study"
    fc.write(Study.from_items(study(12)), folder)
    return folder


def result(*words: str | Path) -> dict[str, Any]:
    output: dict[str, Any] = json.loads(run(*words, "--json").stdout)
    assert set(output) == {"table", "signature", "notes"}
    return output


def test_detectors_are_listed() -> None:
    assert [row["name"] for row in result("detectors")["table"]] == list(DETECTORS)


def test_marks_are_printed_with_correction_and_comment(games: Path) -> None:
    marks = result("detect", games, "--detector", "boxscore")
    first = [row for row in marks["table"] if row["document"] == "g0"]
    assert {"quote": "97", "label": "number", "correction": "98"}.items() <= first[0].items()
    assert "TEAM-PTS" in first[0]["comment"]
    assert marks["signature"].startswith("detector:boxscore|protocol:accuracy@2|basis:record|threshold:")


def test_basis_and_threshold_choose_marks(games: Path) -> None:
    every = result("detect", games, "--detector", "boxscore", "--basis", "all", "--threshold", "0")["table"]
    proved = result("detect", games, "--detector", "boxscore", "--threshold", "0")["table"]
    none = result("detect", games, "--detector", "boxscore", "--threshold", "1")["table"]
    assert {row["basis"] for row in every} == {"record", "base-rate"}
    assert {row["basis"] for row in proved} == {"record"}
    assert none == []


def test_the_study_is_written_with_the_checker_as_an_annotator(games: Path, tmp_path: Path) -> None:
    target = tmp_path / "checked"
    assert "marks in 12 texts" in run("detect", games, "--detector", "boxscore", "-o", target).stdout
    assert run("check", target).exit_code == 0
    assert "Paul Reyes had 29 points, but the record says 31 (cell: PTS of Paul Reyes)." in " ".join(
        run("show", target).stdout.split()
    )
    scores = json.loads(run("score", target, "--draws", "0", "--json").stdout)["table"]
    assert next(row for row in scores if row["label"] == "number")["recall"] == 1
    again = tmp_path / "again"
    run("detect", target, "--detector", "boxscore", "-o", again)
    assert fc.read(again) == fc.read(target)


def test_texts_without_a_record_are_said(tmp_path: Path) -> None:
    bare = Document(id="bare", text="Paul Reyes scored 40 points .")
    items: list[StudyItem] = [load_shipped("accuracy"), bare, game_document("Paul Reyes scored 40 points .")]
    fc.write(Study.from_items(items), tmp_path / "study")
    output = result("detect", tmp_path / "study", "--detector", "boxscore")
    assert output["notes"] == ["1 text (bare): not checked: the document has no data"]
    assert {row["document"] for row in output["table"]} == {"report"}


def test_a_study_under_another_protocol_gets_the_one_it_needs(tmp_path: Path) -> None:
    items: list[StudyItem] = [load_shipped("snac"), game_document("Paul Reyes scored 40 points .")]
    fc.write(Study.from_items(items), tmp_path / "study")
    run("detect", tmp_path / "study", "--detector", "boxscore", "-o", tmp_path / "checked")
    assert set(fc.read(tmp_path / "checked").protocols) == {"snac@2", "accuracy@2"}


def test_training_says_how_well_it_does_on_games_left_out(games: Path, tmp_path: Path) -> None:
    weights = tmp_path / "weights.json"
    rows_left_out = result("train", games, "--detector", "boxscore", "-o", weights, "--folds", "3")
    rows = {(row["basis"], row["label"]): row for row in rows_left_out["table"]}
    assert rows["record", "number"]["recall"] == rows["record", "number"]["precision"] == 1
    assert rows["all", "name"]["gold"] == 8
    ranker = parse_ranker(weights.read_text(), "weights")
    assert ranker.games == 12
    assert ranker.counts["next.opponent"] == [8, 12]
    marks = result("detect", games, "--detector", "boxscore", "--weights", weights)
    assert marks["signature"] != result("detect", games, "--detector", "boxscore")["signature"]


def test_no_game_is_in_the_fold_that_was_fitted_on_it() -> None:
    whole = Study.from_items(study(9))
    texts = build_training_texts(
        whole.iter_documents(), {annotation.document: annotation.marks for annotation in whole.iter_annotations()}
    )
    folds = cross_validate(texts, 3, seed=1)
    assert sorted(id for fold in folds for id in fold.documents) == sorted(example.document for example in texts)
    assert all(fold.ranker.games == 6 for fold in folds)
    assert train_ranker(texts, 3, seed=1) == train_ranker(list(reversed(texts)), 3, seed=1)


def test_an_order_depends_on_the_seed_alone() -> None:
    names = [f"game {number}" for number in range(20)]
    assert shuffle_by_hash(names, 0) == shuffle_by_hash(reversed(names), 0) != shuffle_by_hash(names, 1)


def test_mistakes_are_said_in_one_line(games: Path, tmp_path: Path) -> None:
    assert refused("detect", games, "--detector", "boxscor").startswith("unknown detector 'boxscor'; did you mean")
    broken = tmp_path / "weights.json"
    broken.write_text('{"threshold": "high"}')
    assert "create them with `finecomb train`" in refused(
        "detect", games, "--detector", "boxscore", "--weights", broken
    )
    assert "unknown annotator 'golden'; did you mean 'gold'" in refused(
        "train", games, "--detector", "boxscore", "--gold", "golden"
    )
    assert "add texts about more games or lower --folds" in refused(
        "train", games, "--detector", "boxscore", "--folds", "40"
    )
    fc.write(Study.from_items([load_shipped("accuracy"), game_document("The Gulls won .")]), tmp_path / "bare")
    assert "no annotator of kind gold" in refused("train", tmp_path / "bare", "--detector", "boxscore")


def test_a_study_on_disk_is_marked_as_one_in_memory(tmp_path: Path) -> None:
    texts = [item for item in study(40) if not isinstance(item, Annotation)]
    for name in ("texts", "texts.parquet"):
        fc.write(Study.from_items(texts), tmp_path / name)
    run("detect", tmp_path / "texts", "--detector", "boxscore", "-o", tmp_path / "a")
    printed = run("detect", tmp_path / "texts.parquet", "--detector", "boxscore", "-o", tmp_path / "b.parquet")
    assert "in 40 texts" in printed.stdout
    memory, disk = fc.read(tmp_path / "a"), fc.read(tmp_path / "b.parquet")
    assert disk == memory
    assert len(disk.marks) > 40
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b.parquet", "texts", "texts.parquet"]


def test_two_texts_with_one_id_are_refused_on_disk_too(tmp_path: Path) -> None:
    fc.write(Study.from_items([load_shipped("accuracy"), game_document("x", REPORT)]), tmp_path / "t.parquet")
    file = tmp_path / "t.parquet" / "documents.parquet"
    table = pl.read_parquet(file)
    pl.concat([table, table]).write_parquet(file)
    message = refused("detect", tmp_path / "t.parquet", "--detector", "boxscore", "-o", tmp_path / "o.parquet")
    assert "duplicate document ID" in message


def test_engines_are_refused_where_they_do_not_apply(games: Path) -> None:
    assert "expected local, ray" in refused("detect", games, "--detector", "boxscore", "--engine", "dask")
    message = refused("agree", games, "--engine", "ray")
    assert message.startswith("--engine does not apply to alpha, two-agree; it applies to gamma")


def test_a_study_that_was_marked_is_sealed(tmp_path: Path) -> None:
    texts = [item for item in study(4) if not isinstance(item, Annotation)]
    for name in ("texts", "texts.parquet"):
        fc.write(Study.from_items(texts), tmp_path / name)
        run("detect", tmp_path / name, "--detector", "boxscore", "-o", tmp_path / f"of-{name}.parquet")
        assert has_valid_seal(tmp_path / f"of-{name}.parquet")
    marked = tmp_path / "of-texts.parquet"
    assert fc.read(marked) == fc.read(tmp_path / "of-texts.parquet.parquet")
    run("detect", marked, "--detector", "rules", "-o", tmp_path / "twice.parquet")
    assert has_valid_seal(tmp_path / "twice.parquet")


def test_a_study_with_a_text_that_is_no_document_is_not_sealed(tmp_path: Path) -> None:
    fc.write(Study.from_items([item for item in study(4) if not isinstance(item, Annotation)]), tmp_path / "t.parquet")
    file = tmp_path / "t.parquet" / "documents.parquet"
    broken = pl.when(pl.col("id") == "g1").then(pl.lit("{no json")).otherwise("data")
    pl.read_parquet(file).with_columns(data=broken).write_parquet(file)
    printed = run("detect", tmp_path / "t.parquet", "--detector", "boxscore", "-o", tmp_path / "o.parquet")
    assert "invalid document" in printed.stderr
    assert not has_valid_seal(tmp_path / "o.parquet")
