"""The checker on the accuracy shared task's real texts."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import finecomb as fc
from finecomb.core.records import Annotator
from finecomb.core.study import Study
from finecomb.detect import detect, named
from finecomb.detect.boxscore.checker import BoxScoreOptions
from finecomb.detect.boxscore.ranker_training import cross_validate, examples, validation

EVALUATION = runpy.run_path(str(Path(__file__).parents[3] / "benchmarks" / "boxscore.py"))


@pytest.fixture(scope="module")
def games(data: Path) -> Study:
    study: Study = EVALUATION["read"](data / "accuracy_shared_task")
    return study


def test_the_texts_set_aside_are_the_same_for_ever(games: Study) -> None:
    aside = EVALUATION["held_out"](list(games.iter_documents()))
    assert len(aside) == 15
    assert {"S007", "S010", "S047"} < aside
    assert "S001" not in aside


def test_marks_are_whole_tokens_that_the_task_can_score(games: Study, tmp_path: Path) -> None:
    texts = list(games.iter_documents_head(3))
    annotations = list(detect(texts, named("boxscore").make(games.protocol(), BoxScoreOptions())))
    checker = Annotator(id="boxscore", kind="checker")
    fc.write(Study.from_items([games.protocol(), *texts, checker, *annotations]), tmp_path / "task", "gsml")
    again = fc.read(tmp_path / "task", "gsml")
    assert again.marks["label"].to_list() == [mark.label for annotation in annotations for mark in annotation.marks]
    assert len(again.marks) > 30


@pytest.mark.long
def test_recall_and_precision_in_cross_validation(games: Study) -> None:
    texts_checked = examples(
        games.iter_documents(), {annotation.document: annotation.marks for annotation in games.iter_annotations()}
    )
    rows = {(row["basis"], row["label"]): row for row in validation(games, cross_validate(texts_checked))}
    every, proved = rows["all", "any"], rows["record", "any"]
    assert every["recall"] == pytest.approx(0.865, abs=0.005)
    assert every["precision"] == pytest.approx(0.860, abs=0.005)
    assert proved["precision"] == pytest.approx(0.893, abs=0.005)
