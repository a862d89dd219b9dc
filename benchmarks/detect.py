"""CPU seconds per text of the box-score checker, and of fitting for comparison."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from benchmarks.boxscore import read_shared_task
from finecomb.annotators.detectors import find_detector_factory
from finecomb.annotators.detectors.boxscore.checker import BoxScoreOptions
from finecomb.annotators.detectors.boxscore.ranker_training import build_training_texts, train_ranker
from finecomb.protocols import load

MAX_SECONDS = 0.2


def main() -> None:
    place = os.environ.get("FINECOMB_DATA")
    if not place:
        sys.exit("set FINECOMB_DATA to the folder with the released data")
    study = read_shared_task(Path(place) / "accuracy_shared_task")
    documents = list(study.iter_documents())
    checker = find_detector_factory("boxscore").make(load("accuracy"), BoxScoreOptions())
    checker(documents[0])  # tables and patterns are loaded once
    seconds = []
    for document in documents:
        start = time.process_time()
        checker(document)
        seconds.append(time.process_time() - start)
    print(
        f"{len(seconds)} texts: mean {sum(seconds) / len(seconds):.3f} s, maximum {max(seconds):.3f} s, limit "
        f"{MAX_SECONDS} s"
    )
    gold = {annotation.document: annotation.marks for annotation in study.iter_annotations()}
    texts = build_training_texts(documents, gold)
    start = time.process_time()
    train_ranker(texts)
    print(f"fitting with a cross-validated threshold: {time.process_time() - start:.1f} s")
