"""Features of records, such as metadata or antecedents; a format declares which features it can store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Note, Record
from finecomb.core.span import TEXT_PART
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
"""All features."""

FEATURE_DESCRIPTIONS = {
    "document context": "contexts of documents",
    "document references": "references of documents",
    "document segments": "segments of documents",
    "document data": "data behind the documents",
    "document meta": "meta of documents",
    "annotator kind": "types of annotators",
    "annotator condition": "conditions of annotators",
    "annotator cell": "design cells of annotators",
    "annotator factors": "design factors of annotators",
    "annotator survey": "survey answers",
    "annotator qualification": "qualification results",
    "annotator platform": "recruitment platforms",
    "annotator excluded": "exclusions of annotators",
    "annotator meta": "meta of annotators",
    "annotation id": "IDs of annotations",
    "annotation round": "rounds of annotations",
    "annotation phase": "phases of annotations",
    "annotation status": "status of annotations",
    "annotation without marks": "annotations without marks",
    "annotation about": "judgements of annotations or marks",
    "annotation answers": "answers about documents",
    "annotation made_from": "sources of merged annotations",
    "annotation readers": "numbers of pooled annotators",
    "annotation excluded": "exclusions of annotations",
    "annotation started": "start times",
    "annotation submitted": "submission times",
    "annotation seconds": "elapsed times",
    "annotation active_seconds": "active times",
    "annotation meta": "meta of annotations",
    "mark id": "IDs of marks",
    "mark antecedents": "antecedents of marks",
    "mark confidence": "confidence of marks",
    "mark votes": "votes for marks",
    "mark label_votes": "votes for labels",
    "mark item": "groups of marks that are one error",
    "mark made_from": "sources of merged marks",
    "mark alternatives": "alternative marks of the same error",
    "mark basis": "evidence for marks",
    "mark unlocated": "marks without spans",
    "mark meta": "meta of marks",
    "mark severity": "severities",
    "mark explanation": "explanations",
    "mark correction": "corrections",
    "mark comment": "comments",
    "mark other answers": "other answers about marks",
    "mark without label": "marks without a label",
    "mark several spans": "marks with several spans",
    "mark omission": "omissions",
    "mark on context": "marks on contexts",
    "unit": "answers about units",
    "protocol": "the protocol",
}
"""Description of each feature for messages."""


def item_features(item: StudyItem) -> Iterator[str]:
    """Yield the features of `item` by name; a format declares which of them it can store."""
    match item:
        case Document():
            yield from _filled_field_features("document", item, DOCUMENT_FIELDS)
        case Annotator():
            yield from _filled_field_features("annotator", item, ANNOTATOR_FIELDS)
            if item.kind != "human":
                yield "annotator kind"
        case Annotation():
            yield "annotation id"
            yield from _filled_field_features("annotation", item, ANNOTATION_FIELDS)
            if item.round:
                yield "annotation round"
            if item.phase != "work":
                yield "annotation phase"
            if item.status != "submitted":
                yield "annotation status"
            if not item.marks:
                yield "annotation without marks"
            yield from ("unit" for _ in item.units)
            for mark in item.marks:
                yield "mark id"
                yield from _filled_field_features("mark", mark, MARK_FIELDS)
                yield from (f"mark {name if name in KNOWN_ANSWERS else 'other answers'}" for name in mark.answers)
                if mark.label is None:
                    yield "mark without label"
                if len(mark.spans) > 1:
                    yield "mark several spans"
                if any(not len(span) for span in mark.spans):
                    yield "mark omission"
                if any(span.part != TEXT_PART for span in mark.spans):
                    yield "mark on context"
        case Protocol():
            yield "protocol"


def _filled_field_features(kind: str, item: Record, names: Iterable[str]) -> Iterator[str]:
    return (f"{kind} {name}" for name in names if getattr(item, name) not in (None, "", (), {}))


class FeatureCounter:
    """Counter of the features that occur in a stream of records."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.notes: list[str] = []

    def count_stream(self, items: Iterable[StudyItem], target: Format | None = None) -> Iterator[StudyItem]:
        """Yield `items` without notes, which are collected. Count features unless `target` can store all of them."""
        may_lose = target is None or not target.holds >= ALL_FEATURES
        for item in items:
            if isinstance(item, Note):
                self.notes.append(item.text)
                continue
            if may_lose:
                self.counts.update(item_features(item))
            yield item

    def lost_feature_counts(self, target: Format) -> dict[str, int]:
        """Return the number of occurrences of each feature that `target` cannot store."""
        counts = sorted(self.counts.items())
        return {name: count for name, count in counts if name not in target.holds and not name.endswith(" id")}

    def describe_losses(self, target: Format) -> str:
        """Describe in one line what `target` could not store; empty if it stored everything."""
        lost = self.lost_feature_counts(target)
        listed = ", ".join(f"{name} ({count:,})" for name, count in lost.items())
        return f"{target.title} cannot store the following, which were omitted: {listed}" if lost else ""
