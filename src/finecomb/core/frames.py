"""The columns of a study's frames, and the way from records to frames and back without loss."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl
from pydantic_core import from_json, to_json

from finecomb.core.records import Annotation, Annotator, Answer, Antecedents, Document, Mark, Unit
from finecomb.core.span import TEXT, Span

SPANS = pl.List(pl.Struct({"part": pl.String, "start": pl.Int64, "end": pl.Int64}))
SEGMENTS = pl.List(pl.Struct({"start": pl.Int64, "end": pl.Int64, "title": pl.String, "role": pl.String}))
TIME = pl.Datetime("us", "UTC")
STRINGS = pl.List(pl.String)
JSON = pl.String  # JSON text, null when empty

Columns = Mapping[str, tuple[pl.DataType | type[pl.DataType], str]]

DOCUMENTS: Columns = {
    "id": (pl.String, "unique in the study"),
    "text": (pl.String, "what is judged"),
    "context": (JSON, "named texts beside it, as a JSON object"),
    "references": (STRINGS, "what people wrote for the same input"),
    "segments": (SEGMENTS, "start, end, title, role of each part"),
    "data": (JSON, "what the text was made from"),
    "meta": (JSON, "facts that annotators never see; `frames.meta('model')` picks one"),
}
ANNOTATORS: Columns = {
    "id": (pl.String, "unique in the study"),
    "kind": (pl.String, "human, llm, detector, checker, gold or pooled"),
    "condition": (pl.String, "arm of an experiment, or empty"),
    "cell": (pl.String, "cell of the study's design, or empty"),
    "factors": (JSON, "the factors of that cell"),
    "survey": (JSON, "answers about themselves"),
    "qualification": (JSON, "protocol, score, passed, attempts"),
    "platform": (pl.String, "where recruited, or empty"),
    "excluded": (JSON, "by, when, reason; null when not excluded"),
    "meta": (JSON, "anything else"),
}
ANNOTATIONS: Columns = {
    "id": (pl.String, "unique in the study"),
    "document": (pl.String, "id of the document"),
    "annotator": (pl.String, "id of the annotator"),
    "protocol": (pl.String, "name and version, e.g. snac@2"),
    "round": (pl.Int64, "0 for the first pass"),
    "about": (pl.String, "id of the annotation or mark judged, or null"),
    "phase": (pl.String, "training, qualification or work"),
    "status": (pl.String, "draft, submitted or excluded"),
    "answers": (JSON, "answers to the document's questions"),
    "made_from": (STRINGS, "ids of the annotations it was made from"),
    "readers": (pl.Int64, "how many people were pooled, or null"),
    "excluded": (JSON, "by, when, reason; null when not excluded"),
    "started": (TIME, "when first opened"),
    "submitted": (TIME, "when handed in"),
    "seconds": (pl.Float64, "wall time"),
    "active_seconds": (pl.Float64, "time at the keyboard"),
    "meta": (JSON, "anything else"),
}
MARKS: Columns = {
    "id": (pl.String, "unique in the study"),
    "annotation": (pl.String, "id of its annotation"),
    "document": (pl.String, "id of the document"),
    "annotator": (pl.String, "id of the annotator"),
    "protocol": (pl.String, "name and version"),
    "label": (pl.String, "name of its label, or null"),
    "spans": (SPANS, "part, start, end in code points; empty when unlocated"),
    "quotes": (STRINGS, "the words of each span"),
    "answers": (JSON, "severity, explanation, ... as a JSON object"),
    "antecedents": (SPANS, "earlier words it refers to; null when none"),
    "antecedent_quotes": (STRINGS, "their words"),
    "antecedent_unlocated": (pl.String, "why they could not be placed, or empty"),
    "confidence": (pl.Float64, "0 to 1, or null"),
    "votes": (pl.Int64, "readers who marked it, in pooled or merged data"),
    "label_votes": (JSON, "votes by label where there was no majority"),
    "item": (pl.String, "ties marks that the source says are one error"),
    "made_from": (STRINGS, "ids of the marks it was made from"),
    "alternatives": (JSON, "other complete ways to mark the same error"),
    "basis": (pl.String, "record or base-rate, for a checker's marks"),
    "unlocated": (pl.String, "why spans is empty, or empty"),
    "meta": (JSON, "anything else"),
}
UNITS: Columns = {
    "annotation": (pl.String, "id of its annotation"),
    "document": (pl.String, "id of the document"),
    "annotator": (pl.String, "id of the annotator"),
    "protocol": (pl.String, "name and version"),
    "start": (pl.Int64, "first code point"),
    "end": (pl.Int64, "one past the last"),
    "answers": (JSON, "answers to the unit's questions"),
    "scores": (JSON, "a detector's score by label"),
    "seconds": (pl.Float64, "how long it took"),
}
FRAMES: Mapping[str, Columns] = {
    "documents": DOCUMENTS,
    "annotators": ANNOTATORS,
    "annotations": ANNOTATIONS,
    "marks": MARKS,
    "units": UNITS,
}


def schema(columns: Columns) -> dict[str, pl.DataType | type[pl.DataType]]:
    """Column types as Polars wants them."""
    return {name: kind for name, (kind, _) in columns.items()}


def build_frame(columns: Columns, rows: Iterable[tuple[Any, ...]]) -> pl.DataFrame:
    """A frame of those columns from rows in their order, lists being given as JSON text."""
    rows = list(rows)
    return pl.DataFrame(
        [_series(name, kind, [row[number] for row in rows]) for number, (name, (kind, _)) in enumerate(columns.items())]
    )


def _series(name: str, kind: pl.DataType | type[pl.DataType], values: Sequence[Any]) -> pl.Series:
    if isinstance(kind, pl.List):
        return pl.Series(name, values, pl.String, strict=True).str.json_decode(kind)  # 50 times faster than from lists
    return pl.Series(name, values, kind, strict=True)


def parse_json_object(cell: str | None) -> dict[str, Any]:
    """The object that a cell of a JSON column holds; empty for null.

    >>> parse_json_object('{"model": "small", "top_p": 0.9}'), parse_json_object(None)
    ({'model': 'small', 'top_p': 0.9}, {})
    """
    value: dict[str, Any] = from_json(cell) if cell else {}
    return value


def parse_json_list(cell: str | None) -> list[Any]:
    """The list that a cell of a JSON column holds, e.g. of `alternatives`; empty for null."""
    value: list[Any] = from_json(cell) if cell else []
    return value


def parse_answers(cell: str | None) -> dict[str, Answer]:
    """The answers that a cell holds, lists of choices as tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in parse_json_object(cell).items()}


