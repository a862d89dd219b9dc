"""What a stream of records has beyond the bare minimum, by name, so that a format can say what it would lose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Mark, Note, Record
from finecomb.core.span import TEXT
from finecomb.core.study import Item
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

EVERYTHING = frozenset(
    [
        *(f"document {name}" for name in DOCUMENT_FIELDS),
        *(f"annotator {name}" for name in ("kind", *ANNOTATOR_FIELDS)),
        *(f"annotation {name}" for name in ("id", "round", "phase", "status", "without marks", *ANNOTATION_FIELDS)),
        *(f"mark {name}" for name in ("id", *MARK_FIELDS, *KNOWN_ANSWERS, "other answers", "without label")),
        *("mark several spans", "mark omission", "mark on context", "unit", "protocol"),
    ]
)
"""Every feature there is."""


def features(item: Item) -> Iterator[str]:
    """What `item` has beyond the bare minimum, by name; a format says which of these it can hold."""
    match item:
        case Document():
            yield from _filled("document", item, DOCUMENT_FIELDS)
        case Annotator():
            yield from _filled("annotator", item, ANNOTATOR_FIELDS)
            if item.kind != "human":
                yield "annotator kind"
        case Annotation():
            yield from _annotation_features(item)
        case Protocol():
            yield "protocol"


def _filled(kind: str, item: Record, names: Iterable[str]) -> Iterator[str]:
    return (f"{kind} {name}" for name in names if getattr(item, name) not in (None, "", (), {}))


def _annotation_features(annotation: Annotation) -> Iterator[str]:
    yield "annotation id"
    yield from _filled("annotation", annotation, ANNOTATION_FIELDS)
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
    yield from _filled("mark", mark, MARK_FIELDS)
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

    def watch(self, items: Iterable[Item], target: Format | None = None) -> Iterator[Item]:
        """Pass `items` on, counting, unless they go to a format that loses nothing; notes are kept, not passed on."""
        may_lose = target is None or not target.holds >= EVERYTHING
        for item in items:
            if isinstance(item, Note):
                self.notes.append(item.text)
                continue
            if may_lose:
                self.counts.update(features(item))
            yield item

    def losses(self, target: Format) -> str:
        """One line that says what `target` could not hold, or an empty string."""
        lost = {
            name: count for name, count in self.counts.items() if name not in target.holds and not name.endswith(" id")
        }
        listed = ", ".join(f"{name} ({count:,})" for name, count in sorted(lost.items()))
        return f"{target.title} cannot hold these, which were left out: {listed}" if lost else ""
