"""SNaC's release: summaries in segments, with errors as quotes and the votes of three annotators for each error.

The file is `{summary: {segment number: {"text", "errors": [{"span", "error_type", "votes", "antecedants"?}]}}}`.
Segments are joined by one line break. A span has no offsets and is searched for in its segment. If it occurs there more
than once, the k-th repetition of a span with one type is matched to the k-th occurrence (`repeats`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from finecomb.core.errors import FormatError
from finecomb.core.protocol import Protocol
from finecomb.core.quotes import find_nth_occurrence, find_preceding_occurrence
from finecomb.core.records import Annotation, Annotator, Antecedents, Document, Mark, Note, Segment
from finecomb.core.span import TEXT_PART, Span
from finecomb.core.study import StudyItem
from finecomb.formats.atomic_file import sync_to_disk
from finecomb.formats.base import Format, Options
from finecomb.formats.source_files import (
    JsonObject,
    build_record,
    read_first_characters,
    resolve_label_name,
    stream_json_items,
)
from finecomb.protocols import load_shipped

ANNOTATORS_PER_SUMMARY = 3
CROWD_ANNOTATOR = "crowd"
_MODEL_PATTERN = re.compile(r"(book_175b|book_6b|tripod)(\d+)")
_FILE_START = re.compile(r'\s*\{\s*"[^"]*"\s*:\s*\{\s*"0"\s*:\s*\{\s*"(text|errors)"\s*:')


@dataclass(frozen=True, slots=True)
class _SourceSegment:
    """One segment: its start in the text, its own text and its errors."""

    start: int
    text: str
    errors: tuple[JsonObject, ...]

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read one document and one pooled annotation per summary."""
    protocol = options.protocol or load_shipped("snac")
    annotator = options.annotator or CROWD_ANNOTATOR
    yield protocol
    yield build_record(Annotator, str(path), id=annotator, kind="pooled")
    counts: Counter[str] = Counter()
    for key, value, line in stream_json_items(path):
        where = f"{path}:{line}"
        if not isinstance(key, str):
            raise FormatError(f"{where}: expected an object with summaries by ID, found a list")
        summary, start = JsonObject(value, f"{where}: {key}"), 0
        pieces: list[_SourceSegment] = []
        for index, (number, content) in enumerate(summary.value.items()):
            if number != str(index):
                raise summary.build_error(
                    f"expected segment '{index}', found {number!r}; segments must be numbered from 0 in order"
                )
            segment = JsonObject(content, f"{summary.where}: segment {number}")
            pieces.append(_SourceSegment(start, segment.get("text", str), tuple(segment.iter_objects("errors"))))
            start = pieces[-1].end + 1
        document = _build_document(key, pieces, where)
        yield document
        id = f"{key}/{annotator}"
        marks = tuple(_build_marks(id, pieces, document.text, protocol, options.repeats == "kth", counts))
        whose = {"document": key, "annotator": annotator, "protocol": protocol.id}
        yield build_record(Annotation, where, id=id, **whose, readers=ANNOTATORS_PER_SUMMARY, marks=marks)
    yield from _build_notes(counts, options)


def _build_document(id: str, pieces: list[_SourceSegment], where: str) -> Document:
    model = _MODEL_PATTERN.fullmatch(id)
    return build_record(
        Document,
        where,
        id=id,
        text="\n".join(piece.text for piece in pieces),
        segments=tuple(Segment(start=piece.start, end=piece.end) for piece in pieces),
        meta={"model": model[1], "story": f"{model[1].partition('_')[0]}{model[2]}"} if model else {},
    )


def _build_marks(
    annotation: str, pieces: list[_SourceSegment], text: str, protocol: Protocol, by_number: bool, counts: Counter[str]
) -> Iterator[Mark]:
    number = 0
    for index, piece in enumerate(pieces):
        repeats: Counter[tuple[str, str]] = Counter()
        for error in piece.errors:
            quote = error.get("span", str)
            label = resolve_label_name(protocol, error.get("error_type", str), error.where)
            nth = repeats[quote, label] if by_number else 0
            repeats[quote, label] += 1
            place, places = find_nth_occurrence(quote, text, nth, piece.start, piece.end)
            span = Span(*place) if place else None
            counts["unlocated"] += span is None
            counts["repeated"] += places > 1
            counts["overvoted"] += error.get("votes", int) > ANNOTATORS_PER_SUMMARY
            yield _build_mark(f"{annotation}/{number}", error, span, index, label, text, counts)
            number += 1


def _build_mark(
    id: str, error: JsonObject, span: Span | None, segment: int, label: str, text: str, counts: Counter[str]
) -> Mark:
    antecedents, lost = _build_antecedents(error, span, text)
    counts["antecedents unlocated"] += len(lost)
    quote = error.get("span", str)
    why = "" if span else "quote not found in its segment" if quote else "the span is empty"
    meta: dict[str, Any] = error.other_fields("span", "error_type", "votes", "antecedants", "antecedents")
    meta |= {} if span else {"segment": segment}
    meta |= {"antecedents": lost} if lost and antecedents and antecedents.spans else {}
    spans, votes = (span,) if span else (), error.get("votes", int)
    place = {"spans": spans, "quotes": (quote,), "unlocated": why}
    return build_record(Mark, error.where, id=id, **place, label=label, votes=votes, antecedents=antecedents, meta=meta)