def json_entry_names(column: pl.Series) -> list[str]:
    """The names that a JSON column has entries for, each once, in the order in which they come."""
    cells = column.drop_nulls().unique(maintain_order=True)  # many are alike, and each is parsed once
    return list(dict.fromkeys(name for cell in cells for name in parse_json_object(cell)))


def json_entry(column: str, name: str) -> pl.Expr:
    """One entry of a JSON column as text, e.g. `entry("answers", "severity")`; null where it is absent."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        return pl.col(column).str.json_path_match(f"$.{name}").alias(name)
    return pl.col(column).map_elements(lambda cell: _json_entry_text(cell, name), pl.String).alias(name)


def meta_entry(name: str) -> pl.Expr:
    """One entry of a `meta` column as text, e.g. `study.documents.select(meta("model"))`; null where it is absent.

    Unlike `entry` it keeps every digit of a long number, since meta holds other people's ids.
    """
    return pl.col("meta").map_elements(lambda cell: _json_entry_text(cell, name), pl.String).alias(name)


def _json_entry_text(cell: str, name: str) -> str | None:
    value = parse_json_object(cell).get(name)
    return value if value is None or isinstance(value, str) else to_json(value).decode()


def json_cell(value: Any) -> str | None:
    """JSON text, or None for what is empty."""
    return None if value is None or value == {} or value == () else to_json(value).decode()


def list_cell(values: Iterable[Any]) -> str:
    """JSON text of a list, `[]` when empty."""
    return to_json(values).decode() if values else "[]"


_TEXT_SPAN = f'{{"part":"{TEXT}","start":%d,"end":%d}}'


def spans_cell(spans: Sequence[Span]) -> str:
    """JSON text of spans."""
    on_text = [_TEXT_SPAN % (span.start, span.end) for span in spans if span.part == TEXT]
    if len(on_text) == len(spans):  # nearly always, and a part's name may need escapes
        return f"[{','.join(on_text)}]"
    return list_cell([{"part": span.part, "start": span.start, "end": span.end} for span in spans])


def document_row(document: Document) -> tuple[Any, ...]:
    """Row of `DOCUMENT_COUNT`."""
    d = document
    data = None if d.data is None else to_json(d.data).decode()
    return d.id, d.text, json_cell(d.context), list_cell(d.references), list_cell(d.segments), data, json_cell(d.meta)


def annotator_row(annotator: Annotator) -> tuple[Any, ...]:
    """Row of `ANNOTATORS`."""
    a = annotator
    qualification = a.qualification.to_json() if a.qualification else None
    excluded = a.excluded.to_json() if a.excluded else None
    assigned = (a.condition, a.cell, json_cell(a.factors))
    return a.id, a.kind, *assigned, json_cell(a.survey), qualification, a.platform, excluded, json_cell(a.meta)


def annotation_row(annotation: Annotation) -> tuple[Any, ...]:
    """Row of `ANNOTATIONS`."""
    a = annotation
    key = (a.id, a.document, a.annotator, a.protocol, a.round, a.about, a.phase, a.status)
    excluded = a.excluded.to_json() if a.excluded else None
    times = (a.started, a.submitted, a.seconds, a.active_seconds)
    return (*key, json_cell(a.answers), list_cell(a.made_from), a.readers, excluded, *times, json_cell(a.meta))


def mark_row(mark: Mark, annotation: Annotation) -> tuple[Any, ...]:
    """Row of `MARKS`."""
    m, before = mark, mark.antecedents
    owner = (annotation.id, annotation.document, annotation.annotator, annotation.protocol)
    antecedents = (
        (spans_cell(before.spans), list_cell(before.quotes), before.unlocated) if before else (None, None, None)
    )
    votes = (
        m.confidence,
        m.votes,
        None if m.label_votes is None else to_json(m.label_votes).decode(),
        m.item,
        list_cell(m.made_from),
        json_cell(m.alternatives),
    )
    return (
        *(m.id, *owner, m.label, spans_cell(m.spans), list_cell(m.quotes), json_cell(m.answers), *antecedents),
        *(*votes, m.basis, m.unlocated, json_cell(m.meta)),
    )


def unit_row(unit: Unit, annotation: Annotation) -> tuple[Any, ...]:
    """Row of `UNITS`."""
    owner = (annotation.id, annotation.document, annotation.annotator, annotation.protocol)
    return (*owner, unit.start, unit.end, json_cell(unit.answers), json_cell(unit.scores), unit.seconds)


_JSON_COLUMNS = frozenset(
    "context data meta factors survey qualification excluded answers label_votes alternatives scores".split()
)


def _parse_row(row: dict[str, Any], drop: tuple[str, ...] = ()) -> dict[str, Any]:
    """A row as keywords for its record: JSON parsed, nulls left to the defaults."""
    filled = {name: value for name, value in row.items() if value is not None and name not in drop}
    return {name: from_json(value) if name in _JSON_COLUMNS else value for name, value in filled.items()}


def _from_rows(frame: pl.DataFrame, make: Callable[[dict[str, Any]], Any]) -> Iterator[Any]:
    for row in frame.iter_rows(named=True):
        yield make(row)


def iter_documents(frame: pl.DataFrame) -> Iterator[Document]:
    """Records of a documents frame."""
    yield from _from_rows(frame, lambda row: Document.model_validate(_parse_row(row)))


def iter_annotators(frame: pl.DataFrame) -> Iterator[Annotator]:
    """Records of an annotators frame."""
    yield from _from_rows(frame, lambda row: Annotator.model_validate(_parse_row(row)))


def iter_annotations(annotations: pl.DataFrame, marks: pl.DataFrame, units: pl.DataFrame) -> Iterator[Annotation]:
    """Records of an annotations frame with their marks and units."""
    marks_by = _group_by_annotation(marks, _mark_from_row)
    units_by = _group_by_annotation(units, _unit_from_row)
    for row in annotations.iter_rows(named=True):
        contents = {"marks": marks_by.get(row["id"], ()), "units": units_by.get(row["id"], ())}
        yield Annotation.model_validate(_parse_row(row) | contents)


def iter_marks(frame: pl.DataFrame) -> Iterator[Mark]:
    """Records of a marks frame."""
    return _from_rows(frame, _mark_from_row)


def _group_by_annotation(frame: pl.DataFrame, make: Callable[[dict[str, Any]], Any]) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for row in frame.iter_rows(named=True):
        groups.setdefault(row["annotation"], []).append(make(row))
    return groups


_OWNER_COLUMNS = ("annotation", "document", "annotator", "protocol")


def parse_spans(cell: Iterable[Mapping[str, Any]]) -> tuple[Span, ...]:
    """The spans that a cell of a `spans` column holds."""
    return tuple(Span(span["start"], span["end"], span["part"]) for span in cell)


def part_texts(documents: pl.DataFrame) -> dict[tuple[str, str], str]:
    """The words of every part of a documents frame, text and contexts alike, by document and part."""
    texts: dict[tuple[str, str], str] = {}
    for id, text, context in documents.select("id", "text", "context").iter_rows():
        texts[id, TEXT] = text
        texts |= {(id, name): words for name, words in parse_json_object(context).items()}
    return texts


def _mark_from_row(row: dict[str, Any]) -> Mark:
    before = ("antecedents", "antecedent_quotes", "antecedent_unlocated")
    values = _parse_row(row, drop=(*_OWNER_COLUMNS, *before)) | {
        "label": row["label"],
        "spans": parse_spans(row["spans"]),
    }
    if row["antecedents"] is not None:
        spans, quotes, unlocated = (row[name] for name in before)
        values["antecedents"] = Antecedents(spans=parse_spans(spans), quotes=tuple(quotes), unlocated=unlocated or "")
    return Mark.model_validate(values)


def _unit_from_row(row: dict[str, Any]) -> Unit:
    return Unit.model_validate(_parse_row(row, drop=_OWNER_COLUMNS))
