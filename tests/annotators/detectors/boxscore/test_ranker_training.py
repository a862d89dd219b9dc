"""Tests of the checker on the texts of the accuracy shared task."""

from __future__ import annotations

import math
import runpy
from pathlib import Path

import pytest

import finecomb as fc
from finecomb.annotators.detectors import detect, find_detector_factory
from finecomb.annotators.detectors.boxscore.checker import BoxScoreOptions
from finecomb.annotators.detectors.boxscore.ranker import fit_calibration_line
from finecomb.annotators.detectors.boxscore.ranker_training import (
    TrainingText,
    build_reference_texts,
    cross_validate,
    cross_validation_rows,
)
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotator
from finecomb.core.study import Study
from tests.annotators.detectors.example_game import game_document

EVALUATION = runpy.run_path(str(Path(__file__).parents[4] / "benchmarks" / "boxscore.py"))


@pytest.fixture(scope="module")
def games(data: Path) -> Study:
    study: Study = EVALUATION["read_shared_task"](data / "accuracy_shared_task")
    return study


def test_too_few_games_for_calibration_are_not_blamed_on_the_folds() -> None:
    texts = [TrainingText(f"d{number}", f"game {number}", (), (), 0) for number in range(3)]
    with pytest.raises(FinecombError, match=r"cannot split 2 games into 3 folds; add texts about more games$"):
        cross_validate(texts, folds=3)


def test_the_texts_set_aside_are_the_same_for_ever(games: Study) -> None:
    aside = EVALUATION["held_out_ids"](list(games.iter_documents()))
    assert len(aside) == 15
    assert {"S007", "S010", "S047"} < aside
    assert "S001" not in aside


def test_marks_are_whole_tokens_that_the_task_can_score(games: Study, tmp_path: Path) -> None:
    texts = list(games.iter_first_documents(3))
    annotations = list(detect(texts, find_detector_factory("boxscore").make(games.protocol(), BoxScoreOptions())))
    checker = Annotator(id="boxscore", kind="checker")
    fc.write(Study.from_items([games.protocol(), *texts, checker, *annotations]), tmp_path / "task", "gsml")
    again = fc.read(tmp_path / "task", "gsml")
    assert again.marks["label"].to_list() == [mark.label for annotation in annotations for mark in annotation.marks]
    assert len(again.marks) > 30


@pytest.mark.long
def test_recall_and_precision_in_cross_validation(games: Study) -> None:
    texts_checked = EVALUATION["collect_training_texts"](games)
    rows = {(row["basis"], row["label"]): row for row in cross_validation_rows(games, cross_validate(texts_checked))}
    every, proved = rows["all", "any"], rows["record", "any"]
    assert every["recall"] == pytest.approx(0.871, abs=0.005)
    assert every["precision"] == pytest.approx(0.862, abs=0.005)
    assert proved["precision"] == pytest.approx(0.895, abs=0.005)


@pytest.mark.long
def test_what_people_wrote_is_seldom_marked(games: Study) -> None:
    rows = {(row["basis"], row["games"]): row["marks"] for row in EVALUATION["false_alarm_rows"](games)}
    assert rows["record", "45 games"] <= 31
    assert rows["all", "45 games"] + rows["all", "15 games set aside"] <= 140


def test_a_reference_is_no_example_of_wrong_words_and_its_numbers_are_left_out() -> None:
    report = game_document("Paul Reyes scored 40 points .")
    reference = "Paul Reyes scored 30 points . The Gulls will look to bounce back on Monday ."
    (text,) = build_reference_texts([report.model_copy(update={"references": (reference,)})])
    assert text.is_reference
    assert not any(text.wrong)
    assert {reference[candidate.start : candidate.end] for candidate in text.candidates} == {"bounce back", "Monday"}


def test_calibration_undoes_overconfidence() -> None:
    draws = [
        (score, place < 100 / (1 + math.exp(-score / 3))) for score in (-4.0, -1.0, 1.0, 4.0) for place in range(100)
    ]
    slope, offset = fit_calibration_line(draws)
    assert slope == pytest.approx(1 / 3, abs=0.03)
    assert offset == pytest.approx(0, abs=0.05)
