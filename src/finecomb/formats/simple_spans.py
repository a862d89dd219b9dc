"""Records from simple span formats: a text, its annotator, and spans with one label each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from finecomb.core.errors import FormatError
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, AnnotationStatus, Annotator, Document, Mark
from finecomb.core.span import TEXT_PART, Span
from finecomb.core.study import StudyItem
from finecomb.formats.base import Options
from finecomb.formats.source_files import (
    JsonObject,
    build_implied_protocol,
    build_record,
    iter_nonblank_lines,
    parse_json,
    resolve_label_name,
)


@dataclass(slots=True)
class LabelledSpan:
    """One labelled span of a file; `label` has the file's spelling, and None means no label."""

    start: int
    end: int
    label: str | None
    where: str
    id: str = ""
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class AnnotatorPass:
    """One annotator's annotation of one text; if it has no annotator, only the text is used."""

    document: Document
    annotator: str
    where: str
    spans: list[LabelledSpan] = field(default_factory=list)
    status: AnnotationStatus = "submitted"
    meta: dict[str, Any] = field(default_factory=dict)


def build_records_from_lines(
    make: Callable[[JsonObject, int, str], AnnotatorPass], path: Path, options: Options
) -> Iterator[StudyItem]:
    """Build records from a file of JSON lines; `make` receives the fields, the line number and the annotator's name."""

    def passes() -> Iterator[AnnotatorPass]:
        for line, text in iter_nonblank_lines(path):
            where = f"{path}:{line}"
            yield make(JsonObject(parse_json(text, where), where), line, options.annotator or path.stem)

    return build_records(passes, path, options)


def build_records(passes: Callable[[], Iterator[AnnotatorPass]], path: Path, options: Options) -> Iterator[StudyItem]:
    """Build the protocol, documents, annotators and annotations; `passes` is called twice."""
    documents: dict[str, Document] = {}
    annotators: dict[str, None] = {}
    labels: set[str] = set()
    for one_pass in passes():
        document = documents.setdefault(one_pass.document.id, one_pass.document)
        if document.text != one_pass.document.text:
            raise FormatError(
                f"{one_pass.where}: document {document.id!r} has a different text in an earlier record; use the same "
                "text or another ID"
            )
        labels.update(span.label for span in one_pass.spans if span.label is not None)
        annotators |= dict.fromkeys([one_pass.annotator] if one_pass.annotator else [])
    protocol = options.protocol or build_implied_protocol(path.stem, labels)
    yield protocol
    yield from documents.values()
    yield from (build_record(Annotator, str(path), id=name, kind="human") for name in annotators)
    rounds: Counter[tuple[str, str]] = Counter()
    ids: set[str] = set()
    for one_pass in passes():
        if one_pass.annotator:
            key = one_pass.document.id, one_pass.annotator
            yield _build_annotation(one_pass, rounds[key], protocol, ids)
            rounds[key] += 1


def _build_annotation(one_pass: AnnotatorPass, round: int, protocol: Protocol, ids: set[str]) -> Annotation:
    id = f"{one_pass.document.id}/{one_pass.annotator}" + (f"/{round}" if round else "")
    marks = []
    for number, span in enumerate(one_pass.spans):
        mark = span.id if span.id and span.id not in ids else f"{id}/{number}"
        ids.add(mark)
        marks.append(_build_mark(span, mark, one_pass.document, protocol))
    return build_record(
        Annotation,
        one_pass.where,
        id=id,
        document=one_pass.document.id,
        annotator=one_pass.annotator,
        protocol=protocol.id,
        round=round,
        status=one_pass.status,
        marks=tuple(marks),
        meta=one_pass.meta,
    )


def _build_mark(labelled: LabelledSpan, id: str, document: Document, protocol: Protocol) -> Mark:
    if not 0 <= labelled.start <= labelled.end <= len(document.text):
        raise FormatError(
            f"{labelled.where}: [{labelled.start}, {labelled.end}) is not within the text, "
            f"which has {len(document.text)} characters"
        )
    span = Span(labelled.start, labelled.end)
    label = None if labelled.label is None else resolve_label_name(protocol, labelled.label, labelled.where)
    return build_record(
        Mark,
        labelled.where,
        id=id,
        spans=(span,),
        quotes=(span.extract(document.text),),
        label=label,
        meta=labelled.meta,
    )


def pair_with_documents(items: Iterable[StudyItem]) -> Iterator[tuple[Document, Annotation | None]]:
    """Yield each annotation with its document, and at the end the documents without annotations."""
    documents: dict[str, Document] = {}
    left: dict[str, None] = {}
    for item in items:
        if isinstance(item, Document):
            documents[item.id] = item
            left[item.id] = None
        elif isinstance(item, Annotation) and item.document in documents:  # exercises belong to the protocol
            left.pop(item.document, None)
            yield documents[item.document], item
    yield from ((documents[id], None) for id in left)


def labelled_text_spans(annotation: Annotation) -> Iterator[tuple[Mark, Span]]:
    """Yield each labelled mark with each of its non-empty spans in the text."""
    for mark in annotation.marks:
        for span in mark.spans:
            if mark.label is not None and span.part == TEXT_PART and len(span):
                yield mark, span
