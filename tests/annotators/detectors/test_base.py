"""Tests of registering a detector: options become flags, help and signature, and `train` calls its fit function."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import finecomb as fc
from finecomb.core.study import Study
from finecomb.protocols import load_shipped
from tests.annotators.detectors.example_game import game_document

ADD_A_ROW = """
import sys
from finecomb.annotators.detectors import DETECTORS
from tests.annotators.detectors.toy_detector import SILENT, WORDS
DETECTORS.update({"words": WORDS, "silent": SILENT})
from finecomb.cli import main
main()
"""


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command line with the toy detectors registered."""
    return subprocess.run(
        [sys.executable, "-c", ADD_A_ROW, *map(str, words)], capture_output=True, text=True, check=False
    )


@pytest.fixture
def study(tmp_path: Path) -> Path:
    fc.write(
        Study.from_items([load_shipped("accuracy"), game_document("Dario Vance had 27 points .")]), tmp_path / "games"
    )
    return tmp_path / "games"


def test_a_detector_is_added_by_one_row_and_one_module(study: Path) -> None:
    marks = json.loads(run("detect", study, "--detector", "words", "--word", "points", "--json").stdout)
    assert [row["quote"] for row in marks["table"]] == ["points"]
    assert marks["signature"].startswith("detector:words|protocol:accuracy@2|word:points|")
    assert "The word to mark." in " ".join(run("detect", "--help-all").stdout.split())
    assert "words" in run("detectors").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["detect", "--detector", "words", "--threshold", "0.5"],
            "--threshold does not apply to words; it applies to boxscore, coherence, surprisal, entity-grid, synthetic",
        ),
        (["detect", "--detector", "boxscore", "--word", "x"], "--word does not apply to boxscore; it applies to words"),
        (["train", "--detector", "words", "--folds", "3"], "--folds does not apply to words; it applies to boxscore"),
        (
            ["train", "--detector", "silent"],
            "--detector silent cannot be trained; trainable detectors: boxscore, coherence, surprisal",
        ),
        (["train", "--detector", "words", "--real", "x"], "--real does not apply to words; it applies to entity-grid"),
    ],
)
def test_an_option_of_another_detector_is_refused_by_name(study: Path, words: list[str], message: str) -> None:
    command, *options = words
    result = run(command, study, *options)
    assert result.returncode == 1
    assert message in " ".join(result.stderr.split())


def test_train_runs_the_fit_of_the_detector_that_is_named(study: Path) -> None:
    marked = study.parent / "marked"
    run("detect", study, "--detector", "words", "--word", "points", "-o", marked)
    found = run("train", marked, "--detector", "words", "--gold", "words", "--least", "1", "--json")
    assert json.loads(found.stdout) == {"table": [{"word": "points", "marks": 1}], "signature": "least:1", "notes": []}
