"""Counterfactual validation of a judge: whether its marks disappear when the errors are corrected.

The corrections in gold are applied to the texts, and the judge annotates the corrected texts. A judge that marks by
habit (every number, every name) also marks the corrected words, which recall and precision do not show. Marks on
human-written texts are a second check for such false alarms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.results import Estimate, Finding, Signature
from finecomb.core.span import TEXT_PART, Span
from finecomb.core.study import Study
from finecomb.statistics.gold.gold_and_judges import find_gold_annotator
from finecomb.statistics.inference.mean_interval import hall_interval, mean_error_moments
from finecomb.statistics.inference.resampling import estimate_with_interval, ratio_or_nan, study_and_resample_weights

Floats = NDArray[np.float64]
JudgeFunction = Callable[[Document], Annotation]
"""Judge that can be run again: a function that takes a document and returns an annotation."""


@dataclass(frozen=True, slots=True)
class MarkCorrection:
    """Replacement of the words of one gold mark."""

    span: Span
    words: str
    label: str


@dataclass(frozen=True, slots=True)
class CorrectedSpan:
    """Correction, with the span of its words in the corrected text."""

    correction: MarkCorrection
    span: Span


@dataclass(frozen=True, slots=True)
class CounterfactualText:
    """Document with its corrections applied."""

    document: Document
    places: tuple[CorrectedSpan, ...]


def build_corrected_text(document: Document, wanted: Iterable[MarkCorrection]) -> CounterfactualText:
    """Build the corrected version of a text, skipping each correction that overlaps an earlier one."""
    pieces, places, reach, shift = [], [], 0, 0
    for correction in sorted(wanted, key=lambda correction: correction.span):
        span = correction.span
        # An empty span marks an omission and has no words to replace.
        if span.start < reach or span.end == span.start:
            continue
        pieces += [document.text[reach : span.start], correction.words]
        start = span.start + shift
        places.append(CorrectedSpan(correction, Span(start, start + len(correction.words))))
        shift += len(correction.words) - (span.end - span.start)
        reach = span.end
    text = "".join([*pieces, document.text[reach:]])
    changed = {"id": f"{document.id}~corrected", "text": text, "segments": ()}
    return CounterfactualText(document.model_copy(update=changed), tuple(places))


@dataclass(frozen=True, slots=True)
class CorrectionOutcome:
    """Whether a judge marked one error before and after its correction."""

    document: str
    label: str
    before: bool
    """True if the judge marked the error in the original text."""
    after: bool
    """True if the judge marked the corrected words."""
    base_rate: bool | None = None
    """True if all of the judge's marks on the corrected words rest on a base rate; None if marks state no basis."""


@dataclass(frozen=True, slots=True)
class JudgeValidation:
    """Outcomes of all corrections, and marks on human-written texts."""

    outcomes: tuple[CorrectionOutcome, ...]
    texts: tuple[str, ...]
    references: tuple[int, ...]
    """Number of the judge's marks on each human-written reference text."""
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ValidationTexts:
    """Texts for a validation: originals, corrected versions and references."""

    gold: str
    protocol: str
    """ID of the protocol of the gold annotations."""
    pairs: tuple[tuple[Document, CounterfactualText], ...]
    references: tuple[Document, ...]

    @property
    def documents(self) -> list[Document]:
        """All texts to annotate, each with a unique ID."""
        return [*(text for pair in self.pairs for text in (pair[0], pair[1].document)), *self.references]


def collect_validation_texts(study: Study, gold: str = "") -> ValidationTexts:
    """Return texts with gold corrections, and references; raise an error if no mark in gold has a correction."""
    truth = gold or find_gold_annotator(study)
    documents = {document.id: document for document in study.iter_documents()}
    protocol = ""
    pairs: list[tuple[Document, CounterfactualText]] = []
    for annotation in study.submitted_work().iter_annotations():
        if annotation.annotator != truth:
            continue
        corrections = []
        for mark in annotation.marks:
            words = mark.answers.get("correction")
            if isinstance(words, str) and words.strip() and len(mark.spans) == 1 and mark.spans[0].part == TEXT_PART:
                corrections.append(MarkCorrection(mark.spans[0], words.strip(), mark.label or ""))
        document = documents[annotation.document]
        corrected = build_corrected_text(document, corrections)
        if corrected.places:
            pairs.append((document, corrected))
            protocol = annotation.protocol
    if not pairs:
        raise FinecombError(
            f"no mark of {truth} has a correction that can be applied to its text; use gold marks with corrections"
        )
    references = tuple(
        document.model_copy(
            update={"id": f"{document.id}~reference-{number}", "text": text, "segments": (), "references": ()}
        )
        for document in documents.values()
        for number, text in enumerate(document.references, 1)
    )
    return ValidationTexts(truth, protocol, tuple(pairs), references)