def _build_antecedents(error: JsonObject, mark: Span | None, text: str) -> tuple[Antecedents | None, list[str]]:
    """Return the antecedents that were located, in text order, and the quotes of those that were not."""
    name = "antecedants" if "antecedants" in error.value else "antecedents"  # the release uses the spelling with an a
    quotes = error.get(name, list, [])
    if any(not isinstance(quote, str) for quote in quotes):
        raise error.build_error(f"{name!r}: expected a list of texts, found {quotes!r}")
    if not quotes:
        return None, []
    around, flat_text = (mark.start, mark.end) if mark else None, text.replace("\n", " ")
    ranges = [
        find_preceding_occurrence(quote, text, around) or find_preceding_occurrence(quote, flat_text, around)
        for quote in quotes
    ]
    places = [Span(*place) if place else None for place in ranges]
    spans = sorted(span for span in places if span)
    lost = [quote for quote, span in zip(quotes, places, strict=True) if span is None]
    if not spans:
        return build_record(Antecedents, error.where, spans=(), quotes=tuple(quotes), unlocated="not in the text"), lost
    return Antecedents(spans=tuple(spans), quotes=tuple(span.extract(text) for span in spans)), lost


def _build_notes(counts: Counter[str], options: Options) -> Iterator[Note]:
    rule = (
        ("a span's k-th repetition was matched to its k-th")
        if options.repeats == "kth"
        else "all were matched to the first"
    )
    lines = {
        "unlocated": "quotes are empty or not in their segment; their marks are kept without spans",
        "repeated": f"spans occur more than once in their segment; {rule} occurrence",
        "antecedents unlocated": "antecedents are not in the text",
        "overvoted": f"errors have more votes than the {ANNOTATORS_PER_SUMMARY} annotators",
    }
    return (Note(text=f"{counts[name]:,} {line}") for name, line in lines.items() if counts[name])


# --- writing -----------------------------------------------------------------------------------------------------

_ErrorKey = tuple[int, str, str, Span | None, int]  # segment, quote, error type, span, repetition within one annotation
_ErrorsByDocument = dict[str, dict[_ErrorKey, dict[str, Any]]]  # by document


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write summaries; the same span with the same label by several annotators becomes one error with their votes.

    Gold does not vote, unless there are no other annotators.
    """
    documents: dict[str, Document] = {}
    gold: set[str] = set()
    readers: _ErrorsByDocument = {}
    merged: _ErrorsByDocument = {}
    for item in items:
        if isinstance(item, Document):
            documents[item.id] = item
        elif isinstance(item, Annotator) and item.kind == "gold":
            gold.add(item.id)
        elif isinstance(item, Annotation) and item.document in documents:
            errors = merged if item.annotator in gold else readers
            _add_errors(item, documents[item.document], errors.setdefault(item.document, {}))
    summaries: dict[str, dict[str, Any]] = {}
    for id, document in documents.items():
        segments = _writable_segments(document)
        summaries[id] = {
            str(index): {"errors": [], "text": document.text[segment.start : segment.end]}
            for index, segment in enumerate(segments)
        }
        for (index, *_), error in (readers or merged).get(id, {}).items():
            summaries[id][str(min(index, len(segments) - 1))]["errors"].append(error)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        json.dump(summaries, file, ensure_ascii=False, indent=2)
        file.write("\n")
        sync_to_disk(file)


def _add_errors(annotation: Annotation, document: Document, errors: dict[_ErrorKey, dict[str, Any]]) -> None:
    repeats: Counter[tuple[Any, ...]] = Counter()
    segments = _writable_segments(document)
    for mark in annotation.marks:
        if mark.label is None or any(span.part != TEXT_PART for span in mark.spans):
            continue
        span = mark.spans[0] if mark.spans else None
        quote = mark.quotes[0] if mark.quotes else ""
        kind = snac_error_type(mark.label, annotation.protocol)
        index = sum(segment.end < span.start for segment in segments) if span is not None else 0
        number = mark.meta.get("segment")
        if span is None and isinstance(number, int) and 0 <= number < len(segments):
            index = number
        where = (index, quote, kind, span)
        error = errors.setdefault((*where, repeats[where]), {"span": quote, "error_type": kind, "votes": 0})
        repeats[where] += 1
        error["votes"] += 1 if mark.votes is None else mark.votes
        lost = mark.meta.get("antecedents")
        antecedents = [quote.replace("\n", " ") for quote in mark.antecedents.quotes] if mark.antecedents else []
        antecedents += map(str, lost) if isinstance(lost, list) else ()
        if antecedents:
            error["antecedants"] = error.get("antecedants", []) + antecedents


def snac_error_type(label: str, protocol: str) -> str:
    """Return SNaC's spelling of a label, e.g. `CharE`; labels of other protocols are unchanged."""
    return f"{label.capitalize()}E" if protocol.partition("@")[0] == "snac" else label


def _writable_segments(document: Document) -> tuple[Segment, ...]:
    """Return the segments if they cover the text with one space between them, otherwise the text as one segment.

    The space becomes the line break with which the format joins segments, so that offsets do not change.
    """
    single_segment = (Segment(start=0, end=len(document.text)),)
    edges = [0, *(edge for part in document.segments for edge in (part.start, part.end)), len(document.text)]
    gaps = [document.text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]
    fits = not gaps[0] and not gaps[-1] and all(len(gap) == 1 and gap.isspace() for gap in gaps[1:-1])
    return document.segments if document.segments and fits else single_segment


def sniff(path: Path) -> bool:
    """Return True if the file begins with a summary's first segment."""
    return path.is_file() and bool(_FILE_START.match(read_first_characters(path)))


FORMAT = Format(
    *("snac", "SNaC's JSON", read, write),
    suffixes=(".json",),
    sniff=sniff,
    holds=frozenset(
        [
            *("document segments", "annotator kind", "annotation readers", "annotation without marks"),
            *("mark votes", "mark antecedents", "mark unlocated"),
        ]
    ),
    options=frozenset(["protocol", "repeats", "annotator"]),
)
