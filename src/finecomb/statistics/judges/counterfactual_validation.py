"""Counterfactual validation: does a judge's mark vanish when the error does?

Gold corrections are written into the texts, and the judge reads them again. A judge that marks by habit (every number,
every name) marks the corrected words too; recall and precision do not show that. Marks on texts that people wrote show
the same from the other side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.span import TEXT, Span
from finecomb.core.study import Study
from finecomb.statistics.gold.gold_and_judges import find_gold_annotator
from finecomb.statistics.inference.mean_interval import hall_interval, mean_error_moments
from finecomb.statistics.inference.resampling import estimate_with_interval, ratio_or_nan, study_and_resample_weights

Floats = NDArray[np.float64]
JudgeFunction = Callable[[Document], Annotation]
"""A judge that can be run again: a document in, an annotation out."""


@dataclass(frozen=True, slots=True)
class Correction:
    """One gold mark whose words are replaced."""

    span: Span
    words: str
    label: str


@dataclass(frozen=True, slots=True)
class CorrectedSpan:
    """A correction and where its words stand in the corrected text."""

    correction: Correction
    span: Span


@dataclass(frozen=True, slots=True)
class CorrectedText:
    """A document with its corrections written in."""

    document: Document
    places: tuple[CorrectedSpan, ...]


def usable_corrections(marks: Iterable[Mark]) -> Iterator[Correction]:
    """Gold marks with one span on the text and a correction that can stand in its place."""
    for mark in marks:
        words = mark.answers.get("correction")
        if isinstance(words, str) and words.strip() and len(mark.spans) == 1 and mark.spans[0].part == TEXT:
            yield Correction(mark.spans[0], words.strip(), mark.label or "")


def build_corrected_text(document: Document, wanted: Iterable[Correction]) -> CorrectedText:
    """The document with corrections written in from left to right; one that overlaps an earlier one is left out."""
    pieces, places, reach, shift = [], [], 0, 0
    for correction in sorted(wanted, key=lambda correction: correction.span):
        span = correction.span
        if span.start < reach or span.end == span.start:
            continue
        pieces += [document.text[reach : span.start], correction.words]
        start = span.start + shift
        places.append(CorrectedSpan(correction, Span(start, start + len(correction.words))))
        shift += len(correction.words) - (span.end - span.start)
        reach = span.end
    text = "".join([*pieces, document.text[reach:]])
    changed = {"id": f"{document.id}~corrected", "text": text, "segments": ()}
    return CorrectedText(document.model_copy(update=changed), tuple(places))


@dataclass(frozen=True, slots=True)
class CorrectionOutcome:
    """What became of the judge's mark on one corrected error."""

    document: str
    label: str
    before: bool
    """Whether the judge marked the error."""
    after: bool
    """Whether it marks the corrected words."""
    base_rate: bool | None = None
    """Whether all its marks there rest on a base rate, on no evidence about this text; None where it does not say."""


@dataclass(frozen=True, slots=True)
class JudgeValidation:
    """All corrected places, and marks on texts that people wrote."""

    outcomes: tuple[CorrectionOutcome, ...]
    texts: tuple[str, ...]
    references: tuple[int, ...]
    """Marks of the judge on each reference."""
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ValidationTexts:
    """What a judge reads to be validated: texts as they are, as gold corrects them, and references."""

    gold: str
    protocol: str
    """Id of the protocol under which gold marked."""
    pairs: tuple[tuple[Document, CorrectedText], ...]
    references: tuple[Document, ...]

    @property
    def documents(self) -> list[Document]:
        """All of them, each with an id of its own."""
        return [*(text for pair in self.pairs for text in (pair[0], pair[1].document)), *self.references]


def collect_validation_texts(study: Study, gold: str = "") -> ValidationTexts:
    """The texts with corrections by gold; refused where no gold mark has one."""
    truth = gold or find_gold_annotator(study)
    documents = {document.id: document for document in study.iter_documents()}
    protocol = ""
    pairs: list[tuple[Document, CorrectedText]] = []
    for annotation in study.submitted_work().iter_annotations():
        if annotation.annotator == truth:
            document = documents[annotation.document]
            corrected = build_corrected_text(document, usable_corrections(annotation.marks))
            if corrected.places:
                pairs.append((document, corrected))
                protocol = annotation.protocol
    if not pairs:
        raise FinecombError("no gold mark has a correction that can be written into its text; nothing can be validated")
    return ValidationTexts(truth, protocol, tuple(pairs), tuple(_reference_documents(documents.values())))


def _reference_documents(documents: Iterable[Document]) -> Iterator[Document]:
    """Every reference, in place of the document's text."""
    for document in documents:
        for number, reference in enumerate(document.references, 1):
            changed = {"id": f"{document.id}~reference-{number}", "text": reference, "segments": (), "references": ()}
            yield document.model_copy(update=changed)


