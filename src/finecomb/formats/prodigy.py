"""Prodigy's JSON lines: `{"text", "spans": [{"start", "end", "label"}, ...], "answer"}`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from finecomb.core.records import Document, Status
from finecomb.core.study import StudyItem
from finecomb.formats import simple_spans
from finecomb.formats.atomic_file import sync
from finecomb.formats.base import Format, Options
from finecomb.formats.source_files import Fields, record, starts_with

META = "finecomb_meta"
"""Where we keep a document's meta: what is in `meta`, Prodigy shows to its annotators."""
_SPAN = ("start", "end", "label", "id", "text", "token_start", "token_end")
_ANSWERS: dict[str, Status] = {"accept": "submitted", "reject": "excluded", "ignore": "excluded"}


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Documents and annotations; what was rejected or ignored is excluded, with the answer in its meta."""
    return simple_spans.line_records(_pass, path, options)


def _pass(row: Fields, line: int, annotator: str) -> simple_spans.Pass:
    id = str(row.get("id", (int, str), row.get("_input_hash", int, line)))
    meta = row.get("meta", dict, {}) | row.get(META, dict, {})
    document = record(Document, row.where, id=id, text=row.get("text", str), meta=meta)
    if "spans" not in row.value and "answer" not in row.value:
        return simple_spans.Pass(document, "", row.where)
    who = row.get("_annotator_id", str, None) or row.get("_session_id", str, None) or annotator
    answer = row.get("answer", str, "accept")
    if answer not in _ANSWERS:
        raise row.error(f"'answer': expected {', '.join(_ANSWERS)}, found {answer!r:.40}")
    answers = {"answer": answer} if answer != "accept" else {}
    return simple_spans.Pass(document, who, row.where, list(_spans(row)), _ANSWERS[answer], answers)


def _spans(row: Fields) -> Iterator[simple_spans.LabelledSpan]:
    for span in row.each("spans", []):
        label, id = span.get("label", str, None), span.get("id", str, "")
        yield simple_spans.LabelledSpan(
            span.get("start", int), span.get("end", int), label, span.where, id, span.rest(*_SPAN)
        )


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write a line for each annotation, and one without `spans` for a text nobody read."""
    with path.open("wb") as file:
        for document, annotation in simple_spans.worked(items):
            row: dict[str, Any] = {"id": document.id, "text": document.text, META: document.meta}
            if annotation is not None:
                row["spans"] = [
                    {"start": span.start, "end": span.end, "label": mark.label, "id": mark.id} | dict(mark.meta)
                    for mark, span in simple_spans.on_text(annotation)
                ]
                row |= {"answer": "accept", "_annotator_id": annotation.annotator}
            file.write(to_json(row) + b"\n")
        sync(file)


def looks_like(path: Path) -> bool:
    """Whether the first line has what only Prodigy writes."""
    start = starts_with(path)
    named = any(f'"{name}"' in start for name in ("_input_hash", "_task_hash", "_session_id", "_annotator_id", META))
    return start.startswith("{") and '"text"' in start and named


FORMAT = Format(
    "prodigy",
    "Prodigy JSON lines",
    read,
    write,
    sniff=looks_like,
    holds=frozenset(["document meta", "annotation without marks", "mark id", "mark meta"]),
    options=frozenset(["protocol", "annotator"]),
)
