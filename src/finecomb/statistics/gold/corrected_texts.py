"""The texts of a study with the corrections of one annotator applied."""

from __future__ import annotations

from dataclasses import dataclass

from finecomb.core.corrections import corrected_text
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.records import Mark
from finecomb.core.study import Study, StudyItem
from finecomb.statistics.gold.gold_and_judges import find_gold_annotator


@dataclass(frozen=True, slots=True)
class CorrectedTexts:
    """A study of corrected texts without annotations, and how many corrections are in it."""

    items: tuple[StudyItem, ...]
    corrector: str
    applied: int
    left_out: int
    """Corrections of words that overlap or are apart."""

    def describe(self) -> str:
        """Return how many corrections were applied, in one line."""
        noun = "correction" if self.applied == 1 else "corrections"
        reason = "left out because words overlap or are apart"
        return f"{self.applied:,} {noun} of {self.corrector} applied, {self.left_out:,} {reason}"


def correct_texts(study: Study, corrector: str = "") -> CorrectedTexts:
    """Return the texts after an annotator's corrections: gold's, or the only annotator's, where none is named."""
    who = corrector or find_gold_annotator(study)
    if who not in set(study.annotators["id"]):
        raise FinecombError(f"no annotator is called {who!r}{did_you_mean(who, study.annotators['id'])}")
    marks: dict[str, list[Mark]] = {}
    for annotation in study.submitted_work().iter_annotations():
        if annotation.annotator == who:
            marks.setdefault(annotation.document, []).extend(annotation.marks)
    documents = list(study.iter_documents())
    texts = [corrected_text(document.text, marks.get(document.id, ())) for document in documents]
    corrected = (
        document.model_copy(update={"text": text.text, "segments": ()})
        for document, text in zip(documents, texts, strict=True)
    )
    items: tuple[StudyItem, ...] = (study.settings, *study.protocols.values(), *corrected)
    return CorrectedTexts(items, who, sum(text.applied for text in texts), sum(len(text.left_out) for text in texts))
