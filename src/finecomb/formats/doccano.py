"""doccano's JSON lines: `{"text", "label": [[start, end, label], ...]}`, or `entities` in projects with relations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from finecomb.core.records import Document
from finecomb.core.study import StudyItem
from finecomb.formats import simple_spans
from finecomb.formats.atomic_file import sync_to_disk
from finecomb.formats.base import Format, Options
from finecomb.formats.source_files import JsonObject, build_record, read_first_characters

_SPAN_LIST_KEYS = ("label", "labels", "entities")
_KNOWN_KEYS = (*_SPAN_LIST_KEYS, "id", "text", "relations", "Comments", "annotator")


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read documents and annotations; doccano writes one file per person, so the annotator is named after the file."""
    return simple_spans.build_records_from_lines(_build_pass, path, options)


def _build_pass(row: JsonObject, line: int, annotator: str) -> simple_spans.AnnotatorPass:
    id = str(row.get("id", (int, str), line))
    document = build_record(Document, row.where, id=id, text=row.get("text", str), meta=row.other_fields(*_KNOWN_KEYS))
    name = next((candidate for candidate in _SPAN_LIST_KEYS if row.value.get(candidate) is not None), None)
    if name is None:
        return simple_spans.AnnotatorPass(document, "", row.where)
    spans = list(_parse_spans(row, name))
    meta = row.other_fields(*(set(row.value) - {"relations", "Comments"}))
    return simple_spans.AnnotatorPass(document, row.get("annotator", str, annotator), row.where, spans, meta=meta)


def _parse_spans(row: JsonObject, name: str) -> Iterator[simple_spans.LabelledSpan]:
    for index, value in enumerate(row.get(name, list)):
        where = f"{row.where}: {name}[{index}]"
        if isinstance(value, list) and [type(member) for member in value] == [int, int, str]:
            start, end, label = value
            yield simple_spans.LabelledSpan(start, end, label, where)
        elif isinstance(value, dict):
            span = JsonObject(value, where)
            start, end = span.get("start_offset", int), span.get("end_offset", int)
            meta = {"id": value["id"]} if value.get("id") is not None else {}
            yield simple_spans.LabelledSpan(start, end, span.get("label", str), where, meta=meta)
        else:
            raise row.build_error(f"{name}[{index}]: expected [start, end, label], found {value!r:.60}")


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write a line per annotation with its `annotator`, and a line without `label` per text without annotations."""
    with path.open("wb") as file:
        for document, annotation in simple_spans.pair_with_documents(items):
            row: dict[str, Any] = {name: value for name, value in document.meta.items() if name not in _KNOWN_KEYS}
            row = {"id": document.id, "text": document.text} | row
            if annotation is not None:
                row["label"] = [
                    [span.start, span.end, mark.label] for mark, span in simple_spans.labelled_text_spans(annotation)
                ]
                row["annotator"] = annotation.annotator
            file.write(to_json(row) + b"\n")
        sync_to_disk(file)


def sniff(path: Path) -> bool:
    """Return True if the first line has a text and labelled ranges in doccano's form."""
    start = read_first_characters(path)
    ranges = '"start_offset"' in start or any(f'"{name}":[[' in start.replace(" ", "") for name in _SPAN_LIST_KEYS[:2])
    return start.startswith("{") and '"text"' in start and ranges


FORMAT = Format(
    "doccano",
    "doccano JSON lines",
    read,
    write,
    sniff=sniff,
    holds=frozenset(["document meta", "annotation without marks"]),
    options=frozenset(["protocol", "annotator"]),
)
