"""`finecomb train --detector spans`: figures on texts left out, then a classifier from all texts, with its card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from finecomb.annotators.detectors.base import FittedDetector
from finecomb.annotators.detectors.coherence.narrative import TextSplit, dev_split, splits
from finecomb.annotators.detectors.coherence.options import DEV_SHARE
from finecomb.annotators.detectors.coherence.training import (
    MIN_LABEL_COUNT,
    average_folds,
    require_enough_texts,
    text_groups,
)
from finecomb.annotators.detectors.model_folder import DetectorCard, StoredModel
from finecomb.annotators.detectors.spans.classifier import (
    NAME,
    EncodedText,
    SpanClassifier,
    SpanSettings,
    TextEncoder,
    fit_span_classifier,
    word_score_rows,
    word_thresholds,
)
from finecomb.annotators.detectors.spans.examples import SpanText, span_text
from finecomb.annotators.detectors.spans.options import SpanTrainingOptions
from finecomb.core.errors import FinecombError
from finecomb.core.estimate import Signature
from finecomb.core.records import Annotation
from finecomb.core.study import Study
from finecomb.core.text_hash import text_hash


def span_texts(
    study: Study, gold: Sequence[Annotation], group: str
) -> tuple[list[SpanText], tuple[str, ...], list[str]]:
    """Texts with gold, labels that can be learnt from them, and what the user should hear."""
    counts = Counter(mark.label for annotation in gold for mark in annotation.marks if mark.spans and mark.label)
    unknown = _unknown_label_counts(study, gold)
    labels = tuple(
        sorted(label for label, count in counts.items() if count >= MIN_LABEL_COUNT and label not in unknown)
    )
    if not labels:
        raise FinecombError(f"gold marks no label often enough to learn from ({MIN_LABEL_COUNT} times)")
    notes = [
        f"label {label!r} is marked only {count} times and is not learnt"
        for label, count in counts.items()
        if count < MIN_LABEL_COUNT and label not in unknown
    ]
    notes += [
        f"label {label!r} is not in the protocol of gold; its {count:,} marks are left out"
        for label, count in unknown.items()
    ]
    by_document: dict[str, list[Annotation]] = {}
    for annotation in gold:
        by_document.setdefault(annotation.document, []).append(annotation)
    documents = [document for document in study.iter_documents() if document.id in by_document]
    groups, copies = text_groups(documents, group)
    texts = [
        span_text(document, by_document[document.id], labels, groups[document.id])
        for document in documents
        if document.text.strip()
    ]
    return texts, labels, copies + notes


def _unknown_label_counts(study: Study, gold: Sequence[Annotation]) -> Counter[str]:
    """How often gold has labels that its protocol does not have."""
    protocols = study.protocols
    return Counter(
        mark.label
        for annotation in gold
        for mark in annotation.marks
        if mark.label and annotation.protocol in protocols and not protocols[annotation.protocol].has_label(mark.label)
    )


def fit_split(
    texts: Sequence[SpanText], encoded: Sequence[EncodedText] | None, split: TextSplit, settings: SpanSettings
) -> tuple[SpanClassifier, list[float]]:
    """A classifier from the split's training texts and thresholds from its dev texts."""
    vectors = [encoded[at] for at in split.train] if encoded else None
    classifier = fit_span_classifier([texts[at] for at in split.train], settings, vectors)
    dev = [texts[at] for at in split.dev]
    chances = [classifier.probabilities(encoded[at]) for at in split.dev] if encoded else classifier(dev)
    return classifier, word_thresholds(chances, dev, len(settings.labels))


def split_score_rows(
    texts: Sequence[SpanText], encoded: Sequence[EncodedText] | None, split: TextSplit, settings: SpanSettings
) -> list[dict[str, object]]:
    """Table 2's rows on the split's test texts."""
    classifier, thresholds = fit_split(texts, encoded, split, settings)
    test = [texts[at] for at in split.test]
    chances = [classifier.probabilities(encoded[at]) for at in split.test] if encoded else classifier(test)
    return word_score_rows(chances, test, settings.labels, thresholds)


def fit_span_detector(study: Study, gold: Sequence[Annotation], options: SpanTrainingOptions) -> FittedDetector:
    """Figures of every fold, then a classifier from all texts but those that thresholds come from."""
    texts, labels, notes = span_texts(study, gold, options.group)
    require_enough_texts(texts, max(3, options.test_folds + 1))
    settings = SpanSettings(options.encoder, labels, options.tune, options.epochs, seed=options.seed)
    encoded = None if options.tune else TextEncoder(settings)(texts)
    rng = np.random.default_rng(options.seed)
    folds = splits(texts, options.test_folds, DEV_SHARE, rng) if options.test_folds else []
    rows = average_folds([split_score_rows(texts, encoded, split, settings) for split in folds])
    whole = dev_split(texts, DEV_SHARE, np.random.default_rng(options.seed))
    classifier, thresholds = fit_split(texts, encoded, whole, settings)
    facts = {key: value for key, value in asdict(options).items() if value != ""}
    signature = str(Signature.from_fields(detector=NAME, **facts, texts=len(texts)))
    held = f"{options.test_folds} folds" + (f" by {options.group}" if options.group else "")
    card = DetectorCard(
        NAME,
        f"{len(texts)} texts, {sum(len(text.spans) for text in texts)} marked spans",
        f"figures: {held}; thresholds: {DEV_SHARE:.0%} of the other texts",
        tuple(text_hash(text.text) for text in texts),
        signature,
        rows,
        tuple(notes),
    )
    protocol = gold[0].protocol.partition("@")[0]
    stored = {**asdict(settings), "protocol": protocol, "thresholds": dict(zip(labels, thresholds, strict=True))}
    files = StoredModel(card, stored, classifier.head.to_arrays(), classifier.encoder_state()).to_files()
    title = (
        f"Words of texts left out of fitting ({held}; mean and standard deviation)" if rows else "Fitted; no figures"
    )
    return FittedDetector("", len(texts), title, rows, signature, files, notes)
