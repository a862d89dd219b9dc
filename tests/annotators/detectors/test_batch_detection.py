"""Tests of batch detection: a bad text is excluded with its reason, and a broken detector ends the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from finecomb.annotators.detectors.batch_detection import DetectionTask, mark_corpus
from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol
from finecomb.engine.engines import LocalEngine
from finecomb.engine.partitions import Executor
from finecomb.protocols import load
from tests.engine.faulty_work import FaultOptions, make_texts, mark_texts_by_engine


def test_a_poisoned_text_is_set_aside_and_the_rest_is_marked(tmp_path: Path) -> None:
    corpus = mark_texts_by_engine("local", make_texts(40, d3="poison"), tmp_path / "p", FaultOptions(), workers=1)
    annotations = {annotation.document: annotation for annotation in corpus.iter_annotations()}
    assert list(annotations) == [f"d{number}" for number in range(40)]
    assert annotations["d3"].status == "excluded"
    assert annotations["d3"].excluded is not None
    assert annotations["d3"].excluded.reason == "set aside: ValueError: this text is poisoned"
    assert sum(len(annotation.marks) for annotation in annotations.values()) == 39


def test_a_text_that_is_no_document_is_set_aside(tmp_path: Path) -> None:
    bad = make_texts(3).with_columns(data=pl.when(pl.col("id") == "d1").then(pl.lit("{no json")))
    corpus = mark_texts_by_engine("local", bad, tmp_path / "p", FaultOptions(), workers=1)
    reasons = [annotation.excluded for annotation in corpus.iter_annotations()]
    assert [reason is not None for reason in reasons] == [False, True, False]


def test_where_every_text_fails_nothing_is_kept(tmp_path: Path) -> None:
    with pytest.raises(FinecombError, match="failed on every text: ValueError: this text is poisoned"):
        mark_texts_by_engine(
            "local", make_texts(2, d0="poison", d1="poison"), tmp_path / "p", FaultOptions(), workers=1
        )
    assert not (tmp_path / "p").exists()


def test_marks_that_do_not_fit_their_text_are_the_detectors_own_mistake(tmp_path: Path) -> None:
    corpus = mark_texts_by_engine("local", make_texts(3, d1="lie"), tmp_path / "p", FaultOptions(), workers=1)
    excluded = [annotation.excluded.reason if annotation.excluded else "" for annotation in corpus.iter_annotations()]
    assert excluded[::2] == ["", ""]
    assert excluded[1].startswith("set aside: invalid output of the detector: mark 'd1/m/0'")


def unmakable(protocol: Protocol, options: Any) -> Any:
    raise FinecombError("no weights")


def test_a_detector_that_cannot_be_made_is_no_fault_of_the_texts(tmp_path: Path) -> None:
    marking = DetectionTask("m", unmakable, load("scarecrow"), None)
    with pytest.raises(FinecombError, match="no weights"):
        mark_corpus(
            make_texts(2), marking, "s", Executor.from_folder(LocalEngine(), tmp_path / "p"), lambda counts, _: counts
        )
    assert not (tmp_path / "p").exists()


@pytest.mark.long
def test_a_text_that_kills_its_process_is_set_aside(tmp_path: Path) -> None:
    corpus = mark_texts_by_engine("local", make_texts(20, d3="death"), tmp_path / "p", FaultOptions())
    excluded = {row.document: row.excluded.reason for row in corpus.iter_annotations() if row.excluded}
    assert list(excluded) == ["d3"]
    assert "died" in excluded["d3"]