def validate_judge(
    study: Study, judge: JudgeFunction, name: str, gold: str = "", draws: int = 1000, seed: int = 0
) -> JudgeValidation:
    """Run a judge on the original texts, on the texts as corrected by gold, and on references.

    Rows by label: `found` (share of the errors that the judge marked), `vanished` (share of those errors whose
    corrected words it does not mark), `stayed` (share whose corrected words it still marks), `still marked` (share of
    all corrected spans that it marks), `by base rate` (share with marks that rest on no evidence about the text, if the
    judge names the basis) and `marks per reference`. Intervals resample texts.
    """
    wanted = collect_validation_texts(study, gold)
    outcomes = []
    for document, corrected in wanted.pairs:
        before, after = (judge(text).marks for text in (document, corrected.document))
        # A judge that names no basis at all has no `by base rate` row.
        has_basis = any(mark.basis for mark in (*before, *after))
        for place in corrected.places:
            is_found = bool(_overlapping_marks(place.correction.span, before))
            marks = _overlapping_marks(place.span, after)
            by_base_rate = bool(marks) and all(mark.basis == "base-rate" for mark in marks) if has_basis else None
            outcomes.append(CorrectionOutcome(document.id, place.correction.label, is_found, bool(marks), by_base_rate))
    texts = [document.id for document, _ in wanted.pairs]
    references = [len(judge(reference).marks) for reference in wanted.references]
    fields = {"statistic": "validate", "judge": name, "gold_annotator": wanted.gold, "texts": len(texts)}
    findings = list(_outcome_findings(outcomes, texts, fields, draws, seed))
    notes = [f"{len(outcomes):,} corrected spans in {len(texts):,} texts"]
    if references:
        values = np.array(references, dtype=np.float64)
        mean, low, high = float(values.mean()), math.nan, math.nan
        if len(values) > 1:
            low, high = hall_interval(mean, mean_error_moments(values))
        equal = "there is only one reference" if len(values) == 1 else "all references have the same number of marks"
        why = f"{equal}, so there is no interval" if math.isnan(low) else ""
        signature = Signature.from_fields(**fields, measure="marks per reference", references=len(values))
        columns = {"measure": "marks per reference", "label": "any", "places": len(values), "count": sum(references)}
        findings.append(Finding(columns, Estimate(mean, max(low, 0.0), high, signature, why)))
    else:
        notes.append("no text has a reference, so marks on human-written texts are not reported")
    return JudgeValidation(tuple(outcomes), tuple(texts), tuple(references), tuple(findings), tuple(notes))


def _overlapping_marks(span: Span, marks: Iterable[Mark]) -> list[Mark]:
    """Return the marks that overlap a span of the text."""
    return [
        mark for mark in marks if any(span.overlap_length(other) for other in mark.spans if other.part == TEXT_PART)
    ]


def _outcome_findings(
    outcomes: Sequence[CorrectionOutcome], texts: Sequence[str], fields: Mapping[str, object], draws: int, seed: int
) -> Iterator[Finding]:
    weights = study_and_resample_weights(len(texts), draws, seed)
    position_by_text = {text: position for position, text in enumerate(texts)}
    labels = dict.fromkeys(["any", *sorted({outcome.label for outcome in outcomes if outcome.label})])
    for label in labels:
        labelled = [outcome for outcome in outcomes if label in ("any", outcome.label)]
        for measure, (top, bottom) in _SHARE_CONDITIONS.items():
            if measure == "by base rate" and all(outcome.base_rate is None for outcome in outcomes):
                continue
            sums = np.zeros((2, len(texts)))
            for outcome in labelled:
                sums[:, position_by_text[outcome.document]] += top(outcome), bottom(outcome)
            values = ratio_or_nan(weights @ sums[0], weights @ sums[1])
            signature = Signature.from_fields(**fields, measure=measure, label=label, draws=draws, seed=seed)
            why = "the judge marked none of these errors"
            counts = {"places": int(sums[1].sum()), "count": int(sums[0].sum())}
            estimate = estimate_with_interval(float(values[0]), values[1:], signature, why)
            yield Finding({"measure": measure, "label": label, **counts}, estimate)


OutcomeCondition = Callable[[CorrectionOutcome], bool]
_SHARE_CONDITIONS: Mapping[str, tuple[OutcomeCondition, OutcomeCondition]] = {
    "found": (lambda outcome: outcome.before, lambda outcome: True),
    "vanished": (lambda outcome: outcome.before and not outcome.after, lambda outcome: outcome.before),
    "stayed": (lambda outcome: outcome.before and outcome.after, lambda outcome: outcome.before),
    "still marked": (lambda outcome: outcome.after, lambda outcome: True),
    "by base rate": (lambda outcome: bool(outcome.base_rate), lambda outcome: True),
}
