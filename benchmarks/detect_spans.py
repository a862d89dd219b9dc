"""Scarecrow's span classifier on SNaC, leave-one-out people on `span_annotation`, and spans per second.

Writes the tables of docs/detect/spans.md. Requires FINECOMB_DATA; encoder vectors are cached in the folder
FINECOMB_CACHE.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._docs import markdown_table, write_table
from benchmarks._span_annotation import read_campaign
from benchmarks.detect_snac import format_spread
from finecomb import formats
from finecomb.annotators.detectors.coherence.narrative import cross_validation_splits
from finecomb.annotators.detectors.coherence.options import DEV_SHARE
from finecomb.annotators.detectors.spans.classifier import EncodedText, SpanSettings, TextEncoder
from finecomb.annotators.detectors.spans.examples import SpanText, build_span_text, word_label_matrix
from finecomb.annotators.detectors.spans.scoring import SpanHead, all_span_logits
from finecomb.annotators.detectors.spans.training import collect_span_texts, held_out_score_rows
from finecomb.core.records import Annotation

PAGE = "detect/spans.md"


def main() -> None:
    place = os.environ.get("FINECOMB_DATA")
    if not place:
        sys.exit("set FINECOMB_DATA to the folder with the released data")
    write_table(PAGE, "speed", speed_table())
    write_table(PAGE, "people", people_table(Path(place)))
    write_table(PAGE, "classifier", classifier_table(Path(place)))


def speed_table() -> str:
    """Return the number of spans scored per CPU second, after encoding."""
    rng = np.random.default_rng(0)
    shapes = [(384, 128), (384, 128), (30, 128), (128, 8), (8,)]
    head = SpanHead(*(rng.normal(size=shape).astype(np.float32) for shape in shapes))
    vectors = rng.normal(size=(3000, 384)).astype(np.float32)
    start = time.process_time()
    spans = sum(len(rows) for _ in range(5) for rows in all_span_logits(vectors, vectors, head))
    rate = spans / (time.process_time() - start)
    return markdown_table(["spans scored per second of one core", "wanted"], [[f"{rate:,.0f}", "100,000"]])


def encode_texts(texts: Sequence[SpanText], settings: SpanSettings) -> list[EncodedText]:
    folder = os.environ.get("FINECOMB_CACHE")
    file = Path(folder) / "spans.npz" if folder else None
    if file and file.is_file():
        with np.load(file, allow_pickle=False) as stored:
            return [EncodedText(stored[f"{text.id}/starts"], stored[f"{text.id}/ends"]) for text in texts]
    vectors = TextEncoder(settings)(texts)
    if file:
        arrays = {f"{text.id}/{part}": getattr(row, part) for text, row in zip(texts, vectors, strict=True) for part in ("starts", "ends")}  # noqa: E501  # fmt: skip
        np.savez(file, allow_pickle=False, **arrays)
    return vectors


def classifier_table(data: Path) -> str:
    study = formats.read(data / "snac" / "SNaC_data.json")
    texts, labels, _ = collect_span_texts(study, list(study.iter_annotations()), "story")
    settings = SpanSettings(labels=labels)
    vectors = encode_texts(texts, settings)
    start = time.process_time()
    folds = [
        held_out_score_rows(texts, vectors, split, settings)
        for split in cross_validation_splits(texts, 3, DEV_SHARE, np.random.default_rng(0))
    ]
    print(f"three fits after encoding: {time.process_time() - start:.0f} CPU s", flush=True)
    rows = [
        [
            rows[0]["label"],
            f"{sum(int(str(row['words'])) for row in rows):,}",
            *(format_spread([float(str(row[part])) for row in rows]) for part in ("precision", "recall", "f1")),
        ]
        for rows in zip(*folds, strict=True)
    ]
    return markdown_table(["label", "words", "precision", "recall", "F1"], rows)


def people_table(data: Path) -> str:
    """Return the scores of each person against all others, as the mean over people with standard deviation."""
    study = read_campaign(data, "iaa")
    persons = [annotator.id for annotator in study.iter_annotators() if annotator.kind == "human"]
    labels = [label.name for label in study.protocol().labels]
    by_document: dict[str, dict[str, Annotation]] = {}
    for annotation in study.iter_annotations():
        if annotation.annotator in persons:
            by_document.setdefault(annotation.document, {})[annotation.annotator] = annotation
    marked = {
        document.id: {
            name: word_label_matrix(build_span_text(document, [annotation], labels), len(labels))
            for name, annotation in by_document[document.id].items()
        }
        for document in study.iter_documents()
        if document.id in by_document
    }
    figures = np.array([_scores_against_rest(person, marked, len(labels)) for person in persons])
    rows = [
        [label, *(format_spread(figures[:, part, at].tolist()) for part in range(3))] for at, label in enumerate(labels)
    ]
    return markdown_table(["label", "precision", "recall", "F1"], rows)


def _scores_against_rest(person: str, marked: dict[str, dict[str, NDArray[Any]]], labels: int) -> NDArray[Any]:
    """Return precision, recall and F1 of one person, shape (3, labels)."""
    right, mine, theirs = np.zeros(labels), np.zeros(labels), np.zeros(labels)
    for readers in marked.values():
        if person in readers and len(readers) > 1:
            rest = np.any([words for name, words in readers.items() if name != person], axis=0)
            right += (readers[person] & rest).sum(axis=0)
            mine += readers[person].sum(axis=0)
            theirs += rest.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.stack([right / mine, right / theirs, 2 * right / (mine + theirs)])
