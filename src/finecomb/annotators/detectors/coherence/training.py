"""Training of the SNaC detectors: cross-validated scores, then a detector fitted to all texts, with a model card."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from finecomb.annotators.detectors.base import FittedDetector
from finecomb.annotators.detectors.coherence.detection_tables import label_recalls_at_precision, label_score_rows
from finecomb.annotators.detectors.coherence.narrative import (
    ANY_ERROR_LABEL,
    LABELS,
    HasSplitGroup,
    Narrative,
    build_narratives,
    cross_validation_splits,
    train_dev_split,
)
from finecomb.annotators.detectors.coherence.options import DEV_SHARE, SplitOptions
from finecomb.annotators.detectors.coherence.training_recipes import FittedScorer, Recipe
from finecomb.annotators.detectors.model_folder import DetectorCard
from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.records import Annotation, Document
from finecomb.core.results import Signature
from finecomb.core.study import Study
from finecomb.core.text_hash import hash_text
from finecomb.statistics.gold.unit_scores import area_under_roc_curve

MIN_LABEL_COUNT = 5
"""Minimum number of marked sentences for a label to be learnt."""
_MIN_TEXTS = 4
ScoreRows = list[dict[str, object]]


def collect_training_texts(
    study: Study, gold: Sequence[Annotation], options: SplitOptions, segments: bool = True
) -> tuple[list[Narrative], tuple[str, ...], list[str]]:
    """Return the texts with gold annotations, the labels with enough marks, and notes for the user."""
    ids = {annotation.document for annotation in gold}
    documents = [document for document in study.iter_documents() if document.id in ids]
    groups, copies = group_by_document(documents, options.group)
    texts = [text for text in build_narratives(documents, gold, groups, segments) if text.sentences]
    require_enough_texts(texts, max(_MIN_TEXTS, options.test_folds + 1))
    counts = Counter(label for text in texts for sentence in text.sentences for label in sentence.labels)
    labels = tuple(label for label in LABELS if counts[label] >= MIN_LABEL_COUNT)
    if not labels:
        raise FinecombError(
            f"none of the labels {', '.join(LABELS)} has the {MIN_LABEL_COUNT} gold sentences required for training; "
            "add texts with gold annotations"
        )
    others = Counter(mark.label for annotation in gold for mark in annotation.marks if mark.label not in LABELS)
    notes = copies + [
        f"label {label!r} is omitted because it is in only {counts[label]} sentence{'' if counts[label] == 1 else 's'}"
        for label in LABELS
        if label not in labels
    ]
    if others:
        counted = ", ".join(f"{label} ({count:,})" for label, count in sorted(others.items(), key=str))
        notes.append(f"marks with other labels are omitted: {counted}")
    return texts, labels, notes


def require_enough_texts(texts: Sequence[HasSplitGroup], min_groups: int) -> None:
    """Raise an error if there are too few groups to split. Identical texts form one group."""
    groups = len({text.group for text in texts})
    if groups >= min_groups:
        return
    once = "" if groups == len(texts) else f" ({groups} if groups and identical texts count once)"
    raise FinecombError(
        f"training requires at least {min_groups} texts with gold, found {len(texts)}{once}; "
        "add texts with gold annotations"
    )


def group_by_document(documents: Sequence[Document], name: str) -> tuple[dict[str, str], list[str]]:
    """Group documents by a meta field, and keep identical texts together. Return groups by document ID, and notes.

    Identical texts under different IDs would otherwise be used for both training and testing.
    """
    known = sorted({key for document in documents for key in document.meta})
    if documents and name and name not in known:
        raise ParameterError(
            f"{param('group', name)}: no document has this meta field{did_you_mean(name, known)}", parameter="group"
        )
    groups = {document.id: str(document.meta.get(name, document.id)) if name else document.id for document in documents}
    first: dict[str, str] = {}
    copies = []
    for document in documents:
        original = first.setdefault(hash_text(document.text), document.id)
        if original != document.id and document.text.strip():
            copies.append((document.id, original))
            merged, kept = groups[document.id], groups[original]
            if merged != kept:
                groups = {id: kept if group == merged else group for id, group in groups.items()}
    if not copies:
        return groups, []
    copy_id, original_id = copies[0]
    identical = "1 text is" if len(copies) == 1 else f"{len(copies):,} texts are"
    example = f"{identical} identical to another one (for example {copy_id!r} and {original_id!r})"
    return groups, [f"{example}; identical texts stay on the same side of each split"]


def fit_sentence_detector(
    name: str,
    make: Callable[[Sequence[Narrative], Any, Sequence[str]], Recipe],
    study: Study,
    gold: Sequence[Annotation],
    options: Any,
) -> FittedDetector:
    """Compute cross-validated scores, then fit a detector to all texts except those reserved for thresholds."""
    texts, labels, notes = collect_training_texts(study, gold, options, getattr(options, "segments", True))
    recipe = make(texts, options, labels)
    rng = np.random.default_rng(options.seed)
    folds = cross_validation_splits(texts, options.test_folds, DEV_SHARE, rng) if options.test_folds else []
    figures = [
        label_score_rows_for_fold([texts[index] for index in split.test], recipe(split), labels) for split in folds
    ]
    final = recipe(train_dev_split(texts, DEV_SHARE, np.random.default_rng(options.seed)))
    rows = average_fold_rows(figures)
    settings = {
        key: value for key, value in asdict(options).items() if key not in ("texts", "group") and value is not None
    }
    settings |= {"real": len(getattr(options, "texts", ())) or None, "group": options.group or None}
    signature = str(Signature.from_fields(detector=name, **settings, texts=len(texts)))
    held = f"{options.test_folds} folds" + (f" by {options.group}" if options.group else "")
    card = DetectorCard(
        name,
        f"{len(texts)} texts, {sum(len(text.sentences) for text in texts)} sentences",
        f"scores: {held}; thresholds: {DEV_SHARE:.0%} of the other texts",
        tuple(hash_text(text.text) for text in texts),
        signature,
        rows,
        tuple(notes),
    )
    stored = final.scorer.to_stored(card)
    title = (
        f"Scores on held-out texts ({held}; mean and standard deviation)" if rows else "Fitted without held-out scores"
    )
    return FittedDetector("", len(texts), title, rows, signature, stored.to_files(), notes)


def label_score_rows_for_fold(texts: Sequence[Narrative], fitted: FittedScorer, labels: Sequence[str]) -> ScoreRows:
    """Return the scores by label and for `any` (Table 11), with the recall at a precision of 0.7 (Table 10)."""
    recalls = label_recalls_at_precision(texts, [scores.sentences[:, -1] for scores in fitted.scores], labels)
    has_types = fitted.scores and fitted.scores[0].sentences.shape[1] > 1
    rows = (
        label_score_rows(texts, fitted.scores, labels, fitted.thresholds)
        if has_types
        else [{"label": label} for label in labels]
    )
    truth = np.concatenate([text.target_matrix(())[:, -1] for text in texts])
    chances = np.concatenate([scores.sentences[:, -1] for scores in fitted.scores])
    marked = chances >= fitted.thresholds[ANY_ERROR_LABEL]
    right = int((marked & truth).sum())
    any_row: dict[str, object] = {
        "label": ANY_ERROR_LABEL, "sentences": int(truth.sum()), "precision": right / marked.sum() if marked.any() else
        math.nan,
        "recall": right / truth.sum() if truth.any() else math.nan,
        "f1": 2 * right / max(int(marked.sum() + truth.sum()), 1), "auc": area_under_roc_curve(chances, truth),
    }  # fmt: skip
    return [{**row, "recall at .7": recalls[str(row["label"])]} for row in [*rows, any_row]]


def average_fold_rows(folds: Sequence[ScoreRows]) -> ScoreRows:
    """Average each score over the folds where it is defined, with the standard deviation. Counts are summed."""
    rows: ScoreRows = []
    names = list(dict.fromkeys(name for fold in folds for row in fold for name in row))
    for same in zip(*folds, strict=True):
        row: dict[str, object] = {"label": same[0]["label"]}
        for name in names[1:]:
            values = np.array([float(str(part.get(name, math.nan))) for part in same])
            defined = values[~np.isnan(values)]
            if name in ("sentences", "words"):
                row[name] = int(defined.sum())
            elif len(defined) > 1:
                row[name] = f"{defined.mean():.3f} ({defined.std(ddof=1):.3f})"
            else:
                row[name] = f"{defined.mean():.3f}" if len(defined) else ""
        rows.append(row)
    return rows
