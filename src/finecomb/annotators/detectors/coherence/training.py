"""`finecomb train` for SNaC's detectors: figures on texts left out, then a detector from all texts, with its card."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from finecomb.annotators.detectors.base import FittedDetector
from finecomb.annotators.detectors.coherence.detection_tables import label_score_rows, recalls_at_precision
from finecomb.annotators.detectors.coherence.embedded_detector import fitted_text_hashes
from finecomb.annotators.detectors.coherence.narrative import (
    ANY_ERROR,
    LABELS,
    GroupedText,
    Narrative,
    build_narratives,
    dev_split,
    splits,
)
from finecomb.annotators.detectors.coherence.options import DEV_SHARE, SplitOptions
from finecomb.annotators.detectors.coherence.sentence_scores import Floats
from finecomb.annotators.detectors.coherence.training_recipes import FittedScorer, Recipe
from finecomb.annotators.detectors.model_folder import DetectorCard
from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.estimate import Signature
from finecomb.core.records import Annotation, Document
from finecomb.core.study import Study
from finecomb.core.text_hash import text_hash
from finecomb.statistics.gold.unit_scores import area_under_roc_curve

MIN_LABEL_COUNT = 5
"""A label with fewer marked sentences is not learnt."""
_MIN_TEXTS = 4
ScoreRows = list[dict[str, object]]


def training_texts(
    study: Study, gold: Sequence[Annotation], options: SplitOptions, segments: bool = True
) -> tuple[list[Narrative], tuple[str, ...], list[str]]:
    """The texts of a study that have gold, the labels that can be learnt from them, and what the user should hear."""
    documents = _documents_with_gold(study, gold)
    groups, copies = text_groups(documents, options.group)
    texts = [text for text in build_narratives(documents, gold, groups, segments) if text.sentences]
    require_enough_texts(texts, max(_MIN_TEXTS, options.test_folds + 1))
    counts = Counter(label for text in texts for sentence in text.sentences for label in sentence.labels)
    labels = tuple(label for label in LABELS if counts[label] >= MIN_LABEL_COUNT)
    if not labels:
        raise FinecombError(
            f"gold marks none of {', '.join(LABELS)} often enough to learn from ({MIN_LABEL_COUNT} sentences)"
        )
    others = Counter(mark.label for annotation in gold for mark in annotation.marks if mark.label not in LABELS)
    notes = copies + [
        f"label {label!r} is in only {counts[label]} sentences and is not learnt"
        for label in LABELS
        if label not in labels
    ]
    notes += (
        [f"{sum(others.values()):,} marks with other labels are left out: {', '.join(sorted(map(str, others)))}"]
        if others
        else []
    )
    return texts, labels, notes


def _documents_with_gold(study: Study, gold: Sequence[Annotation]) -> list[Document]:
    ids = {annotation.document for annotation in gold}
    return [document for document in study.iter_documents() if document.id in ids]


def require_enough_texts(texts: Sequence[GroupedText], min_groups: int) -> None:
    """Refuse texts that cannot be split: texts of one group, and copies of one text, count once."""
    groups = len({text.group for text in texts})
    if groups >= min_groups:
        return
    once = "" if groups == len(texts) else f" ({groups} when groups and copies count once)"
    raise FinecombError(
        f"{len(texts)} texts with gold{once} are too few to fit a detector, with others for its thresholds"
    )


def text_groups(documents: Sequence[Document], name: str) -> tuple[dict[str, str], list[str]]:
    """The group of each document by a meta, or itself; copies of one text are in one group, and a note counts them.

    So no text is fitted on under one id and tested on under another.
    """
    groups = {document.id: document.id for document in documents}
    groups |= document_groups(documents, name) if documents else {}
    first: dict[str, str] = {}
    copies = []
    for document in documents:
        original = first.setdefault(text_hash(document.text), document.id)
        if original != document.id and document.text.strip():
            copies.append((document.id, original))
            groups = _merge_groups(groups, groups[original], groups[document.id])
    if not copies:
        return groups, []
    one, other = copies[0]
    example = f"{len(copies):,} of the texts have the same words as another (e.g. {one!r} as {other!r})"
    return groups, [f"{example}; they stay on one side of every split, so none is both fitted on and tested"]


def _merge_groups(groups: dict[str, str], one: str, other: str) -> dict[str, str]:
    """Groups of which two have become one."""
    return groups if one == other else {id: one if group == other else group for id, group in groups.items()}


def document_groups(documents: Sequence[Document], name: str) -> dict[str, str]:
    """The value of a meta by document; an error where no document has it."""
    if not name:
        return {}
    known = sorted({key for document in documents for key in document.meta})
    if name not in known:
        raise ParameterError(
            f"{param('group', name)}: documents have no meta of that name{did_you_mean(name, known)}", parameter="group"
        )
    return {document.id: str(document.meta.get(name, document.id)) for document in documents}


def fit_sentence_detector(
    name: str,
    make: Callable[[Sequence[Narrative], Any, Sequence[str]], Recipe],
    study: Study,
    gold: Sequence[Annotation],
    options: Any,
) -> FittedDetector:
    """Figures of every fold, then a detector from all texts but those that thresholds come from."""
    texts, labels, notes = training_texts(study, gold, options, getattr(options, "segments", True))
    recipe = make(texts, options, labels)
    rng = np.random.default_rng(options.seed)
    folds = splits(texts, options.test_folds, DEV_SHARE, rng) if options.test_folds else []
    figures = [fold_score_rows([texts[at] for at in split.test], recipe(split), labels) for split in folds]
    final = recipe(dev_split(texts, DEV_SHARE, np.random.default_rng(options.seed)))
    rows = average_folds(figures)
    settings = {
        key: value for key, value in asdict(options).items() if key not in ("texts", "group") and value is not None
    }
    settings |= {"real": len(getattr(options, "texts", ())) or None, "group": options.group or None}
    signature = str(Signature.from_fields(detector=name, **settings, texts=len(texts)))
    held = f"{options.test_folds} folds" + (f" by {options.group}" if options.group else "")
    card = DetectorCard(
        name,
        f"{len(texts)} texts, {sum(len(text.sentences) for text in texts)} sentences",
        f"figures: {held}; thresholds: {DEV_SHARE:.0%} of the other texts",
        fitted_text_hashes(texts),
        signature,
        rows,
        tuple(notes),
    )
    stored = final.scorer.to_stored(card)
    title = f"On texts left out of fitting ({held}; mean and standard deviation)" if rows else "Fitted; no figures"
    return FittedDetector("", len(texts), title, rows, signature, stored.to_files(), notes)


def fold_score_rows(texts: Sequence[Narrative], fitted: FittedScorer, labels: Sequence[str]) -> ScoreRows:
    """Table 11's row of each label, a row for `any`, and Table 10's recalls at precision .7 beside them."""
    recalls = recalls_at_precision(texts, [scores.sentences[:, -1] for scores in fitted.scores], labels)
    has_types = fitted.scores and fitted.scores[0].sentences.shape[1] > 1
    rows = (
        label_score_rows(texts, fitted.scores, labels, fitted.thresholds)
        if has_types
        else [{"label": label} for label in labels]
    )
    truth = np.concatenate([text.targets(())[:, -1] for text in texts])
    chances = np.concatenate([scores.sentences[:, -1] for scores in fitted.scores])
    marked = chances >= fitted.thresholds[ANY_ERROR]
    right = int((marked & truth).sum())
    whole: dict[str, object] = {
        "label": ANY_ERROR, "sentences": int(truth.sum()), "precision": right / marked.sum() if marked.any() else
        math.nan,
        "recall": right / truth.sum() if truth.any() else math.nan,
        "f1": 2 * right / max(int(marked.sum() + truth.sum()), 1), "auc": area_under_roc_curve(chances, truth),
    }  # fmt: skip
    return [{**row, "recall at .7": recalls[str(row["label"])]} for row in [*rows, whole]]


def _format_mean_and_sd(values: Floats) -> str:
    """`0.805 (0.012)`, of the folds where a figure is defined; the spread is left out where there is but one."""
    defined = values[~np.isnan(values)]
    if not len(defined):
        return ""
    return f"{defined.mean():.3f} ({defined.std(ddof=1):.3f})" if len(defined) > 1 else f"{defined.mean():.3f}"


def average_folds(folds: Sequence[ScoreRows]) -> ScoreRows:
    """The mean of every figure over folds, and its standard deviation beside it; sentences are summed."""
    rows: ScoreRows = []
    names = list(dict.fromkeys(name for fold in folds for row in fold for name in row))
    for same in zip(*folds, strict=True):
        row: dict[str, object] = {"label": same[0]["label"]}
        for name in names[1:]:
            values = np.array([float(str(part.get(name, math.nan))) for part in same])
            row[name] = int(np.nansum(values)) if name in ("sentences", "words") else _format_mean_and_sd(values)
        rows.append(row)
    return rows
