"""doccano's JSON lines: `{"text", "label": [[start, end, label], ...]}`, or `entities` in projects with relations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from finecomb.core.records import Document
from finecomb.core.study import StudyItem
from finecomb.formats import simple_spans
from finecomb.formats.atomic_file import sync
from finecomb.formats.base import Format, Options
from finecomb.formats.source_files import Fields, record, starts_with

_LISTS = ("label", "labels", "entities")
_KNOWN = (*_LISTS, "id", "text", "relations", "Comments", "annotator")


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Documents and annotations; doccano writes a file for each person, so the file's name is the annotator's."""
    return simple_spans.line_records(_pass, path, options)


def _pass(row: Fields, line: int, annotator: str) -> simple_spans.Pass:
    id = str(row.get("id", (int, str), line))
    document = record(Document, row.where, id=id, text=row.get("text", str), meta=row.rest(*_KNOWN))
    name = next((candidate for candidate in _LISTS if row.value.get(candidate) is not None), None)
    if name is None:
        return simple_spans.Pass(document, "", row.where)
    spans = list(_spans(row, name))
    meta = row.rest(*(set(row.value) - {"relations", "Comments"}))
    return simple_spans.Pass(document, row.get("annotator", str, annotator), row.where, spans, meta=meta)


def _spans(row: Fields, name: str) -> Iterator[simple_spans.LabelledSpan]:
    for index, value in enumerate(row.get(name, list)):
        where = f"{row.where}: {name}[{index}]"
        if isinstance(value, list) and [type(member) for member in value] == [int, int, str]:
            start, end, label = value
            yield simple_spans.LabelledSpan(start, end, label, where)
        elif isinstance(value, dict):
            span = Fields(value, where)
            start, end = span.get("start_offset", int), span.get("end_offset", int)
            meta = {"id": value["id"]} if value.get("id") is not None else {}
            yield simple_spans.LabelledSpan(start, end, span.get("label", str), where, meta=meta)
        else:
            raise row.error(f"{name}[{index}]: expected [start, end, label], found {value!r:.60}")


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write a line for each annotation, with `annotator` beside it, and one without `label` for a text nobody read."""
    with path.open("wb") as file:
        for document, annotation in simple_spans.worked(items):
            row: dict[str, Any] = {name: value for name, value in document.meta.items() if name not in _KNOWN}
            row = {"id": document.id, "text": document.text} | row
            if annotation is not None:
                row["label"] = [[span.start, span.end, mark.label] for mark, span in simple_spans.on_text(annotation)]
                row["annotator"] = annotation.annotator
            file.write(to_json(row) + b"\n")
        sync(file)


def looks_like(path: Path) -> bool:
    """Whether the first line has a text and labelled ranges as doccano writes them."""
    start = starts_with(path)
    ranges = '"start_offset"' in start or any(f'"{name}":[[' in start.replace(" ", "") for name in _LISTS[:2])
    return start.startswith("{") and '"text"' in start and ranges


FORMAT = Format(
    "doccano",
    "doccano JSON lines",
    read,
    write,
    sniff=looks_like,
    holds=frozenset(["document meta", "annotation without marks"]),
    options=frozenset(["protocol", "annotator"]),
)
