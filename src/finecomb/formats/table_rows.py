"""The rows of a table for records: one mark a row, or one span where a mark has several."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from pydantic_core import from_json, to_json

from finecomb.core.records import Annotation, Annotator, Answers, Document, Mark
from finecomb.core.span import TEXT, Span
from finecomb.core.study import Item
from finecomb.formats.table import ANNOTATION, ANSWERS, WORDS, cell_of, ordered

Cells = dict[str, str]

_ALWAYS = ("document", "text", "annotator", "label", "start", "end", "quote")


@contextmanager
def laid_out(items: Iterable[Item]) -> Iterator[tuple[list[str], Iterator[Cells]]]:
    """The columns and the rows of a table. Rows wait in a file until all columns are known."""
    with tempfile.TemporaryFile("w+b") as waiting:
        columns = {"document", "text"}
        for cells in _rows(items):
            columns.update(cells)
            waiting.write(to_json(cells) + b"\n")
        if "annotator" in columns:
            columns.update(_ALWAYS)
        waiting.seek(0)
        yield ordered(columns), _back(waiting)


def _back(waiting: IO[bytes]) -> Iterator[Cells]:
    return (from_json(line) for line in waiting)


def _rows(items: Iterable[Item]) -> Iterator[Cells]:
    """Facts about a document and an annotator stand in their first row; those without work have a row of their own."""
    documents: dict[str, Document] = {}
    annotators: dict[str, Annotator] = {}
    written: set[str] = set()
    for item in items:
        if isinstance(item, Document):
            documents[item.id] = item
            written.add(item.id)
        elif isinstance(item, Annotator):
            annotators[item.id] = item
        elif isinstance(item, Annotation) and item.document in written:  # an exercise is the protocol's
            first: Cells = {}
            if item.document in documents:
                first |= _document_cells(documents.pop(item.document))
            if item.annotator in annotators:
                first |= _annotator_cells(annotators.pop(item.annotator))
            for cells in _annotation_rows(item):
                yield cells | first
                first = {}
    yield from map(_document_cells, documents.values())
    yield from map(_annotator_cells, annotators.values())


def _document_cells(document: Document) -> Cells:
    context = {f"context.{name}": text for name, text in document.context.items()}
    meta = {f"meta.{name}": cell_of(value) for name, value in document.meta.items()}
    return {"document": document.id, "text": document.text} | context | meta


def _annotator_cells(annotator: Annotator) -> Cells:
    facts = {"kind": annotator.kind, "condition": annotator.condition, "platform": annotator.platform}
    return {"annotator": annotator.id} | {name: value for name, value in facts.items() if value not in ("", "human")}


def _annotation_rows(annotation: Annotation) -> Iterator[Cells]:
    facts = annotation.model_dump(mode="json", include=set(ANNOTATION), exclude_defaults=True)
    base = {"document": annotation.document, "annotator": annotation.annotator, "annotation": annotation.id}
    base |= {name: str(value) for name, value in facts.items()}
    if annotation.answers or not annotation.marks:
        yield base | _answer_cells(annotation.answers)
    for mark in annotation.marks:
        for cells in _mark_rows(mark):
            yield base | cells


def _mark_rows(mark: Mark) -> Iterator[Cells]:
    first = _mark_cells(mark) | _answer_cells(mark.answers)
    before = mark.antecedents
    located = itertools.zip_longest(mark.spans, mark.quotes)
    earlier = itertools.zip_longest(before.spans, before.quotes) if before else ()
    rows = itertools.zip_longest(located, earlier, fillvalue=(None, None))
    for (span, quote), (from_, words) in itertools.chain([next(rows, ((None, None), (None, None)))], rows):
        yield {"mark": mark.id} | first | _span_cells(span, quote) | _span_cells(from_, words, "antecedent_")
        first = {}


def _mark_cells(mark: Mark) -> Cells:
    facts: Mapping[str, Any] = {
        "label": mark.label,
        "confidence": mark.confidence,
        "votes": mark.votes,
        "item": mark.item,
        "basis": mark.basis,
        "unlocated": mark.unlocated or None,
        "antecedent_unlocated": (mark.antecedents.unlocated if mark.antecedents else "") or None,
    }
    return {name: str(value) for name, value in facts.items() if value is not None}


def _span_cells(span: Span | None, quote: str | None, prefix: str = "") -> Cells:
    cells = {} if quote is None else {"quote": quote}
    if span is not None:
        cells |= {"start": str(span.start), "end": str(span.end)} | ({"part": span.part} if span.part != TEXT else {})
    return {prefix + name: value for name, value in cells.items()}


def _answer_cells(answers: Answers) -> Cells:
    return {
        name if name in ANSWERS else f"answer.{name}": value
        if name in WORDS and isinstance(value, str)
        else cell_of(value)
        for name, value in answers.items()
    }
