"""Training of the span detector: cross-validated scores, then a classifier fitted to all texts, with a model card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from finecomb.annotators.detectors.base import FittedDetector
from finecomb.annotators.detectors.coherence.narrative import TextSplit, cross_validation_splits, train_dev_split
from finecomb.annotators.detectors.coherence.options import DEV_SHARE
from finecomb.annotators.detectors.coherence.sentence_scores import best_f1_threshold
from finecomb.annotators.detectors.coherence.training import (
    MIN_LABEL_COUNT,
    average_fold_rows,
    group_by_document,
    require_enough_texts,
)
from finecomb.annotators.detectors.model_folder import DetectorCard, StoredModel
from finecomb.annotators.detectors.spans.classifier import (
    NAME,
    EncodedText,
    SpanClassifier,
    SpanSettings,
    TextEncoder,
    fit_span_classifier,
)
from finecomb.annotators.detectors.spans.examples import SpanText, build_span_text, word_label_matrix
from finecomb.annotators.detectors.spans.options import SpanTrainingOptions
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation
from finecomb.core.results import Signature
from finecomb.core.study import Study
from finecomb.core.text_hash import hash_text


def collect_span_texts(
    study: Study, gold: Sequence[Annotation], group: str
) -> tuple[list[SpanText], tuple[str, ...], list[str]]:
    """Return the texts with gold annotations, the labels with enough marks, and notes for the user."""
    counts = Counter(mark.label for annotation in gold for mark in annotation.marks if mark.spans and mark.label)
    protocols = study.protocols
    unknown = Counter(
        mark.label
        for annotation in gold
        for mark in annotation.marks
        if mark.label and annotation.protocol in protocols and not protocols[annotation.protocol].has_label(mark.label)
    )
    labels = tuple(
        sorted(label for label, count in counts.items() if count >= MIN_LABEL_COUNT and label not in unknown)
    )
    if not labels:
        raise FinecombError(
            f"no label of the gold protocol has the {MIN_LABEL_COUNT} gold marks required for training; "
            "add texts with gold annotations"
        )
    notes = [
        f"label {label!r} is omitted because it has only {count} mark{'' if count == 1 else 's'}"
        for label, count in counts.items()
        if count < MIN_LABEL_COUNT and label not in unknown
    ]
    notes += [
        f"label {label!r} is not in the protocol of the gold annotations; its {count:,} "
        f"mark{' is' if count == 1 else 's are'} omitted"
        for label, count in unknown.items()
    ]
    by_document: dict[str, list[Annotation]] = {}
    for annotation in gold:
        by_document.setdefault(annotation.document, []).append(annotation)
    documents = [document for document in study.iter_documents() if document.id in by_document]
    groups, copies = group_by_document(documents, group)
    texts = [
        build_span_text(document, by_document[document.id], labels, groups[document.id])
        for document in documents
        if document.text.strip()
    ]
    return texts, labels, copies + notes


def fit_classifier_on_split(
    texts: Sequence[SpanText], encoded: Sequence[EncodedText] | None, split: TextSplit, settings: SpanSettings
) -> tuple[SpanClassifier, list[float]]:
    """Fit a classifier to the training texts of a split, and its thresholds to the dev texts."""
    vectors = [encoded[index] for index in split.train] if encoded else None
    classifier = fit_span_classifier([texts[index] for index in split.train], settings, vectors)
    dev = [texts[index] for index in split.dev]
    chances = [classifier.word_probabilities(encoded[index]) for index in split.dev] if encoded else classifier(dev)
    every = np.concatenate(chances).astype(np.float64)
    truth = np.concatenate([word_label_matrix(text, len(settings.labels)) for text in dev])
    return classifier, [best_f1_threshold(*columns) for columns in zip(every.T, truth.T, strict=True)]


def held_out_score_rows(
    texts: Sequence[SpanText], encoded: Sequence[EncodedText] | None, split: TextSplit, settings: SpanSettings
) -> list[dict[str, object]]:
    """Return precision, recall and F1 over the words of a split's test texts, by label (Table 2 of Scarecrow)."""
    classifier, thresholds = fit_classifier_on_split(texts, encoded, split, settings)
    test = [texts[index] for index in split.test]
    chances = [classifier.word_probabilities(encoded[index]) for index in split.test] if encoded else classifier(test)
    every = np.concatenate(chances)
    truth = np.concatenate([word_label_matrix(text, len(settings.labels)) for text in test])
    rows: list[dict[str, object]] = []
    for index, label in enumerate(settings.labels):
        marked = every[:, index] >= thresholds[index]
        right, gold, predicted = int((marked & truth[:, index]).sum()), int(truth[:, index].sum()), int(marked.sum())
        rows.append({
            "label": label, "words": gold, "precision": right / predicted if predicted else float("nan"),
            "recall": right / gold if gold else float("nan"), "f1": 2 * right / max(gold + predicted, 1),
        })  # fmt: skip
    return rows


def fit_span_detector(study: Study, gold: Sequence[Annotation], options: SpanTrainingOptions) -> FittedDetector:
    """Compute cross-validated scores, then fit a classifier to all texts except those reserved for thresholds."""
    texts, labels, notes = collect_span_texts(study, gold, options.group)
    require_enough_texts(texts, max(3, options.test_folds + 1))
    settings = SpanSettings(options.encoder, labels, options.tune, options.epochs, seed=options.seed)
    encoded = None if options.tune else TextEncoder(settings)(texts)
    rng = np.random.default_rng(options.seed)
    folds = cross_validation_splits(texts, options.test_folds, DEV_SHARE, rng) if options.test_folds else []
    rows = average_fold_rows([held_out_score_rows(texts, encoded, split, settings) for split in folds])
    final_split = train_dev_split(texts, DEV_SHARE, np.random.default_rng(options.seed))
    classifier, thresholds = fit_classifier_on_split(texts, encoded, final_split, settings)
    facts = {key: value for key, value in asdict(options).items() if value != ""}
    signature = str(Signature.from_fields(detector=NAME, **facts, texts=len(texts)))
    held = f"{options.test_folds} folds" + (f" by {options.group}" if options.group else "")
    card = DetectorCard(
        NAME,
        f"{len(texts)} texts, {sum(len(text.spans) for text in texts)} marked spans",
        f"scores: {held}; thresholds: {DEV_SHARE:.0%} of the other texts",
        tuple(hash_text(text.text) for text in texts),
        signature,
        rows,
        tuple(notes),
    )
    protocol = gold[0].protocol.partition("@")[0]
    stored = {**asdict(settings), "protocol": protocol, "thresholds": dict(zip(labels, thresholds, strict=True))}
    state = classifier.encoder.model.state_dict() if options.tune else {}
    weights = {name: tensor.detach().numpy().copy() for name, tensor in state.items()}
    files = StoredModel(card, stored, classifier.head.to_arrays(), weights).to_files()
    title = (
        f"Word-level scores on held-out texts ({held}; mean and standard deviation)"
        if rows
        else "Fitted without held-out scores"
    )
    return FittedDetector("", len(texts), title, rows, signature, files, notes)
