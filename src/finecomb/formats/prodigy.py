"""Prodigy's JSON lines: `{"text", "spans": [{"start", "end", "label"}, ...], "answer"}`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from finecomb.core.records import AnnotationStatus, Document
from finecomb.core.study import StudyItem
from finecomb.formats import simple_spans
from finecomb.formats.atomic_file import sync_to_disk
from finecomb.formats.base import Format, Options
from finecomb.formats.source_files import JsonObject, build_record, read_first_characters

META_KEY = "finecomb_meta"
"""Key for a document's meta, because Prodigy shows the contents of `meta` to its annotators."""
_SPAN_KEYS = ("start", "end", "label", "id", "text", "token_start", "token_end")
_STATUS_BY_ANSWER: dict[str, AnnotationStatus] = {"accept": "submitted", "reject": "excluded", "ignore": "excluded"}


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read documents and annotations; rejected or ignored annotations get the status `excluded` and keep the answer."""
    return simple_spans.build_records_from_lines(_build_pass, path, options)


def _build_pass(row: JsonObject, line: int, annotator: str) -> simple_spans.AnnotatorPass:
    id = str(row.get("id", (int, str), row.get("_input_hash", int, line)))
    meta = row.get("meta", dict, {}) | row.get(META_KEY, dict, {})
    document = build_record(Document, row.where, id=id, text=row.get("text", str), meta=meta)
    if "spans" not in row.value and "answer" not in row.value:
        return simple_spans.AnnotatorPass(document, "", row.where)
    who = row.get("_annotator_id", str, None) or row.get("_session_id", str, None) or annotator
    answer = row.get("answer", str, "accept")
    if answer not in _STATUS_BY_ANSWER:
        raise row.build_error(f"'answer': expected {', '.join(_STATUS_BY_ANSWER)}, found {answer!r:.40}")
    answers = {"answer": answer} if answer != "accept" else {}
    return simple_spans.AnnotatorPass(
        document, who, row.where, list(_parse_spans(row)), _STATUS_BY_ANSWER[answer], answers
    )


def _parse_spans(row: JsonObject) -> Iterator[simple_spans.LabelledSpan]:
    for span in row.iter_objects("spans", []):
        label, id = span.get("label", str, None), span.get("id", str, "")
        yield simple_spans.LabelledSpan(
            span.get("start", int), span.get("end", int), label, span.where, id, span.other_fields(*_SPAN_KEYS)
        )


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write a line per annotation, and a line without `spans` per text without annotations."""
    with path.open("wb") as file:
        for document, annotation in simple_spans.pair_with_documents(items):
            row: dict[str, Any] = {"id": document.id, "text": document.text, META_KEY: document.meta}
            if annotation is not None:
                row["spans"] = [
                    {"start": span.start, "end": span.end, "label": mark.label, "id": mark.id} | dict(mark.meta)
                    for mark, span in simple_spans.labelled_text_spans(annotation)
                ]
                row |= {"answer": "accept", "_annotator_id": annotation.annotator}
            file.write(to_json(row) + b"\n")
        sync_to_disk(file)


def sniff(path: Path) -> bool:
    """Return True if the first line has keys that only Prodigy writes."""
    start = read_first_characters(path)
    named = any(
        f'"{name}"' in start for name in ("_input_hash", "_task_hash", "_session_id", "_annotator_id", META_KEY)
    )
    return start.startswith("{") and '"text"' in start and named


FORMAT = Format(
    "prodigy",
    "Prodigy JSON lines",
    read,
    write,
    sniff=sniff,
    holds=frozenset(["document meta", "annotation without marks", "mark id", "mark meta"]),
    options=frozenset(["protocol", "annotator"]),
)
