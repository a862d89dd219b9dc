"""What a stream of records has beyond the bare minimum, by name, so that a format can say what it would lose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Mark, Note, Record
from finecomb.core.span import TEXT
from finecomb.core.study import StudyItem
from finecomb.formats.base import Format

DOCUMENT_FIELDS = ("context", "references", "segments", "data", "meta")
ANNOTATOR_FIELDS = ("condition", "cell", "factors", "survey", "qualification", "platform", "excluded", "meta")
ANNOTATION_FIELDS = (
    *("about", "answers", "made_from", "readers", "excluded"),
    *("started", "submitted", "seconds", "active_seconds", "meta"),
)
MARK_FIELDS = (
    *("antecedents", "confidence", "votes", "label_votes", "item", "made_from"),
    *("alternatives", "basis", "unlocated", "meta"),
)
KNOWN_ANSWERS = ("severity", "explanation", "correction", "comment")

ALL_FEATURES = frozenset(
    [
        *(f"document {name}" for name in DOCUMENT_FIELDS),
        *(f"annotator {name}" for name in ("kind", *ANNOTATOR_FIELDS)),
        *(f"annotation {name}" for name in ("id", "round", "phase", "status", "without marks", *ANNOTATION_FIELDS)),
        *(f"mark {name}" for name in ("id", *MARK_FIELDS, *KNOWN_ANSWERS, "other answers", "without label")),
        *("mark several spans", "mark omission", "mark on context", "unit", "protocol"),
    ]
)
"""Every feature there is."""

FEATURE_DESCRIPTIONS = {
    "document context": "contexts of texts",
    "document references": "reference texts",
    "document segments": "where parts of texts begin",
    "document data": "data that texts were made from",
    "document meta": "facts about texts",
    "annotator kind": "who is a machine",
    "annotator condition": "conditions of people",
    "annotator cell": "people's cells of the design",
    "annotator factors": "people's factors of the design",
    "annotator survey": "answers to the survey",
    "annotator qualification": "results of the test",
    "annotator platform": "where people came from",
    "annotator excluded": "why people are excluded",
    "annotator meta": "facts about people",
    "annotation id": "ids of annotations",
    "annotation round": "which round it was",
    "annotation phase": "what is practice and what work",
    "annotation status": "what is a draft",
    "annotation without marks": "texts in which nothing was marked",
    "annotation about": "judgements of others' work",
    "annotation answers": "answers about whole texts",
    "annotation made_from": "what annotations were made from",
    "annotation readers": "how many readers there were",
    "annotation excluded": "why annotations are excluded",
    "annotation started": "when texts were begun",
    "annotation submitted": "when texts were handed in",
    "annotation seconds": "time on texts",
    "annotation active_seconds": "active time on texts",
    "annotation meta": "facts about annotations",
    "mark id": "ids of marks",
    "mark antecedents": "earlier words that marks refer to",
    "mark confidence": "confidence of marks",
    "mark votes": "votes for marks",
    "mark label_votes": "votes for labels",
    "mark item": "which marks are one error",
    "mark made_from": "which marks others were made from",
    "mark alternatives": "other readings of the same mistake",
    "mark basis": "what marks rest on",
    "mark unlocated": "marks without a place in the text",
    "mark meta": "facts about marks",
    "mark severity": "severities",
    "mark explanation": "explanations",
    "mark correction": "corrections",
    "mark comment": "comments",
    "mark other answers": "other answers about marks",
    "mark without label": "marks without a label",
    "mark several spans": "marks in several pieces",
    "mark omission": "marks where something is missing",
    "mark on context": "marks on contexts",
    "unit": "answers about parts of texts",
    "protocol": "the protocol",
}
"""Every feature as somebody says it who does not know the fields."""


def item_features(item: StudyItem) -> Iterator[str]:
    """What `item` has beyond the bare minimum, by name; a format says which of these it can hold."""
    match item:
        case Document():
            yield from _filled_field_features("document", item, DOCUMENT_FIELDS)
        case Annotator():
            yield from _filled_field_features("annotator", item, ANNOTATOR_FIELDS)
            if item.kind != "human":
                yield "annotator kind"
        case Annotation():
            yield from _annotation_features(item)
        case Protocol():
            yield "protocol"


def _filled_field_features(kind: str, item: Record, names: Iterable[str]) -> Iterator[str]:
    return (f"{kind} {name}" for name in names if getattr(item, name) not in (None, "", (), {}))


def _annotation_features(annotation: Annotation) -> Iterator[str]:
    yield "annotation id"
    yield from _filled_field_features("annotation", annotation, ANNOTATION_FIELDS)
    if annotation.round:
        yield "annotation round"
    if annotation.phase != "work":
        yield "annotation phase"
    if annotation.status != "submitted":
        yield "annotation status"
    if not annotation.marks:
        yield "annotation without marks"
    yield from ("unit" for _ in annotation.units)
    for mark in annotation.marks:
        yield from _mark_features(mark)


def _mark_features(mark: Mark) -> Iterator[str]:
    yield "mark id"
    yield from _filled_field_features("mark", mark, MARK_FIELDS)
    yield from (f"mark {name if name in KNOWN_ANSWERS else 'other answers'}" for name in mark.answers)
    if mark.label is None:
        yield "mark without label"
    if len(mark.spans) > 1:
        yield "mark several spans"
    if any(not len(span) for span in mark.spans):
        yield "mark omission"
    if any(span.part != TEXT for span in mark.spans):
        yield "mark on context"


class FeatureCounter:
    """Counts the features of a stream that passes through it."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.notes: list[str] = []

    def count_stream(self, items: Iterable[StudyItem], target: Format | None = None) -> Iterator[StudyItem]:
        """Pass `items` on, counting, unless they go to a format that loses nothing; notes are kept, not passed on."""
        may_lose = target is None or not target.holds >= ALL_FEATURES
        for item in items:
            if isinstance(item, Note):
                self.notes.append(item.text)
                continue
            if may_lose:
                self.counts.update(item_features(item))
            yield item

    def lost_feature_counts(self, target: Format) -> dict[str, int]:
        """How often the stream has each feature that `target` could not hold."""
        counts = sorted(self.counts.items())
        return {name: count for name, count in counts if name not in target.holds and not name.endswith(" id")}

    def describe_losses(self, target: Format) -> str:
        """One line that says what `target` could not hold, or an empty string."""
        lost = self.lost_feature_counts(target)
        listed = ", ".join(f"{name} ({count:,})" for name, count in lost.items())
        return f"{target.title} cannot hold these, which were left out: {listed}" if lost else ""
