"""Writer for tables with one row per mark, or per span of a mark with several spans.

The table is tidy: text, context and meta of the document, the fields of the annotator, and the label and answers of the
mark are repeated on every row, so that rows can be sorted, filtered or grouped independently.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic_core import from_json, to_json

from finecomb.core.records import Annotation, Annotator, Answers, Document, Mark
from finecomb.core.span import TEXT_PART, Span
from finecomb.core.study import StudyItem
from finecomb.formats.mark_table import (
    ANNOTATION_COLUMNS,
    ANNOTATOR_COLUMNS,
    ANSWER_COLUMNS,
    ANTECEDENT_COLUMNS,
    COLUMN_PREFIXES,
    DOCUMENT_COLUMNS,
    MARK_COLUMNS,
    SPAN_COLUMNS,
    TEXT_ANSWER_COLUMNS,
    format_cell,
)

Cells = dict[str, str]

_ANNOTATED_COLUMNS = ("document", "text", "annotator", "label", "start", "end", "quote")


@contextmanager
def build_table(items: Iterable[StudyItem]) -> Iterator[tuple[list[str], Iterator[Cells]]]:
    """Yield the columns of a table and its rows, which are buffered in a file until all columns are known."""
    with tempfile.TemporaryFile("w+b") as waiting:
        columns = {"document", "text"}
        for cells in _build_rows(items):
            columns.update(cells)
            waiting.write(to_json(cells) + b"\n")
        if "annotator" in columns:
            columns.update(_ANNOTATED_COLUMNS)
        waiting.seek(0)
        # Sort columns into display order
        families = {"context.": "text", "meta.": "text", "answer.": "comment"}
        first = [
            *DOCUMENT_COLUMNS,
            *ANNOTATOR_COLUMNS,
            *ANNOTATION_COLUMNS,
            "mark",
            "label",
            *SPAN_COLUMNS,
            *ANSWER_COLUMNS,
            *MARK_COLUMNS[6:],
            *ANTECEDENT_COLUMNS,
        ]
        places = {name: place for place, name in enumerate(first)}

        def sort_key(name: str) -> tuple[int, str]:
            family = next((prefix for prefix in COLUMN_PREFIXES if name.startswith(prefix)), None)
            return (places[name], "") if family is None else (places[families[family]], name)

        yield sorted(columns, key=sort_key), (from_json(line) for line in waiting)


def _build_rows(items: Iterable[StudyItem]) -> Iterator[Cells]:
    """Yield a row per mark or annotation without marks, and a row per document or annotator without annotations."""
    documents: dict[str, Document] = {}
    annotators: dict[str, Annotator] = {}
    read, at_work = set[str](), set[str]()
    for item in items:
        if isinstance(item, Document):
            documents[item.id] = item
        elif isinstance(item, Annotator):
            annotators[item.id] = item
        elif isinstance(item, Annotation) and item.document in documents:  # exercises belong to the protocol
            facts = _document_cells(documents[item.document])
            facts |= _annotator_cells(annotators[item.annotator]) if item.annotator in annotators else {}
            yield from (facts | cells for cells in _answer_and_mark_rows(item))
            read.add(item.document)
            at_work.add(item.annotator)
    yield from (_document_cells(document) for id, document in documents.items() if id not in read)
    yield from (_annotator_cells(annotator) for id, annotator in annotators.items() if id not in at_work)


def _document_cells(document: Document) -> Cells:
    context = {f"context.{name}": text for name, text in document.context.items()}
    meta = {f"meta.{name}": format_cell(value) for name, value in document.meta.items()}
    return {"document": document.id, "text": document.text} | context | meta


def _annotator_cells(annotator: Annotator) -> Cells:
    facts = {"kind": annotator.kind, "condition": annotator.condition, "platform": annotator.platform}
    return {"annotator": annotator.id} | {name: value for name, value in facts.items() if value not in ("", "human")}


def _answer_and_mark_rows(annotation: Annotation) -> Iterator[Cells]:
    facts = annotation.model_dump(mode="json", include=set(ANNOTATION_COLUMNS), exclude_defaults=True)
    base = {"document": annotation.document, "annotator": annotation.annotator, "annotation": annotation.id}
    base |= {name: str(value) for name, value in facts.items()}
    if annotation.answers or not annotation.marks:
        yield base | _answer_cells(annotation.answers)
    for mark in annotation.marks:
        for cells in _mark_rows(mark):
            yield base | cells


def _mark_rows(mark: Mark) -> Iterator[Cells]:
    facts = {"mark": mark.id} | _mark_cells(mark) | _answer_cells(mark.answers)
    before = mark.antecedents
    located = itertools.zip_longest(mark.spans, mark.quotes)
    earlier = itertools.zip_longest(before.spans, before.quotes) if before else ()
    rows = itertools.zip_longest(located, earlier, fillvalue=(None, None))
    for (span, quote), (from_, words) in itertools.chain([next(rows, ((None, None), (None, None)))], rows):
        yield facts | _span_cells(span, quote) | _span_cells(from_, words, "antecedent_")


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
        cells |= {"start": str(span.start), "end": str(span.end)} | (
            {"part": span.part} if span.part != TEXT_PART else {}
        )
    return {prefix + name: value for name, value in cells.items()}


def _answer_cells(answers: Answers) -> Cells:
    return {
        name if name in ANSWER_COLUMNS else f"answer.{name}": value
        if name in TEXT_ANSWER_COLUMNS and isinstance(value, str)
        else format_cell(value)
        for name, value in answers.items()
    }
