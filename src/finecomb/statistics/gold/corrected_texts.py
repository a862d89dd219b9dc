"""Texts of a study with the corrections of one annotator applied."""

from __future__ import annotations

from dataclasses import dataclass

from finecomb.core.corrections import apply_corrections
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.records import Mark
from finecomb.core.study import Study, StudyItem
from finecomb.statistics.gold.gold_and_judges import find_gold_annotator


@dataclass(frozen=True, slots=True)
class CorrectedTexts:
    """Study of corrected texts without annotations, with the numbers of applied and omitted corrections."""

    items: tuple[StudyItem, ...]
    corrector: str
    applied: int
    left_out: int
    """Number of corrections that were omitted because their words overlap or are not contiguous."""

    def describe(self) -> str:
        """Return a one-line summary of the applied and omitted corrections."""
        noun = "correction" if self.applied == 1 else "corrections"
        reason = "left out because their words overlap or are not contiguous"
        return f"{self.applied:,} {noun} of {self.corrector} applied, {self.left_out:,} {reason}"


def correct_texts(study: Study, corrector: str = "") -> CorrectedTexts:
    """Apply the corrections of an annotator to the texts (default: those of gold, or of the only annotator)."""
    who = corrector or find_gold_annotator(study)
    if who not in set(study.annotators["id"]):
        raise FinecombError(f"unknown annotator {who!r}{did_you_mean(who, study.annotators['id'])}")
    marks: dict[str, list[Mark]] = {}
    for annotation in study.submitted_work().iter_annotations():
        if annotation.annotator == who:
            marks.setdefault(annotation.document, []).extend(annotation.marks)
    documents = list(study.iter_documents())
    texts = [apply_corrections(document.text, marks.get(document.id, ())) for document in documents]
    corrected = (
        document.model_copy(update={"text": text.text, "segments": ()})
        for document, text in zip(documents, texts, strict=True)
    )
    items: tuple[StudyItem, ...] = (study.settings, *study.protocols.values(), *corrected)
    return CorrectedTexts(items, who, sum(text.applied for text in texts), sum(len(text.left_out) for text in texts))