def validate_judge(
    study: Study, judge: JudgeFunction, name: str, gold: str = "", draws: int = 1000, seed: int = 0
) -> JudgeValidation:
    """Run a judge on the texts as they are and as gold corrects them, and on references.

    Rows, by label: `vanished` (of the errors it marked, the share whose corrected words it leaves alone), `stayed`,
    `still marked` (of all corrected places, the share that it marks), `by base rate` (the share where its marks rest on
    no evidence about the text, where it says what they rest on), and `marks per reference`. Intervals are over texts.
    Refused where no gold mark has a correction.
    """
    wanted = collect_validation_texts(study, gold)
    outcomes = [
        outcome for document, corrected in wanted.pairs for outcome in _correction_outcomes(document, corrected, judge)
    ]
    texts = [document.id for document, _ in wanted.pairs]
    references = [len(judge(reference).marks) for reference in wanted.references]
    fields = {"statistic": "validate", "judge": name, "gold_annotator": wanted.gold, "texts": len(texts)}
    findings = [*_outcome_findings(outcomes, texts, fields, draws, seed), *_reference_findings(references, fields)]
    notes = [f"{len(outcomes):,} corrected places in {len(texts):,} texts"]
    if not references:
        notes.append("no text has a reference, so nothing is known of its marks on texts that people wrote")
    return JudgeValidation(tuple(outcomes), tuple(texts), tuple(references), tuple(findings), tuple(notes))


def _reference_findings(references: Sequence[int], fields: Mapping[str, object]) -> Iterator[Finding]:
    """Marks per text that people wrote, with the interval for few and skewed values."""
    if not references:
        return
    values = np.array(references, dtype=np.float64)
    signature = Signature.from_fields(**fields, measure="marks per reference", references=len(values))
    low, high = (
        hall_interval(float(values.mean()), mean_error_moments(values)) if len(values) > 1 else (math.nan, math.nan)
    )
    why = "all references have the same number of marks, so no interval" if math.isnan(low) else ""
    columns = {"measure": "marks per reference", "label": "any", "places": len(values), "count": int(values.sum())}
    yield Finding(columns, Estimate(float(values.mean()), max(low, 0.0), high, signature, why))


def _correction_outcomes(
    document: Document, corrected: CorrectedText, judge: JudgeFunction
) -> Iterator[CorrectionOutcome]:
    before, after = (judge(text).marks for text in (document, corrected.document))
    says_basis = any(mark.basis for mark in (*before, *after))
    for place in corrected.places:
        marks = _overlapping_marks(place.span, after)
        base_rate = bool(marks) and all(mark.basis == "base-rate" for mark in marks)
        yield CorrectionOutcome(
            document.id, place.correction.label, bool(_overlapping_marks(place.correction.span, before)), bool(marks),
            base_rate if says_basis else None,
        )  # fmt: skip


def _overlapping_marks(span: Span, marks: Iterable[Mark]) -> list[Mark]:
    """Marks that share a character with a place in the text."""
    return [mark for mark in marks if any(span.overlap_length(other) for other in mark.spans if other.part == TEXT)]


def _outcome_findings(
    outcomes: Sequence[CorrectionOutcome], texts: Sequence[str], fields: Mapping[str, object], draws: int, seed: int
) -> Iterator[Finding]:
    weights = study_and_resample_weights(len(texts), draws, seed)
    labels = dict.fromkeys(["any", *sorted({outcome.label for outcome in outcomes if outcome.label})])
    for label in labels:
        labelled = [outcome for outcome in outcomes if label in ("any", outcome.label)]
        for measure, (top, bottom) in _SHARE_CONDITIONS.items():
            if measure == "by base rate" and all(outcome.base_rate is None for outcome in outcomes):
                continue
            sums = [_outcome_counts_by_text(labelled, texts, condition) for condition in (top, bottom)]
            values = ratio_or_nan(weights @ sums[0], weights @ sums[1])
            signature = Signature.from_fields(**fields, measure=measure, label=label, draws=draws, seed=seed)
            why = "the judge marked none of these errors"
            counts = {"places": int(sums[1].sum()), "count": int(sums[0].sum())}
            estimate = estimate_with_interval(float(values[0]), values[1:], signature, why)
            yield Finding({"measure": measure, "label": label, **counts}, estimate)


Condition = Callable[[CorrectionOutcome], bool]
_SHARE_CONDITIONS: Mapping[str, tuple[Condition, Condition]] = {
    "found": (lambda outcome: outcome.before, lambda outcome: True),
    "vanished": (lambda outcome: outcome.before and not outcome.after, lambda outcome: outcome.before),
    "stayed": (lambda outcome: outcome.before and outcome.after, lambda outcome: outcome.before),
    "still marked": (lambda outcome: outcome.after, lambda outcome: True),
    "by base rate": (lambda outcome: bool(outcome.base_rate), lambda outcome: True),
}


def _outcome_counts_by_text(
    outcomes: Sequence[CorrectionOutcome], texts: Sequence[str], condition: Condition
) -> Floats:
    places = {text: place for place, text in enumerate(texts)}
    at = [places[outcome.document] for outcome in outcomes if condition(outcome)]
    return np.bincount(np.array(at, dtype=np.int64), minlength=len(texts)).astype(np.float64)
